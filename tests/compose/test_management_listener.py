"""The listener of the management API: bound, moved, encrypted while it serves."""

import logging
import ssl
from collections.abc import Sequence
from pathlib import Path

import attrs
import msgspec
import pytest
import trio
import trio.testing
import trustme

from tests.demo.raw_client import Got, ask
from vsr.compose.binding import Binding
from vsr.compose.management_listener import ManagementListener, WithManagement, check_at_start
from vsr.config.attempt import Reason
from vsr.errors import ConfigRejected, NoHealthyEndpoint
from vsr.gateway.answering import Answerer, AnsweringFront, ReadBody
from vsr.headers import HeaderLine
from vsr.network.memory import MemoryNetwork
from vsr.network.port import ConnectFailed
from vsr.network.tls import start_client_tls
from vsr.resources.listener import ListenerTls
from vsr.resources.management import Management
from vsr.resources.snapshot import Snapshot

OLD, NEW = 8080, 8081
TLS = ListenerTls("tls.crt", "tls.key")
SLOW_S = 5.0


@attrs.define(eq=False)
class Clients:
    """Implements `config.lifecycle.Installation`: what serves clients."""

    fault: Exception | None = None
    commit_fault: Exception | None = None
    log: list[str] = attrs.field(factory=list)
    reused: tuple[str, ...] = ("upstream",)

    def check(self, snapshot: Snapshot) -> tuple[Reason, ...]:
        """Find no fault."""
        del snapshot
        return ()

    async def prepare(self, snapshot: Snapshot, version: int) -> "Clients":
        """Fail if it is told to."""
        del snapshot, version
        await trio.lowlevel.checkpoint()
        if self.fault is not None:
            raise self.fault
        return self

    async def commit(self) -> None:
        """Note it, or fail."""
        await trio.lowlevel.checkpoint()
        if self.commit_fault is not None:
            raise self.commit_fault
        self.log.append("commit")

    async def discard(self) -> None:
        """Note it."""
        await trio.lowlevel.checkpoint()
        self.log.append("discard")


@attrs.define(eq=False)
class World:
    """An API on a network in memory."""

    network: MemoryNetwork
    clients: Clients
    listener: ManagementListener
    installation: WithManagement

    async def serve(self, management: Management) -> None:
        """Serve another configuration."""
        snapshot = Snapshot("x", management=management)
        assert self.installation.check(snapshot) == ()
        prepared = await self.installation.prepare(snapshot, 2)
        assert prepared.reused == ("upstream",)
        try:
            await prepared.commit()
        except BaseException:
            with trio.CancelScope(shield=True, relative_deadline=1):
                await prepared.discard()
            raise

    async def ask(self, port: int, context: ssl.SSLContext | None = None) -> Got:
        """Send one request to a port."""
        connection = await self.network.connect("router", port)
        if context is not None:
            connection = await start_client_tls(connection, context, "router")  # type: ignore[assignment]
        got = await ask(connection, target=b"/slow", method=b"GET")
        connection.close()
        return got


def _load() -> Answerer:
    async def answer(
        method: bytes, target: bytes, lines: Sequence[HeaderLine], read_body: ReadBody
    ) -> tuple[int, list[HeaderLine], bytes]:
        del method, target, lines, read_body
        await trio.sleep(SLOW_S)
        return 200, [], b"said"

    return answer


async def started(nursery: trio.Nursery, folder: Path, binding: Binding, *taken: int) -> World:
    """Return one that runs; some ports are taken by others."""
    network = MemoryNetwork()
    for port in taken:
        await network.listen("127.0.0.1", port)
    front = AnsweringFront(_load)
    await front.answerer()  # the virtual clock does not wait for threads
    listener = ManagementListener(network, front, binding, folder)
    clients = Clients()
    await nursery.start(listener.run)
    return World(network, clients, listener, WithManagement(clients, listener))


@pytest.fixture
async def world(nursery: trio.Nursery, tmp_path: Path) -> World:
    """Return one whose API listens in clear text."""
    return await started(nursery, tmp_path, Binding("127.0.0.1", OLD, is_flag=False), 7)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Return a certificate authority."""
    return trustme.CA()


@pytest.fixture
def pair(authority: trustme.CA, tmp_path: Path) -> trustme.LeafCert:
    """Return a certificate that is there."""
    issued = authority.issue_cert("router")
    issued.private_key_and_cert_chain_pem.write_to_path(tmp_path / "tls.crt")
    issued.private_key_pem.write_to_path(tmp_path / "tls.key")
    return issued


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """Return what a client connects with."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_api_moves_and_ends_what_is_under_way(
    world: World, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Who has asked at the old place is answered there; nobody else is."""
    results: list[Got] = []

    async def slow() -> None:
        results.append(await world.ask(OLD))

    nursery.start_soon(slow)
    await trio.testing.wait_all_tasks_blocked()
    await world.serve(Management(port=NEW))

    assert (world.listener.port, world.clients.log) == (NEW, ["commit"])
    with pytest.raises(ConnectFailed):
        await world.ask(OLD)
    assert (await world.ask(NEW)).status == 200
    await trio.sleep(SLOW_S)
    assert [got.status for got in results] == [200]


@pytest.mark.parametrize("port", [7, OLD])
async def test_address_that_is_taken_refuses_the_change(
    world: World, port: int, autojump_clock: trio.testing.MockClock
) -> None:
    """The API and the clients are served as before; where it is its own nothing changes."""
    if port == OLD:
        await world.serve(Management(port=OLD))
    else:
        with pytest.raises(ConfigRejected, match=r"management_api: cannot listen on port 7"):
            await world.serve(Management(port=port))

    assert (world.listener.port, world.listener.binding.port) == (OLD, OLD)
    assert (await world.ask(OLD)).status == 200


@pytest.mark.parametrize("fault", [ConfigRejected([]), NoHealthyEndpoint()])
async def test_change_that_clients_cannot_have_moves_nothing(
    world: World, fault: Exception, autojump_clock: trio.testing.MockClock
) -> None:
    """What was bound is free again, whether it fails before it serves or when it is to."""
    world.clients.fault = fault
    with pytest.raises(type(fault)):
        await world.serve(Management(port=NEW))
    world.clients.fault, world.clients.commit_fault = None, fault
    with pytest.raises(type(fault)):
        await world.serve(Management(port=NEW))

    assert (world.listener.port, world.clients.log) == (OLD, ["discard"])
    assert (await world.ask(OLD)).status == 200
    world.clients.commit_fault = None
    await world.serve(Management(port=NEW))
    assert (await world.ask(NEW)).status == 200


async def test_change_that_is_cancelled_frees_what_was_bound(world: World) -> None:
    """Wherever it is."""
    with trio.CancelScope() as scope:
        scope.cancel()
        await world.serve(Management(port=NEW))

    assert scope.cancelled_caught
    await world.serve(Management(port=NEW))
    assert world.listener.port == NEW


async def test_address_that_was_taken_is_tried_with_each_change(
    nursery: trio.Nursery, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And holds none of them up; another address is one that must be free."""
    binding = Binding("127.0.0.1", 7, is_flag=False)
    world = await started(nursery, tmp_path, binding, 7, 9)
    assert world.listener.port is None
    assert "cannot listen on port 7" in caplog.text

    await world.serve(Management(port=7))
    with pytest.raises(ConfigRejected):
        await world.serve(Management(port=9))
    with caplog.at_level(logging.INFO, "vsr"):
        await world.serve(Management(port=NEW))

    assert world.clients.log == ["commit", "commit"]
    assert world.listener.port == NEW
    assert "the management API answers on port 8081" in caplog.text


async def test_flag_stays_where_it_is(nursery: trio.Nursery, tmp_path: Path) -> None:
    """Whatever the document says."""
    world = await started(nursery, tmp_path, Binding("127.0.0.1", OLD, is_flag=True))

    await world.serve(Management(port=NEW))

    assert world.listener.port == OLD


async def test_tls_comes_changes_and_goes_on_the_same_socket(
    world: World,
    authority: trustme.CA,
    pair: trustme.LeafCert,
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A certificate is loaded with each configuration, that of a SIGHUP, too."""
    encrypted = Management(port=OLD, tls=TLS)
    await world.serve(encrypted)
    first = await world.ask(OLD, trusting(authority))
    clear = await world.ask(OLD)
    another = trustme.CA()
    issued = another.issue_cert("router")
    issued.private_key_and_cert_chain_pem.write_to_path(tmp_path / "tls.crt")
    issued.private_key_pem.write_to_path(tmp_path / "tls.key")
    await world.serve(encrypted)
    second = await world.ask(OLD, trusting(another))
    await world.serve(Management(port=OLD))
    third = await world.ask(OLD)

    assert (first.status, second.status, third.status) == (200, 200, 200)
    assert clear.status != 200


@pytest.mark.parametrize("missing", ["tls.crt", "tls.key"])
async def test_certificate_that_cannot_be_served_refuses_the_change(
    world: World,
    pair: trustme.LeafCert,
    missing: str,
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """And the start, where it is looked at before anything is bound."""
    (tmp_path / missing).write_text("nonsense")

    with pytest.raises(ConfigRejected, match=r"management_api\.tls: its certificate cannot"):
        await world.serve(Management(port=NEW, tls=TLS))
    await world.serve(Management(port=NEW, tls=None))
    binding = Binding("127.0.0.1", 1, is_flag=True, tls=TLS)
    with pytest.raises(ConfigRejected):
        check_at_start(binding, Snapshot("x", management=Management(tls=TLS)), tmp_path)
    check_at_start(None, Snapshot("x", management=Management(tls=TLS)), tmp_path)

    assert world.listener.port == NEW
    assert (await world.ask(NEW)).status == 200


async def test_certificate_that_is_broken_later_leaves_the_one_before(
    world: World,
    authority: trustme.CA,
    pair: trustme.LeafCert,
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The change is refused, as where a listener of clients has such a one."""
    await world.serve(Management(port=OLD, tls=TLS))
    (tmp_path / "tls.key").write_text("nonsense")

    with pytest.raises(ConfigRejected):
        await world.serve(Management(port=OLD, tls=TLS))

    assert (await world.ask(OLD, trusting(authority))).status == 200


async def test_api_that_has_failed_holds_no_change_up(
    nursery: trio.Nursery, tmp_path: Path
) -> None:
    """Nothing is bound for it."""
    listener = ManagementListener(
        MemoryNetwork(), AnsweringFront(_load), Binding("127.0.0.1", OLD, is_flag=False), tmp_path
    )
    installation = WithManagement(Clients(), listener)

    prepared = await installation.prepare(Snapshot("x", management=Management(port=NEW)), 2)
    await prepared.commit()

    assert listener.port is None
    assert msgspec.structs.replace(listener.binding).port == OLD
