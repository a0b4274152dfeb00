"""What of a client's head reaches routing and the backend."""

import re
from uuid import UUID

import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body, read_answer
from tests.fakes.router import document_of, model_of, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.gateway.ingress import CLIENT_KEYS, IngressRules, ingress_headers
from vsr.headers import HeaderLine
from vsr.http.framing import RequestHead
from vsr.http.h1_server import ServerConnection
from vsr.http.plain_head import PlainHeads
from vsr.network.memory import MemoryNetwork
from vsr.resources.listener import Identity

_STRIPPED = """
    connection keep-alive proxy-connection transfer-encoding upgrade te host
    x-authz-user-id x-authz-user-groups x-authz-team-id x-authz-tenant-id x-authz-anything
    x-envoy-internal x-envoy-retriable-status-codes x-envoy-retriable-header-names
    x-envoy-retry-on x-envoy-retry-grpc-on x-envoy-max-retries x-envoy-upstream-alt-stat-name
    x-envoy-upstream-rq-timeout-ms x-envoy-upstream-rq-per-try-timeout-ms
    x-envoy-upstream-rq-timeout-alt-response x-envoy-expected-rq-timeout-ms x-envoy-force-trace
    x-envoy-ip-tags x-envoy-original-url x-envoy-hedge-on-per-try-timeout
    x-vsr-internal-auth x-vsr-looper-request x-vsr-looper-secret x-vsr-looper-iteration
    x-vsr-looper-decision x-vsr-fusion-depth x-vsr-selected-recipe
    """
STRIPPED = _STRIPPED.split()
_KEPT = """
    x-envoy-decorator-operation x-envoy-downstream-service-cluster
    x-envoy-downstream-service-node x-envoy-original-path x-envoy-original-host
    x-selected-model x-vsr-debug x-vsr-skip-processing x-forwarded-for authorization api-key
    content-length cookie traceparent user-agent x-real-ip x-authz
    """
KEPT = _KEPT.split()


def head_of(*lines: HeaderLine) -> RequestHead:
    """Return the head of a GET request with these lines, `Host` in front."""
    http = ServerConnection()
    shown = b"".join(b"%b: %b\r\n" % line for line in lines)
    http.feed(b"GET / HTTP/1.1\r\nHost: router\r\n" + shown + b"\r\n")
    head = http.next_event()
    assert isinstance(head, RequestHead), head
    return head


@pytest.mark.parametrize("name", STRIPPED)
def test_name_is_stripped(name: str) -> None:
    """Hop-by-hop, identity, proxy control and our own internal names."""
    value = {"transfer-encoding": b"chunked", "host": b"h"}.get(name, b"1")
    head = head_of() if name == "host" else head_of((name.upper().encode(), value))

    headers, _ = ingress_headers(head, b"http")

    assert [line[0] for line in headers] == [b"x-forwarded-proto", b"x-request-id"]


@pytest.mark.parametrize("name", KEPT)
def test_name_is_kept(name: str) -> None:
    """What routing or the backend has a use for."""
    headers, _ = ingress_headers(head_of((name.title().encode(), b"7")), b"http")

    assert headers.get(name.encode()) == b"7"


def test_nominated_names_are_stripped() -> None:
    """Connection lists them, in any case, over several lines."""
    head = head_of(
        (b"Connection", b"X-One, close"),
        (b"connection", b" x-TWO ,,x-three"),
        (b"x-one", b"1"),
        (b"X-Two", b"2"),
        (b"x-three", b"3"),
        (b"x-four", b"4"),
    )

    headers, _ = ingress_headers(head, b"http")

    assert [line[0] for line in headers][:-2] == [b"x-four"]


def test_headers_are_sorted_by_name_and_keep_the_order_of_repeated_ones() -> None:
    """Lower-case, stable."""
    head = head_of((b"X-B", b"2"), (b"x-a", b"z"), (b"x-b", b"1"), (b"X-A", b"a"))

    headers, _ = ingress_headers(head, b"http")

    assert headers.lines[:-2] == [(b"x-a", b"z"), (b"x-a", b"a"), (b"x-b", b"2"), (b"x-b", b"1")]


def test_scheme_and_id_are_added_when_absent() -> None:
    """The id is a UUID of version 8, another each time."""
    ids = set()
    for _ in range(50):
        headers, request_id = ingress_headers(head_of(), b"https")
        assert headers.lines == [(b"x-forwarded-proto", b"https"), (b"x-request-id", request_id)]
        ids.add(request_id.decode())

    assert len(ids) == 50
    assert all(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", each) for each in ids)
    assert {(UUID(each).version, UUID(each).variant) for each in ids} == {
        (8, "specified in RFC 4122")
    }


def test_scheme_and_id_of_the_client_are_kept() -> None:
    """Neither is added a second time."""
    lines = [(b"x-forwarded-proto", b"https"), (b"x-request-id", b"own")]

    headers, request_id = ingress_headers(head_of(*lines), b"http")

    assert (headers.lines, request_id) == (lines, b"own")


def test_client_keys_are_removed_on_request() -> None:
    """Where a listener has keys of its own."""
    head = head_of((b"authorization", b"Bearer k"), (b"api-key", b"k"), (b"x", b"y"))

    headers, _ = ingress_headers(head, b"http", removed=CLIENT_KEYS)

    assert [line[0] for line in headers][:-2] == [b"x"]


@pytest.mark.parametrize("target", [b"/v1/chat/completions", b"/v1/embeddings"])
async def test_stripped_names_reach_no_backend(
    target: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report X2, over the wire: nothing a client may forge gets through, routed or not."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))
    forged = [name for name in STRIPPED if name not in {"host", "transfer-encoding", "connection"}]
    body = chat_body(model="auto")
    lines = b"".join(b"%b: canary\r\n" % name.encode() for name in forged)
    client = await router.connect()

    await client.send(
        b"POST %b HTTP/1.1\r\nHost: r\r\nConnection: x-named\r\nx-named: canary\r\n"
        b"expect: 100-continue\r\nContent-Length: %d\r\n%b\r\n%b" % (target, len(body), lines, body)
    )
    got = await read_answer(client)

    [(head, sent)] = backend.seen
    assert got.status == 200
    assert sent.replace(b'"alpha"', b'"auto"') == body
    assert b"canary" not in b"".join(value for _, value in head.lines)
    assert {b"expect", b"connection", b"transfer-encoding"}.isdisjoint(head.fields)


def test_what_is_known_of_a_head_is_not_another_listeners() -> None:
    """Listeners that trust differently, and a key that is used up, share one memory of heads."""
    heads = PlainHeads()
    raw = b"GET /v1 HTTP/1.1\r\nHost: r\r\nX-B: 2\r\nX-Authz-User-Id: ann\r\nApi-Key: k\r\n\r\n"
    closed, trusting = IngressRules(Identity()), IngressRules(Identity(is_trusted=True))
    seen = []

    for rules, removed in [
        (closed, frozenset()),
        (trusting, frozenset()),
        (closed, CLIENT_KEYS),
        (trusting, frozenset()),
        (closed, frozenset()),
    ]:
        head = heads.read_request(raw)
        assert head is not None
        headers, _ = ingress_headers(head, b"http", rules, removed=removed)
        seen.append([name for name, _ in headers.lines[:-2]])
        headers.append(b"x-later", b"1")

    api_key, identity, rest = b"api-key", b"x-authz-user-id", b"x-b"
    assert seen == [
        [api_key, rest],
        [api_key, identity, rest],
        [rest],
        [api_key, identity, rest],
        [api_key, rest],
    ]


def test_what_routing_changes_of_one_request_is_not_seen_by_the_next() -> None:
    """Requests with the same head share what was read of it, but not the header list."""
    heads, rules = PlainHeads(), IngressRules(Identity())
    raw = b"POST /x HTTP/1.1\r\nhost: a\r\nx-one: 1\r\nx-two: 2\r\ncontent-length: 2\r\n\r\n{}"
    seen = []
    for _ in range(3):
        head = heads.read_request(raw)
        assert head is not None
        headers, request_id = ingress_headers(head, b"http", rules)
        seen.append((list(headers), dict(headers.first_values()), request_id))
        headers.first_values().clear()
        headers.append(b"x-one", b"again")
        headers.lines.clear()

    for lines, values, request_id in seen:
        added = [(b"x-forwarded-proto", b"http"), (b"x-request-id", request_id)]
        assert lines == [(b"content-length", b"2"), (b"x-one", b"1"), (b"x-two", b"2"), *added]
        assert values == dict(lines)
    assert len({request_id for _, _, request_id in seen}) == 3


def test_the_first_of_several_values_counts_in_a_known_head_too() -> None:
    """A field that stands twice has its first value, whether its head was seen before or not."""
    connection = ServerConnection(PlainHeads())
    for _ in range(2):
        connection.feed(b"GET /x HTTP/1.1\r\nhost: a\r\nx-one: 1\r\nx-one: 2\r\n\r\n")
        head = connection.next_event()
        assert isinstance(head, RequestHead)
        headers, _ = ingress_headers(head, b"http")
        assert headers.get(b"x-one") == b"1"
        while connection.next_event() is not None:
            pass
