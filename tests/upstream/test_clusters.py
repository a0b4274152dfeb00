"""What leaves for a backend: which endpoint, which headers, whose credentials."""

from collections import Counter

import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.router import RunningRouter, document_of, model_of, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.headers import HeaderLine
from vsr.network.memory import MemoryNetwork
from vsr.resources.snapshot import Snapshot

OWN_KEY = "backend-key"


def refs(*weighted: tuple[int, int]) -> str:
    """Return a model with one backend per port and weight."""
    shown = ", ".join(f"{{endpoint: '127.0.0.1:{port}', weight: {w}}}" for port, w in weighted)
    return f"{{name: alpha, backend_refs: [{shown}]}}"


@pytest.mark.parametrize("weights", [(1, 1, 1), (5, 3, 1), (7, 1, 1), (1, 0, 2)])
async def test_endpoints_get_their_share(
    weights: tuple[int, ...], nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Exactly so in every round; a weight of 0 counts as 1."""
    network = MemoryNetwork()
    backends = [await RawBackend(network, reply(200, b"{}")).start(nursery) for _ in weights]
    document = document_of(
        refs(*[(each.port, weight) for each, weight in zip(backends, weights, strict=True)])
    )
    router = await start_router(nursery, network, document)

    for _ in range(4 * sum(max(each, 1) for each in weights)):
        assert (await router.ask(chat_body(model="auto"))).status == 200

    assert [len(each.seen) for each in backends] == [4 * max(each, 1) for each in weights]
    hosts = Counter(line["upstream_host"] for line in await router.log())
    assert hosts == {f"127.0.0.1:{each.port}": len(each.seen) for each in backends}


async def start(nursery: trio.Nursery, **ref: str) -> tuple[RunningRouter, RawBackend]:
    """Start a Router whose one model has this backend ref."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    return await start_router(nursery, network, document_of(model_of(backend.port, **ref))), backend


CHAT = (b"/v1/chat/completions", chat_body(model="auto"))
OTHER = (b"/v1/embeddings", b'{"input":"x"}')


@pytest.mark.parametrize(
    ("ref", "wanted"),
    [
        ({"provider": "openai"}, (b"authorization", b"Bearer backend-key")),
        ({"auth_header": "X-Key", "auth_prefix": "''"}, (b"x-key", b"backend-key")),
        ({"auth_header": "api-key", "auth_prefix": "Token"}, (b"api-key", b"Token backend-key")),
    ],
)
async def test_credential_is_on_the_wire_once(
    ref: dict[str, str],
    wanted: HeaderLine,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Under the provider's header, in place of what the client sent under that name."""
    ref = {**ref, "api_key": OWN_KEY}
    if "provider" in ref:
        network = MemoryNetwork()
        backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
        ref["base_url"] = f"'http://b.test:{backend.port}/v1'"
        document = document_of(model_of(backend.port, **ref))
        router = await start_router(nursery, network, document)
    else:
        router, backend = await start(nursery, **ref)

    await router.ask(CHAT[1], lines=[(wanted[0], b"client-key"), (b"x-other", b"1")])

    [(head, _)] = backend.seen
    assert [line for line in head.lines if line[0] == wanted[0]] == [wanted]
    assert b"client-key" not in dict(head.lines).values()


@pytest.mark.parametrize("sent", [b"authorization", b"api-key"])
@pytest.mark.parametrize("header", ["authorization", "api-key"])
@pytest.mark.parametrize("request_", [CHAT, OTHER], ids=["routed", "passed on"])
async def test_client_credential_reaches_no_backend_that_has_its_own(
    sent: bytes,
    header: str,
    request_: tuple[bytes, bytes],
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Field report X1: whatever header each uses, and on the default route as well."""
    router, backend = await start(nursery, auth_header=header, auth_prefix="''", api_key=OWN_KEY)

    target, body = request_
    await router.ask(body, target=target, lines=[(sent, b"Bearer canary")])

    [(head, _)] = backend.seen
    assert b"canary" not in b"".join(value for _, value in head.lines)


async def test_provider_headers_reach_the_default_route_too(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """They are the cluster's, not the decision's; each replaces the client's."""
    router, backend = await start(nursery, extra_headers="{X-Tenant: t1}")

    for target, body in (CHAT, OTHER):
        await router.ask(body, target=target, lines=[(b"x-tenant", b"forged")])

    for head, _ in backend.seen:
        assert [value for name, value in head.lines if name == b"x-tenant"] == [b"t1"]


@pytest.mark.parametrize(
    ("base_url", "authority"),
    [
        ("http://b.test:{port}", b"b.test:{port}"),
        ("http://[::1]:{port}/v1", b"[::1]:{port}"),
        ("http://10.0.0.9:{port}/x/v1", b"10.0.0.9:{port}"),
    ],
)
async def test_host_is_the_endpoints_authority(
    base_url: str,
    authority: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Never the client's; a missing user agent stays missing."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    ref = model_of(backend.port, base_url=f"'{base_url.format(port=backend.port)}'")
    router = await start_router(nursery, network, document_of(ref))

    await router.ask(CHAT[1])

    [(head, _)] = backend.seen
    assert head.authority == authority.replace(b"{port}", b"%d" % backend.port)
    assert b"user-agent" not in head.fields


@pytest.mark.parametrize(
    ("method", "body", "length"),
    [
        (b"GET", b"", None),
        (b"DELETE", b"", None),
        (b"POST", b"", b"0"),
        (b"PUT", b"ab", b"2"),
        (b"GET", b"ab", b"2"),
    ],
)
async def test_length_is_our_own(
    method: bytes,
    body: bytes,
    length: bytes | None,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A chunked body leaves with the length it turned out to have."""
    router, backend = await start(nursery)
    client = await router.connect()
    chunks = b"".join(b"1\r\n%c\r\n" % each for each in body) + b"0\r\ntrailer: x\r\n\r\n"

    await client.send(
        b"%b /x HTTP/1.1\r\nHost: r\r\nTransfer-Encoding: chunked\r\nTrailer: trailer\r\n\r\n%b"
        % (method, chunks)
    )
    await trio.testing.wait_all_tasks_blocked()

    [(head, got)] = backend.seen
    assert (head.method, got, head.fields.get(b"content-length")) == (method, body, length)
    assert {b"transfer-encoding", b"trailer"}.isdisjoint(head.fields)


async def test_document_without_models_has_no_healthy_endpoint(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A local reply, not a bug; the configuration loads as it is."""
    network = MemoryNetwork()
    document = document_of(model_of(1))
    router = await start_router(nursery, network, document)
    snapshot = router.generation.snapshot
    router.activate(Snapshot(hash="", listeners=snapshot.listeners), 2)

    got = await router.ask(OTHER[1], target=OTHER[0])

    assert (got.status, got.body) == (503, b"no healthy upstream")
