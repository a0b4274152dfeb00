"""Ejection through the whole Router: what counts against an endpoint, and what follows."""

from collections import Counter
from collections.abc import Callable

import pytest
import trio
import trio.testing

from tests.engine.stepped_backend import EVENT_STREAM, Act
from tests.upstream.scenes import (
    BODY,
    NOTHING,
    OK,
    RESET,
    SILENT,
    STREAM,
    Play,
    Scene,
    event,
    failing,
    start_scene,
    streaming,
)
from vsr.network.memory import Fault as NetworkFault

AT_ONCE = "consecutive_5xx: 1, "


async def calls_of(scene: Scene, count: int, body: bytes = BODY) -> dict[int, int]:
    """Send requests in turn; return how many calls each backend got of them."""
    before = len(scene.calls)
    for _ in range(count):
        await scene.ask(body)
    return dict(Counter(scene.order[before:]))


@pytest.mark.parametrize("threshold", [1, 3])
async def test_endpoint_that_fails_in_a_row_is_left_out(
    threshold: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """After so many failures, not before, all calls go to the others."""
    scene = await start_scene(nursery, f"consecutive_5xx: {threshold}", [failing(503)], [OK])

    assert await calls_of(scene, 2 * threshold) == {0: threshold, 1: threshold}
    assert await calls_of(scene, 10) == {1: 10}
    assert [host.is_ejected for host in scene.state.hosts] == [True, False]


async def test_success_between_failures_begins_the_count_anew(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """In a row means in a row."""
    bad, worse = failing(500), failing(429)
    scene = await start_scene(nursery, "consecutive_5xx: 2", [bad, OK, bad, worse, bad, OK], [OK])

    assert await calls_of(scene, 12) == {0: 6, 1: 6}


async def test_ejected_endpoint_comes_back_at_the_sweep_behind_its_time(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """15 s are over at the sweep of 20 s; the next time it is out for twice as long."""
    settings = AT_ONCE + "base_ejection_time: 15s"
    scene = await start_scene(nursery, settings, [failing(503)], [OK])
    await calls_of(scene, 2)

    await trio.sleep_until(19.9)
    assert await calls_of(scene, 4) == {1: 4}
    await trio.sleep_until(20.1)
    assert await calls_of(scene, 3) == {0: 1, 1: 2}
    await trio.sleep_until(59.9)
    assert await calls_of(scene, 4) == {1: 4}
    await trio.sleep_until(60.1)
    assert 0 in await calls_of(scene, 2)


@pytest.mark.parametrize(
    ("percent", "backends", "out"), [(50, 4, 2), (50, 3, 1), (50, 2, 1), (49, 2, 0), (25, 4, 1)]
)
async def test_no_more_than_their_share_is_out_at_once(
    percent: int,
    backends: int,
    out: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """All fail: those beyond the share stay in rotation, and get all calls."""
    settings = AT_ONCE + f"max_ejection_percent: {percent}"
    scene = await start_scene(nursery, settings, *[[failing(503)]] * backends)

    await calls_of(scene, backends)

    assert sum(host.is_ejected for host in scene.state.hosts) == out
    assert len(await calls_of(scene, 2 * backends)) == backends - out


async def test_thousand_client_errors_leave_the_endpoint_in_rotation(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report O1: they are the clients' fault."""
    scene = await start_scene(nursery, AT_ONCE, [failing(400)], [OK], weights=(19, 1))

    assert (await calls_of(scene, 1100))[0] >= 1000
    assert (await calls_of(scene, 20)) == {0: 19, 1: 1}
    assert not any(host.is_ejected for host in scene.state.hosts)


def unchanged(scene: Scene) -> None:
    """Leave it to the play."""


def out_of_reach(scene: Scene) -> None:
    """Let connecting to the first backend take for ever."""
    scene.network.faults["b0.test"] = NetworkFault.SILENT


def refusing(scene: Scene) -> None:
    """Let nobody listen at the first backend."""
    scene.network.forget(scene.backends[0].port)


BEGUN = EVENT_STREAM + event("first")
COUNTED: dict[str, tuple[Play, Callable[[Scene], None]]] = {
    "a status": (failing(599), unchanged),
    "a reset": (RESET, unchanged),
    "a close": ((Act.CLOSE,), unchanged),
    "nonsense": ((b"HTTP/1.1 2x0 OK\r\n\r\n",), unchanged),
    "no connection in time": (OK, out_of_reach),
    "a refused connection": (OK, refusing),
    "one try's time": (SILENT, unchanged),
    "no first byte in time": ((EVENT_STREAM, Act.HANG), unchanged),
    "a body that is reset": ((BEGUN, 0.1, Act.RESET), unchanged),
    "a body that is cut off": ((BEGUN, 0.1, Act.CLOSE), unchanged),
    "a body that is nonsense": ((BEGUN, 0.1, b"xyz\r\n"), unchanged),
    "a body beyond the total time": (streaming(*[0.9] * 90), unchanged),
}


@pytest.mark.parametrize("name", COUNTED)
async def test_what_counts_against_an_endpoint(
    name: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report O2: each of these takes it out, bodies that break behind the head too."""
    play, arrange = COUNTED[name]
    times = "connect_timeout: 2s, per_try_timeout: 3s, first_byte_timeout: 2s, total_timeout: 5s"
    scene = await start_scene(nursery, AT_ONCE + times, [play], [streaming()])
    arrange(scene)

    await scene.ask(STREAM)

    assert scene.journal()[0].address.startswith("b0.test")
    assert [host.is_ejected for host in scene.state.hosts] == [True, False]
    assert await calls_of(scene, 3, STREAM) == {1: 3}
    assert await scene.held() == NOTHING


@pytest.mark.parametrize(
    "play",
    [OK, failing(404), (BEGUN, Act.HANG), (BEGUN, 3.0, Act.RESET)],
    ids=["a success", "a client's error", "an idle body", "an idle body that breaks later"],
)
async def test_what_does_not_count_against_an_endpoint(
    play: Play, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A stream that falls silent may have a reason that is not the endpoint's."""
    scene = await start_scene(nursery, AT_ONCE + "idle_timeout: 2s", [play], [streaming()])

    assert await calls_of(scene, 4, STREAM) == {0: 2, 1: 2}


@pytest.mark.parametrize("how", ["close", "abort", "shutdown_send"])
@pytest.mark.parametrize(
    ("play", "arrange"),
    [
        (SILENT, unchanged),
        (OK, out_of_reach),
        ((EVENT_STREAM, Act.HANG), unchanged),
        ((BEGUN, Act.HANG), unchanged),
        (streaming(*[0.1] * 90), unchanged),
    ],
    ids=["waiting for the head", "connecting", "first byte", "silent stream", "stream"],
)
async def test_departure_of_a_client_does_not_count(
    play: Play,
    arrange: Callable[[Scene], None],
    how: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Nor does the end of the connection that follows from it."""
    settings = AT_ONCE + "first_byte_timeout: 50s, connect_timeout: 50s"
    scene = await start_scene(nursery, settings, [play], [OK])
    arrange(scene)
    client = await scene.begin(STREAM)
    await trio.sleep(1)

    getattr(client, how)()
    await trio.sleep(1)

    assert await scene.held() == NOTHING
    assert [host.is_ejected for host in scene.state.hosts] == [False, False]


@pytest.mark.parametrize(("backends", "is_panic"), [(2, True), (3, True), (4, False)])
async def test_calls_go_to_all_endpoints_if_few_are_well(
    backends: int,
    is_panic: bool,  # noqa: FBT001  # part of the case
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Less than half: two of two are out, or two of three. Two of four are half."""
    plays = [[failing(503)], [failing(503)], [OK], [OK]][:backends]
    scene = await start_scene(nursery, AT_ONCE + "max_ejection_percent: 100", *plays)
    await calls_of(scene, backends)
    assert [host.is_ejected for host in scene.state.hosts[:2]] == [True, True]

    calls = await calls_of(scene, 2 * backends)

    assert calls == (dict.fromkeys(range(backends), 2) if is_panic else {2: 4, 3: 4})
    assert scene.state.rotation.is_panicking is is_panic


async def test_every_attempt_of_a_call_counts(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A call that is tried twice at one endpoint counts twice against it."""
    settings = "consecutive_5xx: 3, retry_count: 5, retry_on: 5xx, retry_back_off_base: 1ms"
    scene = await start_scene(nursery, settings, [failing(503)], [failing(503)])

    await scene.ask()

    assert scene.order == [0, 1, 1, 1, 0, 0]
    assert [host.is_ejected for host in scene.state.hosts] == [False, True]


async def test_passing_health_check_brings_an_ejected_endpoint_back(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """At once, long before its time is over."""
    health = "health_check_path: /health, health_check_interval: 3s, base_ejection_time: 200s"
    scene = await start_scene(nursery, AT_ONCE + health, [failing(503), OK], [OK])
    await trio.sleep_until(58)
    await calls_of(scene, 2)
    assert scene.state.hosts[0].is_ejected
    assert await calls_of(scene, 2) == {1: 2}

    await trio.sleep_until(60.5)

    assert await calls_of(scene, 2) == {0: 1, 1: 1}


async def test_lone_endpoint_is_never_left_out(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """There would be nobody to call."""
    scene = await start_scene(nursery, AT_ONCE + "max_ejection_percent: 100", [failing(503)])

    assert await calls_of(scene, 5) == {0: 5}
