"""Backends with TLS that fail in and behind the handshake, and what is tried then."""

import random
import ssl
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial
from itertools import count

import attrs
import msgspec
import pytest
import trio
import trio.testing
import trustme

from tests.faults.test_every_step import AfterStep
from tests.upstream.raw_backend import reply
from vsr.deadline import Deadline
from vsr.errors import UpstreamFailure
from vsr.headers import Headers
from vsr.network.memory import MemoryConnection, MemoryListener, MemoryNetwork
from vsr.network.port import ConnectionBroken, TlsFailed
from vsr.network.tls import TlsConnection, start_server_tls
from vsr.resources.cluster import Cluster, Endpoint
from vsr.resources.reliability import CallPolicy, RetryEvidence, RetryOn, RetryPolicy
from vsr.resources.snapshot import Snapshot
from vsr.routing.outcome import NOTHING_USED, TransportFact
from vsr.routing.plan import Call
from vsr.routing.ports import Journal
from vsr.slices import at_once
from vsr.upstream.cluster import RuntimeCluster
from vsr.upstream.clusters import Surroundings, build_clusters
from vsr.upstream.policy.balancer import RoundRobin

NAMES = ("b0.test", "b1.test")
PORT = 1000
CONNECT_S = 2.0
SECRET = b"of-the-client"


class Ill(StrEnum):
    """How a backend fails."""

    RESET_ON_CONNECT = "reset on connect"
    RESET_AT_HELLO = "reset at the hello"
    CLOSED_AT_HELLO = "closed at the hello"
    RESET_AMID_FLIGHT = "reset amid its flight"
    SILENT_AT_HELLO = "silent at the hello"
    SILENT_AMID_FLIGHT = "silent amid its flight"
    CLEARTEXT = "cleartext"
    WRONG_NAME = "wrong name"
    RESET_BEHIND_HANDSHAKE = "reset behind the handshake"
    RESET_BEHIND_REQUEST = "reset behind the request"
    CLOSED_BEHIND_REQUEST = "closed behind the request"


IN_HANDSHAKE = [each for each in Ill if "behind" not in each]
BEHIND_IT = [each for each in Ill if "behind" in each]
SILENT = {Ill.SILENT_AT_HELLO, Ill.SILENT_AMID_FLIGHT}


@attrs.frozen
class Contexts:
    """TLS of both sides."""

    client: ssl.SSLContext
    server: ssl.SSLContext
    of_another: ssl.SSLContext


@pytest.fixture(scope="module")
def contexts() -> Contexts:
    """Return contexts whose authority the client trusts."""
    authority = trustme.CA()
    client = ssl.create_default_context()
    authority.configure_trust(client)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*NAMES).configure_cert(server)
    of_another = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("other.test").configure_cert(of_another)
    return Contexts(client, server, of_another)


@attrs.define(eq=False)
class Backend:
    """Serves TLS, or fails as its ills say, connection by connection; sound behind the last."""

    contexts: Contexts
    ills: Sequence[Ill]
    seen: list[bytes] = attrs.field(factory=list, init=False)
    """Requests, decrypted, one for each connection that got so far."""
    gone_at: list[float] = attrs.field(factory=list, init=False)
    _accepted: int = attrs.field(default=0, init=False)

    async def run(self, listener: MemoryListener) -> None:
        """Serve until cancelled."""
        async with trio.open_nursery() as tasks:
            while True:
                tasks.start_soon(self._serve, await listener.accept())

    async def _serve(self, connection: MemoryConnection) -> None:
        ill = self.ills[self._accepted] if self._accepted < len(self.ills) else None
        self._accepted += 1
        with trio.CancelScope() as scope, suppress(ConnectionBroken, TlsFailed):
            connection.on_gone = partial(self._left, scope)
            if ill in IN_HANDSHAKE and ill is not Ill.WRONG_NAME:
                await self._spoil_handshake(connection, ill)
                return
            context = self.contexts.of_another if ill is Ill.WRONG_NAME else self.contexts.server
            await self._talk(await start_server_tls(connection, context), ill)
        connection.close()

    def _left(self, scope: trio.CancelScope) -> None:
        self.gone_at.append(trio.current_time())
        scope.cancel()

    async def _spoil_handshake(self, connection: MemoryConnection, ill: Ill) -> None:
        if ill is Ill.RESET_ON_CONNECT:
            connection.abort()
            return
        hello = await connection.receive()
        if ill is Ill.CLEARTEXT:
            await connection.send(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        elif ill in {Ill.RESET_AMID_FLIGHT, Ill.SILENT_AMID_FLIGHT}:
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            incoming.write(hello)
            tls = self.contexts.server.wrap_bio(incoming, outgoing, server_side=True)
            with suppress(ssl.SSLWantReadError):
                tls.do_handshake()
            await connection.send(outgoing.read()[:300])
        if ill in SILENT:
            await trio.sleep_forever()
        connection.close() if ill is Ill.CLOSED_AT_HELLO else connection.abort()

    async def _talk(self, tls: TlsConnection, ill: Ill | None) -> None:
        if ill is Ill.RESET_BEHIND_HANDSHAKE:
            tls.abort()
            return
        while request := await tls.receive():
            self.seen.append(request)
            if ill is not None:
                tls.abort() if ill is Ill.RESET_BEHIND_REQUEST else tls.close()
                return
            await tls.send(reply(200, b"{}"))


@attrs.define(eq=False)
class Scene:
    """One cluster over two TLS backends, of which the first has the first turn."""

    network: MemoryNetwork
    cluster: RuntimeCluster
    backends: list[Backend]
    journal: Journal = attrs.field(factory=lambda: Journal([]), init=False)

    async def call(self) -> int:
        """Make one call; return the status of its answer."""
        headers = Headers([(b"x-secret", SECRET)])
        call = Call(b"POST", b"/v1/chat/completions", headers, b"{}", b"alpha", "alpha")
        now = trio.current_time()
        response = await self.cluster.send(
            call, now=now, deadline=Deadline(), idle_s=None, journal=self.journal
        )
        try:
            while await response.receive():
                pass
        finally:
            response.close()
        return response.status

    @property
    def held(self) -> tuple[int, int, int, int]:
        """Return slots, retry slots, attempts at endpoints and connections in use."""
        state = self.cluster.state
        hosts = sum(host.active for host in state.hosts)
        in_use = sum(host.pool.in_use for host in state.hosts)
        return state.gate.breaker.active, state.slots.taken, hosts, in_use

    @property
    def idle(self) -> int:
        """Return how many connections are kept."""
        return sum(host.pool.idle for host in self.cluster.state.hosts)


async def start(
    nursery: trio.Nursery,
    contexts: Contexts,
    *ills: Ill,
    on: RetryOn = RetryOn.FIVE_XX,
    evidence: RetryEvidence = RetryEvidence.ANY,
) -> Scene:
    """Start one whose first backend has these ills."""
    network = MemoryNetwork()
    nursery.start_soon(network.run)
    backends = [Backend(contexts, ills), Backend(contexts, ())]
    for number, backend in enumerate(backends):
        nursery.start_soon(backend.run, await network.listen("", PORT + number))
    endpoints = tuple(Endpoint(f"b{n}", f"b{n}.test", PORT + n, tls=True) for n in range(2))
    # A wait before the retry would show.
    retry = RetryPolicy(1, frozenset({on}), back_off_base_s=60, back_off_max_s=60)
    policy = CallPolicy(retry=msgspec.structs.replace(retry, evidence=evidence))
    cluster = Cluster("alpha", endpoints, "alpha", connect_timeout_s=CONNECT_S, calls=policy)
    around = Surroundings(network, random.Random(7), lambda *_: contexts.client)  # noqa: S311
    [found] = at_once(build_clusters(Snapshot("", clusters=(cluster,)), around))
    balancer = found.state.rotation._balancer
    assert isinstance(balancer, RoundRobin)
    balancer._next = 0
    return Scene(network, found, backends)


@pytest.mark.parametrize("ill", IN_HANDSHAKE)
async def test_handshake_that_fails_leads_to_the_next_endpoint(
    ill: Ill, contexts: Contexts, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """At once, since nothing was sent; a silent one takes the connect timeout."""
    known_zero = RetryEvidence.KNOWN_ZERO
    scene = await start(nursery, contexts, ill, on=RetryOn.CONNECT_FAILURE, evidence=known_zero)

    assert await scene.call() == 200

    assert trio.current_time() == (CONNECT_S if ill in SILENT else 0)
    first, second = scene.journal.attempts
    assert (first.endpoint, second.endpoint) == ("b0", "b1")
    assert (first.error, first.fact) == ("upstream_connect_failure", TransportFact.NOT_CONNECTED)
    assert (first.usage, first.is_known_zero) == (NOTHING_USED, True)
    assert [len(each.seen) for each in scene.backends] == [0, 1]
    assert scene.held == (0, 0, 0, 0)
    await trio.testing.wait_all_tasks_blocked()
    assert scene.network.open_connections == 2 * scene.idle == 2


@pytest.mark.parametrize("evidence", RetryEvidence)
@pytest.mark.parametrize("ill", BEHIND_IT)
async def test_failure_behind_the_handshake_may_have_cost_something(
    ill: Ill,
    evidence: RetryEvidence,
    contexts: Contexts,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It is a reset, not a failed connection, and no proof that nothing was done."""
    scene = await start(nursery, contexts, ill, evidence=evidence)

    if evidence is RetryEvidence.ANY:
        assert await scene.call() == 200
    else:
        with pytest.raises(UpstreamFailure):
            await scene.call()

    first, *others = scene.journal.attempts
    assert (first.error, first.usage, first.is_known_zero) == ("upstream_reset", None, False)
    assert len(others) == (1 if evidence is RetryEvidence.ANY else 0)
    assert len(scene.backends[0].seen) == (0 if ill is Ill.RESET_BEHIND_HANDSHAKE else 1)
    assert len(scene.backends[1].seen) == len(others)
    assert scene.held == (0, 0, 0, 0)


@pytest.mark.parametrize("on", [RetryOn.RETRIABLE_4XX, RetryOn.REFUSED_STREAM])
async def test_handshake_that_fails_is_only_repeated_on_request(
    on: RetryOn,
    contexts: Contexts,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It is a failed connection: other conditions do not mean it."""
    scene = await start(nursery, contexts, Ill.RESET_AT_HELLO, on=on)

    with pytest.raises(UpstreamFailure, match="TLS_error"):
        await scene.call()

    assert len(scene.journal.attempts) == 1
    assert scene.held == (0, 0, 0, 0)


async def _leave_behind_step(contexts: Contexts, ill: Ill, step: int) -> bool:
    """Make one call that is left behind a step; return whether it lived that long."""
    async with trio.open_nursery() as nursery:
        scene = await start(nursery, contexts, ill)
        await trio.testing.wait_all_tasks_blocked()
        with trio.CancelScope() as client:
            instrument = AfterStep(step, client.cancel)
            trio.lowlevel.add_instrument(instrument)
            await scene.call()
        trio.lowlevel.remove_instrument(instrument)
        assert scene.held == (0, 0, 0, 0)
        left_at = trio.current_time()
        await trio.testing.wait_all_tasks_blocked()
        assert scene.network.open_connections == 2 * scene.idle
        assert all(at <= left_at for backend in scene.backends for at in backend.gone_at)
        assert all(attempt.ended_at is not None for attempt in scene.journal.attempts)
        nursery.cancel_scope.cancel()
    return instrument.count >= step


@pytest.mark.parametrize("ill", [Ill.RESET_AMID_FLIGHT, Ill.SILENT_AMID_FLIGHT])
def test_client_may_leave_behind_any_step_of_handshakes(ill: Ill, contexts: Contexts) -> None:
    """Neither the failed connection nor the next one, half set up, stays open."""
    for step in count(1):
        clock = trio.testing.MockClock(autojump_threshold=0)
        if not trio.run(_leave_behind_step, contexts, ill, step, clock=clock):
            assert step > 10
            return
