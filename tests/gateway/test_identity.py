"""Whose identity headers a listener keeps."""

from ipaddress import ip_network

import pytest
import trio
import trio.testing

from tests.demo.raw_client import ask, chat_body
from tests.fakes.router import document_of, model_of, start_router
from tests.gateway.h2_running import connect as connect_h2
from tests.gateway.test_ingress import head_of
from tests.upstream.raw_backend import RawBackend, reply
from vsr.gateway.ingress import IngressRules, ingress_headers
from vsr.headers import Headers
from vsr.network.memory import MemoryNetwork
from vsr.resources.listener import Identity
from vsr.routing.engine import Engine
from vsr.routing.plan import Plan
from vsr.routing.ports import Journal, Tasks
from vsr.routing.request import Request

NETWORKS = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))
TRUSTING = Identity(frozenset({b"x-user", b"x-groups"}), is_trusted=True, networks=NETWORKS)
NAMES = [b"x-authz-user-id", b"x-authz-team-id", b"x-authz-anything", b"x-user", b"x-groups"]


@pytest.mark.parametrize(
    ("peer", "is_trusted"),
    [
        ("10.255.0.1", True),
        ("::ffff:10.0.0.1", True),
        ("fd00::1", True),
        ("fd00::1%eth0", True),
        ("11.0.0.1", False),
        ("::ffff:11.0.0.1", False),
        ("fe80::1", False),
        ("", False),
        ("unix", False),
    ],
)
def test_peer_is_trusted_by_its_network(peer: str, *, is_trusted: bool) -> None:
    """A mapped IPv4 address counts as IPv4; what is no address is never trusted."""
    assert TRUSTING.trusts(peer) is is_trusted


@pytest.mark.parametrize("peer", ["10.0.0.1", "192.0.2.1", ""])
def test_without_networks_all_peers_are_alike(peer: str) -> None:
    """All are trusted, or none."""
    assert Identity(is_trusted=True).trusts(peer)
    assert not Identity(is_trusted=False, networks=(ip_network("0.0.0.0/0"),)).trusts(peer)


@pytest.mark.parametrize("nominated", [b"", b"x-other"])
@pytest.mark.parametrize("name", NAMES)
def test_identity_is_kept_from_a_trusted_peer_alone(name: bytes, nominated: bytes) -> None:
    """Peer after peer on one listener, whatever else the head nominates."""
    rules = IngressRules(TRUSTING)
    head = head_of((name, b"1"), (b"connection", b"keep-alive, " + nominated), (b"x-last", b"2"))

    for peer, expected in [("10.0.0.1", [b"1"]), ("9.0.0.1", []), ("10.0.0.2", [b"1"])]:
        headers, _ = ingress_headers(head, b"http", rules, peer=peer)
        assert headers.get_all(name) == expected
        assert headers.get_all(b"x-last") == [b"2"]
        assert b"connection" not in headers


@pytest.mark.parametrize("name", [b"x-vsr-looper-request", b"x-envoy-max-retries", b"te"])
def test_nothing_but_identity_is_kept_from_a_trusted_peer(name: bytes) -> None:
    """Internal, proxy-control and hop-by-hop fields go whoever sends them."""
    rules = IngressRules(TRUSTING)

    headers, _ = ingress_headers(head_of((name, b"1")), b"http", rules, peer="10.0.0.1")

    assert name not in headers


@pytest.mark.parametrize("listener", ["", "identity: {trust_headers: true}"])
@pytest.mark.parametrize("target", [b"/v1/chat/completions", b"/v1/embeddings"])
async def test_no_backend_learns_who_calls(
    target: bytes, listener: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Identity ends at the Router, trusted or not, under its configured names too."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    document = document_of(model_of(backend.port), listener=listener) + (
        "\nglobal: {services: {authz: {identity: {user_id_header: X-User}}}}"
    )
    router = await start_router(nursery, network, document)

    got = await router.ask(
        chat_body(model="auto"),
        target=target,
        lines=[(b"x-user", b"ann"), (b"x-authz-user-id", b"ann")],
    )

    [(head, _)] = backend.seen
    assert got.status == 200
    assert {b"x-user", b"x-authz-user-id"}.isdisjoint(head.fields)


class WatchedEngine:
    """An engine, and the headers of the requests that it is given."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.seen: list[Headers] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self.engine, name)

    async def plan(self, request: Request, tasks: Tasks, journal: Journal) -> Plan:
        """Note the request and go on."""
        self.seen.append(request.headers)
        return await self.engine.plan(request, tasks, journal)


@pytest.mark.parametrize("http", [1, 2])
@pytest.mark.parametrize(("peers", "kept"), [("127.0.0.0/8", b"ann"), ("192.0.2.0/24", b"")])
async def test_routing_learns_who_calls_from_a_trusted_peer(
    peers: str,
    kept: bytes,
    http: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """By the address of the TCP peer; `x-forwarded-for` is not looked at."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    identity = f"identity: {{trust_headers: true, trusted_peers: [{peers}]}}"
    router = await start_router(
        nursery, network, document_of(model_of(backend.port), listener=identity)
    )
    watched = WatchedEngine(router.generation.engine)
    router.generation.engine = watched  # type: ignore[assignment]  # a proxy of the same shape
    lines = [(b"x-authz-user-id", b"ann"), (b"x-forwarded-for", b"192.0.2.7, 127.0.0.1")]

    if http == 1:
        await router.ask(chat_body(model="auto"), lines=lines)
    else:
        client = await connect_h2(nursery, router)
        await client.ask(chat_body(model="auto"), lines=lines)

    [headers] = watched.seen
    assert headers.get(b"x-authz-user-id") == kept


async def test_listener_trusts_as_its_newest_configuration_says(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """On a connection that is open already."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))
    kept = []
    connection = await router.connect()

    for version, trust in enumerate(["false", "true", "false"], start=2):
        listener = f"identity: {{trust_headers: {trust}}}"
        generation = router.activate(
            document_of(model_of(backend.port), listener=listener), version
        )
        generation.engine = watched = WatchedEngine(generation.engine)  # type: ignore[assignment]
        await ask(connection, chat_body(model="auto"), lines=[(b"x-authz-user-id", b"ann")])
        kept.append(watched.seen[0].get(b"x-authz-user-id"))

    assert kept == [b"", b"ann", b""]
