"""Active health checks through the whole Router: when they run, what they ask, what follows."""

from collections import Counter

import pytest
import trio
import trio.testing

from tests.demo.raw_client import Got, chat_body
from tests.demo.raw_client import ask as ask_on
from tests.engine.stepped_backend import Act
from tests.fakes.backend import start_backend
from tests.fakes.router import ROUTER_PORT, as_snapshot, document_of, model_of, start_router
from tests.upstream.raw_backend import reply
from tests.upstream.scenes import (
    BODY,
    NOTHING,
    OK,
    RESET,
    SILENT,
    Play,
    Scene,
    failing,
    model_over,
    start_scene,
)
from vsr.compose.generation import build_generation
from vsr.demo.script import Script
from vsr.network.memory import Fault as NetworkFault
from vsr.network.memory import MemoryNetwork

CHECKED = "health_check_path: /health, health_check_interval: 10s, health_check_timeout: 2s"


async def calls_of(scene: Scene, count: int) -> dict[int, int]:
    """Send requests in turn; return how many calls each backend got of them."""
    before = len(scene.calls)
    for _ in range(count):
        assert (await scene.ask()).status == 200
    return dict(Counter(scene.order[before:]))


def check_times(scene: Scene, backend: int = 0) -> list[float]:
    """Return when a backend was asked for its health."""
    return [check.at for check in scene.backends[backend].checks]


async def get(network: MemoryNetwork, target: bytes) -> Got:
    """Ask the Router itself for something, however far it is."""
    client = await network.connect("router", ROUTER_PORT)
    got = await ask_on(client, target=target, method=b"GET")
    client.close()
    return got


@pytest.mark.parametrize(
    ("health", "at"),
    [((1.5, *OK), 1.5), ((1.5, *failing(500)), 1.5), (SILENT, 2), ((0.5, *RESET), 0.5)],
    ids=["passes", "fails", "is silent", "resets"],
)
async def test_router_serves_once_every_endpoint_was_checked(
    health: Play, at: float, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """However the first checks end; until then it is not ready, and refuses requests."""
    network = MemoryNetwork()
    served_at: list[float] = []

    async def start() -> None:
        plays: list[list[Play]] = [[OK], [OK]]
        await start_scene(nursery, CHECKED, *plays, health=[OK, health], network=network)
        served_at.append(trio.current_time())

    nursery.start_soon(start)
    await trio.sleep(at - 0.1)
    early = [await get(network, b"/ready"), await get(network, b"/v1/models")]
    await trio.sleep(0.2)
    late = [await get(network, b"/ready"), await get(network, b"/v1/models")]

    assert [got.status for got in early] == [503, 503]
    assert early[0].json() == {"status": "not_ready"}
    assert [got.status for got in late] == [200, 200]
    assert served_at == [pytest.approx(at)]


async def test_endpoint_out_of_reach_does_not_hold_up_the_start(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Connecting is part of the check's time, whatever the calls' connect timeout is."""
    network = MemoryNetwork()
    network.faults["b0.test"] = NetworkFault.SILENT

    scene = await start_scene(nursery, CHECKED, [OK], [OK], network=network)

    assert trio.current_time() == pytest.approx(2)
    assert await calls_of(scene, 4) == {1: 4}


@pytest.mark.parametrize(
    "health", [failing(503), failing(404), (reply(204),), (reply(301),), RESET, SILENT]
)
async def test_endpoint_that_fails_its_first_check_gets_no_calls(
    health: Play, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Only 200 passes; one pass brings it back."""
    scene = await start_scene(nursery, CHECKED, [OK], [OK], health=[health])

    assert await calls_of(scene, 6) == {1: 6}
    scene.backends[0].health = OK
    await trio.sleep_until(59)
    assert await calls_of(scene, 6) == {1: 6}
    await trio.sleep_until(63)

    assert await calls_of(scene, 6) == {0: 3, 1: 3}


async def test_calls_go_to_all_endpoints_if_none_passes(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It is likelier that the checks are wrong."""
    scene = await start_scene(nursery, CHECKED, [OK], [OK], health=[failing(404)] * 2)

    assert await calls_of(scene, 6) == {0: 3, 1: 3}


@pytest.mark.parametrize("status", [201, 204, 301, 404, 500, 503])
async def test_wrong_status_takes_an_endpoint_out_at_once(
    status: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One is enough; it is no ejection, and a single pass ends it."""
    settings = CHECKED + ", consecutive_5xx: 1"
    scene = await start_scene(nursery, settings, [OK], [OK])
    assert await calls_of(scene, 2) == {0: 1, 1: 1}
    scene.backends[0].health = (reply(status, b"{}" if status != 204 else b""),)
    await trio.sleep_until(59)
    assert await calls_of(scene, 2) == {0: 1, 1: 1}

    await trio.sleep_until(60.5)
    assert await calls_of(scene, 4) == {1: 4}
    assert not scene.state.hosts[0].is_ejected
    scene.backends[0].health = OK
    await trio.sleep_until(70.5)

    assert await calls_of(scene, 4) == {0: 2, 1: 2}


@pytest.mark.parametrize("health", [RESET, (Act.CLOSE,), SILENT])
async def test_three_network_errors_in_a_row_take_an_endpoint_out(
    health: Play, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Two don't, nor do more with a pass between them."""
    scene = await start_scene(nursery, CHECKED, [OK], [OK])
    await scene.ask()
    backend = scene.backends[0]
    for is_well in (False, False, True, False, False):
        backend.health = OK if is_well else health
        await trio.sleep_until(_next_check(scene) + 5)
        assert await calls_of(scene, 4) == {0: 2, 1: 2}

    await trio.sleep_until(_next_check(scene) + 5)

    assert await calls_of(scene, 4) == {1: 4}


def _next_check(scene: Scene) -> float:
    """Return when the first endpoint's next check begins."""
    return scene.state.health[0].next_at(trio.current_time(), has_traffic=len(scene.calls) > 1)


async def test_checks_are_rare_until_the_model_has_carried_a_call(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Every minute; from the next one on as the document says, for all endpoints alike."""
    scene = await start_scene(nursery, CHECKED, [OK], [OK])
    await trio.sleep_until(150)
    assert check_times(scene) == pytest.approx([0, 60, 120])

    await scene.ask()
    await trio.sleep_until(215)

    for backend in range(2):
        assert check_times(scene, backend) == pytest.approx([0, 60, 120, 180, 190, 200, 210])


async def test_next_check_is_an_interval_behind_the_end_of_the_last_one(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A slow endpoint is asked less often, and keeps nobody else waiting."""
    scene = await start_scene(nursery, CHECKED, [OK], [OK], health=[(1.5, *OK), SILENT])
    await scene.ask()
    scene.backends[1].health = OK

    await trio.sleep_until(100)

    # The second one was set down before the call.
    assert check_times(scene) == pytest.approx([0, 61.5, 73, 84.5, 96])
    assert check_times(scene, 1) == pytest.approx([0, 62, 72, 82, 92])


async def test_check_asks_for_its_path_alone(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """With the endpoint's own authority, our name and no credential."""
    scene = await start_scene(nursery, CHECKED, [OK])

    [check] = scene.backends[0].checks
    authority = f"b0.test:{scene.backends[0].port}".encode()
    assert (check.head.method, check.head.target, check.body) == (b"GET", b"/health", b"")
    assert check.head.authority == authority
    assert dict(check.head.lines) == {
        b"host": authority,
        b"user-agent": b"vllm-semantic-router/health-check",
    }


async def test_connection_of_a_check_is_kept_for_calls(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """And that of a call for checks: one serves them all."""
    scene = await start_scene(nursery, CHECKED, [OK])

    for _ in range(3):
        await scene.ask()
        await trio.sleep(61)

    assert len(scene.backends[0].checks) >= 4
    assert scene.backends[0].accepted == 1
    assert await scene.held() == NOTHING


def answer_of(size_bytes: int) -> Play:
    """Return a healthy answer with a body of this size, in pieces."""
    head, _, body = reply(200, b"x" * size_bytes).partition(b"\r\n\r\n")
    pieces = [body[at : at + 8192] for at in range(0, size_bytes, 8192)]
    return (head + b"\r\n\r\n", *pieces)


@pytest.mark.parametrize(("size", "connections"), [(60_000, 1), (2_000_000, 4)])
async def test_large_answer_to_a_check_is_cut_off(
    size: int,
    connections: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It passes all the same, but costs its connection; a short one does not."""
    scene = await start_scene(nursery, CHECKED, [OK], health=[answer_of(size)])

    await trio.sleep_until(185)

    assert len(scene.backends[0].checks) == 4
    assert scene.state.hosts[0].is_healthy
    assert scene.backends[0].accepted == connections
    assert scene.backends[0].sent_bytes <= 4 * 200_000
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("is_under_way", [False, True])
async def test_checks_end_with_their_configuration(
    is_under_way: bool,  # noqa: FBT001  # a case
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """One that is under way is broken off, and its connection closed."""
    scene = await start_scene(nursery, CHECKED, [OK])
    await scene.ask()
    backend = scene.backends[0]
    if is_under_way:
        backend.health = SILENT
        await trio.sleep_until(61)
        assert await scene.held() == {**NOTHING, "connections": 1}
    checks = len(backend.checks)

    await scene.reload(document_of(model_over(scene.backends)))

    assert await scene.held() == NOTHING
    assert len(backend.gone_at) == is_under_way
    await trio.sleep(500)
    assert len(backend.checks) == checks


async def test_checks_end_with_the_process(autojump_clock: trio.testing.MockClock) -> None:
    """A drain does not wait for one that is under way."""
    async with trio.open_nursery() as nursery:
        scene = await start_scene(nursery, CHECKED, [OK])
        scene.backends[0].health = SILENT
        await trio.sleep_until(61)

        await scene.router.router.server.drain()
        held = await scene.held()

        assert trio.current_time() == pytest.approx(61)
        assert held == NOTHING
        nursery.cancel_scope.cancel()


async def test_endpoint_that_answers_calls_badly_is_not_out_by_its_checks(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """They are two judges: without ejection only the checks' answers matter."""
    scene = await start_scene(nursery, CHECKED, [failing(500)], [failing(500)])

    for _ in range(10):
        await scene.ask(BODY)

    assert Counter(scene.order) == {0: 5, 1: 5}


async def test_generation_that_never_gets_warm_is_checked_no_longer_than_it_is_wanted(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Whoever gives up on it leaves no checks behind."""
    network = MemoryNetwork()
    sound = await start_backend(nursery, network)
    mute = await start_backend(nursery, network, Script(latency_s=1000))
    router = await start_router(nursery, network, document_of(model_of(sound.port)))
    reliability = (
        "{health_check_path: /slow, health_check_interval: 1s, health_check_timeout: 100s}"
    )
    document = document_of(model_of(mute.port, reliability=reliability))
    new = build_generation(router.parts, as_snapshot(document), 2, router.generation)

    with trio.move_on_after(5):
        await router.router.activate(new)
    asked = len(mute.calls)
    await trio.sleep(1000)

    assert asked >= 1
    assert (len(mute.calls), new.is_retired) == (asked, True)
    assert router.generation.version == 1
    assert (await router.ask(chat_body(model="auto"))).status == 200
