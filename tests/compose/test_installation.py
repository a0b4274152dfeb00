"""Configurations that a Router takes while it serves."""

import gc
import weakref
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing

from tests.demo.raw_client import Got, ask, chat_body
from tests.fakes.h2_client import H2Client
from tests.fakes.router import RunningRouter, as_snapshot, start_router
from tests.faults.moments import request_of
from tests.network.ends import read_all
from tests.upstream.scenes import OK, SILENT, PlayingBackend, start_backends
from vsr.compose.installation import LocalInstallation
from vsr.config.attempt import Code
from vsr.errors import ConfigRejected
from vsr.network.memory import MemoryNetwork
from vsr.network.port import ConnectFailed
from vsr.routing.generation import Generation

DOCUMENT = """
listeners: [{{name: main, address: 127.0.0.1, port: {port}}}{more}]
providers:
  models:
    - {{name: small, backend_refs: [{{endpoint: "{backend}"}}]}}
{rest}
"""
SLOW = (5.0, *OK)
LISTED = "global: {router: {include_config_models_in_list: true}}"


@attrs.define(eq=False)
class World:
    """A Router, its installation, its backend."""

    running: RunningRouter
    installation: LocalInstallation
    backend: PlayingBackend
    version: int = 1

    def document(self, port: int = 8899, more: str = "", rest: str = "") -> str:
        """Return a document for its backend."""
        return DOCUMENT.format(port=port, more=more, rest=rest, backend=address_of(self.backend))

    async def serve(self, document: str) -> tuple[str, ...]:
        """Serve another document; return what serves on as it was."""
        snapshot = as_snapshot(document)
        assert self.installation.check(snapshot) == ()
        prepared = await self.installation.prepare(snapshot, self.version + 1)
        await prepared.commit()
        self.version += 1
        return prepared.reused

    async def ask(self, port: int = 8899, model: str = "small") -> Got:
        """Send one request to a port."""
        connection = await self.running.network.connect("router", port)
        got = await ask(connection, chat_body(model=model))
        connection.close()
        return got


def address_of(backend: PlayingBackend) -> str:
    """Return where the Router finds it."""
    return f"{backend.host}:{backend.port}"


def version_of(got: Got) -> bytes | None:
    """Return the version that an answer tells."""
    return got.line(b"x-vsr-config-version")


@pytest.fixture
async def world(nursery: trio.Nursery) -> World:
    """Return one that serves version 1."""
    network = MemoryNetwork()
    [backend] = await start_backends(nursery, network, [[OK]])
    document = DOCUMENT.format(port=8899, more="", rest="", backend=address_of(backend))
    running = await start_router(nursery, network, document)
    return World(running, LocalInstallation(running.router, Path()), backend)


async def test_request_ends_on_the_version_that_it_began_on(
    world: World, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """While new ones get the next, on connections that were open before, too."""
    world.backend.plays = [SLOW, OK]
    first: list[Got] = []
    connection = await world.running.connect()

    async def begin() -> None:
        first.append(await ask(connection, chat_body(model="small")))

    nursery.start_soon(begin)
    await trio.testing.wait_all_tasks_blocked()
    await world.serve(
        world.document(rest="global: {router: {include_config_models_in_list: true}}")
    )
    second = await world.ask()
    await trio.sleep(10)

    assert [version_of(got) for got in (*first, second)] == [b"1", b"2"]
    third = await ask(connection, chat_body(model="small"))
    assert version_of(third) == b"2"


async def test_listener_moves_and_its_requests_end(
    world: World, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The old port takes nobody any more; who is being served there is served to the end."""
    world.backend.plays = [SLOW, OK]
    first: list[Got] = []

    async def begin() -> None:
        first.append(await world.ask())

    nursery.start_soon(begin)
    await trio.testing.wait_all_tasks_blocked()
    await world.serve(world.document(port=9000))
    assert version_of(await world.ask(9000)) == b"2"
    with pytest.raises(ConnectFailed):
        await world.ask(8899)
    assert first == []
    await trio.sleep(10)
    assert [got.status for got in first] == [200]
    assert world.running.router.server.ports == {"main": 9000}


async def test_listener_beside_the_others_comes_and_goes(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """The one that stays keeps its socket."""
    more = ", {name: second, address: 127.0.0.1, port: 9001}"

    reused = await world.serve(world.document(more=more))
    both = [(await world.ask(port)).status for port in (8899, 9001)]
    await world.serve(world.document())

    assert both == [200, 200]
    assert reused == ("signals",)
    assert (await world.ask(8899)).status == 200
    with pytest.raises(ConnectFailed):
        await world.ask(9001)


async def test_key_that_is_no_longer_one_is_refused_at_once(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """Listener settings that are no socket's hold for the next request."""
    document = world.document().replace("port: 8899", "port: 8899, api_keys: [secret]")
    await world.serve(document)

    got = await world.ask()

    assert got.status == 401


async def test_address_that_is_taken_leaves_everything_as_it_was(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """Also what was bound beside it."""
    taken = await world.running.network.listen("127.0.0.1", 9002)
    more = ", {name: a, address: 127.0.0.1, port: 9001}, {name: b, address: 127.0.0.1, port: 9002}"
    snapshot = as_snapshot(world.document(more=more))

    with pytest.raises(ConfigRejected, match=r"listeners\[b\]: cannot listen on port 9002"):
        await world.installation.prepare(snapshot, 2)

    assert version_of(await world.ask()) == b"1"
    taken.close()
    again = await world.running.network.listen("127.0.0.1", 9001)
    again.close()


@pytest.mark.parametrize("http", [1, 2])
async def test_connection_of_a_renamed_listener_ends_with_its_request(
    http: int, world: World, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It is answered, and told that there is no other; a new one has the new name's rules."""
    world.backend.plays = [SLOW, OK]
    document = world.document().replace("name: main,", "name: other, api_keys: [secret],")
    if http == 1:
        connection = await world.running.connect()
        await connection.send(request_of(chat_body(model="small")))
        await trio.testing.wait_all_tasks_blocked()
        await world.serve(document)
        await trio.sleep(6)
        raw = await read_all(connection)
        assert raw.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in raw.lower()
    else:
        client = await H2Client(await world.running.connect()).start(nursery)
        await client.request(chat_body(model="small"))
        await trio.testing.wait_all_tasks_blocked()
        await world.serve(document)
        await trio.sleep(6)
        await client.closed.wait()
        assert client.streams[1].status == 200
        assert client.goaways

    assert (await world.ask()).status == 401


async def test_listeners_that_swap_ports_keep_their_rules_apart(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """A client without a key is not carried over to where one is needed."""
    keyed = ", {name: keyed, address: 127.0.0.1, port: 9001, api_keys: [secret]}"
    await world.serve(world.document(more=keyed))
    world.backend.plays = [SLOW, OK]
    connection = await world.running.connect()
    await connection.send(request_of(chat_body(model="small")))
    await trio.testing.wait_all_tasks_blocked()

    await world.serve(world.document(port=9001, more=keyed.replace("9001", "8899")))
    await trio.sleep(6)

    raw = await read_all(connection)
    assert raw.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in raw.lower()
    assert [(await world.ask(port)).status for port in (8899, 9001)] == [401, 200]


async def test_other_address_on_a_served_port_needs_a_restart(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """Two sockets cannot have the port at once."""
    await trio.lowlevel.checkpoint()
    snapshot = as_snapshot(world.document().replace("127.0.0.1, port: 8899", "0.0.0.0, port: 8899"))

    (reason,) = world.installation.check(snapshot)

    assert (reason.code, reason.path) == (Code.RESTART_REQUIRED, "listeners[main].address")


async def test_what_is_given_up_holds_nothing(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """Neither its sockets nor its pools, and what serves goes on."""
    more = ", {name: a, address: 127.0.0.1, port: 9001}"
    prepared = await world.installation.prepare(as_snapshot(world.document(more=more)), 2)

    await prepared.discard()

    again = await world.running.network.listen("127.0.0.1", 9001)
    again.close()
    assert version_of(await world.ask()) == b"1"
    assert await world.running.held() == (0, 0)


async def test_change_that_is_cancelled_while_it_warms_holds_nothing(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """Neither its sockets nor its checks, and what serves goes on."""
    world.backend.health = SILENT
    more = ", {name: a, address: 127.0.0.1, port: 9001}"
    checked = "{name: small, reliability: {health_check_path: /health},"
    document = world.document(more=more).replace("{name: small,", checked)
    assert checked in document

    with trio.move_on_after(0.5) as scope:
        await world.installation.prepare(as_snapshot(document), 2)

    assert scope.cancelled_caught
    assert world.backend.checks
    again = await world.running.network.listen("127.0.0.1", 9001)
    again.close()
    assert version_of(await world.ask()) == b"1"
    assert await world.running.held() == (0, 0)


async def test_tracing_needs_a_restart_and_listeners_none(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """What only a restart would bring is refused, not ignored."""
    rest = (
        "global: {services: {observability: {tracing: {enabled: true, provider: opentelemetry,"
        " exporter: {type: stdout}, sampling: {type: always_on}}}}}"
    )
    (reason,) = world.installation.check(as_snapshot(world.document(rest=rest)))
    await trio.lowlevel.checkpoint()

    assert reason.code is Code.RESTART_REQUIRED
    assert reason.path == "global.services.observability.tracing"


async def test_generations_are_freed(world: World, autojump_clock: trio.testing.MockClock) -> None:
    """Once their last request has ended, and that of the listener's next one has begun."""
    gone = []
    for _ in range(5):
        generation: Generation | None = world.running.generation
        gone.append(weakref.ref(generation))
        generation = None
        await world.serve(world.document())
        assert (await world.ask()).status == 200
    await trio.testing.wait_all_tasks_blocked()
    gc.collect()

    assert [each() for each in gone] == [None] * 5


async def test_client_that_stays_idle_is_served_by_the_next_version(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """A change of the listener's limits does not cut it off."""
    connection = await world.running.connect()
    assert version_of(await ask(connection, chat_body(model="small"))) == b"1"
    document = world.document().replace("port: 8899", "port: 8899, timeout: 7s")
    await world.serve(document)

    assert version_of(await ask(connection, chat_body(model="small"))) == b"2"


async def test_backend_that_hangs_up_is_no_matter_of_versions(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """Pools of clusters that stay go on with their connections."""
    await world.ask()
    before = world.backend.accepted
    reused = await world.serve(world.document(rest="routing: {strategy: priority}"))
    await world.ask()

    assert world.backend.accepted == before
    assert "upstream" in reused
