"""Listeners that change while clients are served."""

import errno
from collections.abc import Callable

import attrs
import pytest
import trio
import trio.testing

from tests.compose.world import SLOW, World, start_world, version_of, with_setting
from tests.demo.raw_client import Got, ask, chat_body
from tests.fakes.h2_client import H2Client
from tests.fakes.router import as_snapshot
from tests.faults.moments import request_of
from tests.network.ends import read_all
from tests.upstream.scenes import OK
from vsr.errors import ConfigRejected
from vsr.gateway.listener_server import LAST_REQUEST_S
from vsr.network.memory import MemoryListener, MemoryNetwork
from vsr.network.port import ConnectFailed
from vsr.routing.generation import Active, Generation, Retired

PART = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n"
REST = b"1\r\n}\r\n0\r\n\r\n"


@pytest.fixture
async def world(nursery: trio.Nursery) -> World:
    """Return one that serves version 1."""
    return await start_world(nursery)


@attrs.define
class SwitchesByRequest:
    """Implements `routing.generation.Active` as a worker that a request tells of a version."""

    active: Active
    commit: Callable[[], None] | None

    @property
    def current(self) -> Generation | None:
        """Return what serves, which is something else by now."""
        commit, self.commit = self.commit, None
        if commit is not None:
            commit()
        return self.active.current

    @property
    def retired(self) -> Retired:
        """Return those that served before."""
        return self.active.retired

    def activate(self, generation: Generation) -> None:
        """Serve it."""
        self.active.activate(generation)


class TakenListener(MemoryListener):
    """A bound socket that cannot listen."""

    def __init__(self) -> None:
        super().__init__(MemoryNetwork(), "127.0.0.1", 9001)

    def open(self) -> None:
        """Fail."""
        raise OSError(errno.EADDRINUSE, "in use")


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


async def test_other_address_on_a_served_port_is_taken_over(
    world: World, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """There and back; the request under way ends, and no client comes before the change serves."""
    world.backend.plays = [SLOW, OK]
    first: list[Got] = []

    async def begin() -> None:
        first.append(await world.ask())

    nursery.start_soon(begin)
    await trio.testing.wait_all_tasks_blocked()
    everywhere = world.document().replace("127.0.0.1, port: 8899", "0.0.0.0, port: 8899")
    prepared = await world.installation.prepare(as_snapshot(everywhere), 2)
    before = await world.ask()
    await prepared.commit()
    world.version = 2
    after = await world.ask()
    await world.serve(world.document())
    again = await world.ask()
    await trio.sleep(6)

    assert [version_of(got) for got in (*first, before, after, again)] == [b"1", b"1", b"2", b"3"]
    assert world.running.router.server.ports == {"main": 8899}


async def test_new_listener_takes_clients_when_it_serves(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """One that may be given up again would reset them."""
    more = ", {name: a, address: 127.0.0.1, port: 9001}"

    prepared = await world.installation.prepare(as_snapshot(world.document(more=more)), 2)
    with pytest.raises(ConnectFailed):
        await world.ask(9001)
    await prepared.commit()

    assert version_of(await world.ask(9001)) == b"2"


async def test_address_that_is_taken_at_the_last_moment_changes_nothing(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """The change fails as one."""
    more = ", {name: a, address: 127.0.0.1, port: 9001}"
    prepared = await world.installation.prepare(as_snapshot(world.document(more=more)), 2)
    [server] = prepared.change.new
    server.bound = TakenListener()

    with pytest.raises(ConfigRejected, match="cannot listen on port 9001: Address already in use"):
        await prepared.commit()
    await prepared.discard()

    assert version_of(await world.ask()) == b"1"
    assert await world.running.held() == (0, 0)


@pytest.mark.parametrize("when", ["before its first request", "between requests"])
@pytest.mark.parametrize("change", ["renamed", "removed", "moved"])
async def test_silent_client_has_one_more_request_when_its_listener_ends(
    change: str, when: str, world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """A request that is on its way is answered, and told that it is the last."""
    second = ", {name: second, address: 127.0.0.1, port: 9001}"
    await world.serve(world.document(more=second))
    connection = await world.running.network.connect("router", 9001)
    if when == "between requests":
        await ask(connection, chat_body(model="small"))
    await trio.testing.wait_all_tasks_blocked()

    becomes = {"renamed": second.replace("second", "other"), "removed": ""}
    await world.serve(world.document(more=becomes.get(change, second.replace("9001", "9002"))))
    await trio.sleep(LAST_REQUEST_S - 0.1)
    got = await ask(connection, chat_body(model="small"))
    await trio.testing.wait_all_tasks_blocked()

    assert (got.status, version_of(got)) == (200, b"3")
    assert got.line(b"connection") == b"close"
    assert connection.is_gone


@pytest.mark.parametrize("change", ["renamed", "removed"])
async def test_request_that_switches_its_worker_is_served(
    change: str, world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """Though it is the first of a listener that is gone when it is answered."""
    second = ", {name: second, address: 127.0.0.1, port: 9001}"
    await world.serve(world.document(more=second))
    connection = await world.running.network.connect("router", 9001)
    await trio.testing.wait_all_tasks_blocked()
    more = second.replace("second", "other") if change == "renamed" else ""
    prepared = await world.installation.prepare(as_snapshot(world.document(more=more)), 3)
    gateway = world.running.router.gateway
    gateway.active = SwitchesByRequest(gateway.active, prepared.commit_now)

    got = await ask(connection, chat_body(model="small"))

    assert (got.status, version_of(got), got.line(b"connection")) == (200, b"3", b"close")
    [line] = await world.running.log()
    assert line["listener"] == ("other" if change == "renamed" else "second")


async def test_client_that_stays_silent_is_let_go_when_its_listener_ends(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """It holds the listener no longer than that."""
    fresh, used = await world.running.connect(), await world.running.connect()
    await ask(used, chat_body(model="small"))

    await world.serve(world.document().replace("name: main,", "name: other,"))
    await trio.sleep(LAST_REQUEST_S - 0.1)
    before = (fresh.is_gone, used.is_gone)
    await trio.sleep(0.2)

    assert before == (False, False)
    assert (fresh.is_gone, used.is_gone) == (True, True)
    assert len(world.running.router.server._listeners) == 1


async def test_stream_that_promised_more_has_one_more_request_behind_it(
    world: World, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its head was sent before the listener ended, and could not say that it is the last."""
    world.backend.plays = [(PART, 8.0, REST), OK]
    connection = await world.running.connect()
    got: list[Got] = []

    async def stream() -> None:
        got.append(await ask(connection, chat_body(model="small")))

    nursery.start_soon(stream)
    await trio.testing.wait_all_tasks_blocked()

    await world.serve(world.document().replace("name: main,", "name: other,"))
    await trio.sleep(8 + LAST_REQUEST_S - 0.1)
    got.append(await ask(connection, chat_body(model="small")))

    assert [(each.status, each.line(b"connection")) for each in got] == [
        (200, b""),
        (200, b"close"),
    ]


async def test_old_connection_gets_the_rules_of_whoever_is_at_its_address(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """To have come early is no way around a key."""
    connection = await world.running.connect()
    await ask(connection, chat_body(model="small"))

    keyed = world.document().replace("name: main,", "name: other, api_keys: [secret],")
    await world.serve(keyed)
    got = await ask(connection, chat_body(model="small"))

    assert got.status == 401
    assert [line["listener"] for line in await world.running.log()] == ["main", "other"]


async def test_timeout_of_a_listener_changes_for_silent_clients(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """A shorter one and a longer one; counted from the change."""
    fresh, used = await world.running.connect(), await world.running.connect()
    await ask(used, chat_body(model="small"))
    gone = []
    for timeout_s, silent_s in ((7, 6.9), (100, 99), (20, 19.9)):
        await world.serve(with_setting(world, f"timeout: {timeout_s}s"))
        await trio.sleep(silent_s)
        gone.append((fresh.is_gone, used.is_gone))
    await trio.sleep(0.2)

    assert gone == [(False, False)] * 3
    assert (fresh.is_gone, used.is_gone) == (True, True)


async def test_timeout_of_a_listener_changes_for_silent_clients_of_http2(
    world: World, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """As for others."""
    client = await H2Client(await world.running.connect()).start(nursery)
    await client.request(chat_body(model="small"))
    await trio.testing.wait_all_tasks_blocked()

    changed_at = trio.current_time()
    await world.serve(with_setting(world, "timeout: 7s"))
    await client.closed.wait()

    assert client.streams[1].status == 200
    assert 7 <= trio.current_time() - changed_at < 8


async def test_connection_limit_changes_at_once(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """A lower one closes nobody; a higher one lets in who waits."""
    first, second = await world.running.connect(), await world.running.connect()
    await ask(first, chat_body(model="small"))

    await world.serve(with_setting(world, "max_connections: 1"))
    third = await world.running.connect()
    await third.send(request_of(chat_body(model="small")))
    await trio.testing.wait_all_tasks_blocked()
    waits = world.running.router.server.open_connections
    await world.serve(with_setting(world, "max_connections: 3"))
    got = await ask(second, chat_body(model="small"))
    await trio.testing.wait_all_tasks_blocked()

    assert waits == 2
    assert got.status == 200
    assert world.running.router.server.open_connections == 3
