"""Configurations that a Router takes while it serves."""

import gc
import weakref

import pytest
import trio
import trio.testing

from tests.compose.world import SLOW, World, start_world, version_of
from tests.demo.raw_client import Got, ask, chat_body
from tests.fakes.router import as_snapshot
from tests.upstream.scenes import OK, SILENT
from vsr.config.attempt import Code
from vsr.routing.generation import Generation

LISTED = "global: {router: {include_config_models_in_list: true}}"


@pytest.fixture
async def world(nursery: trio.Nursery) -> World:
    """Return one that serves version 1."""
    return await start_world(nursery)


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


async def test_key_that_is_no_longer_one_is_refused_at_once(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """Listener settings that are no socket's hold for the next request."""
    document = world.document().replace("port: 8899", "port: 8899, api_keys: [secret]")
    await world.serve(document)

    got = await world.ask()

    assert got.status == 401


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
