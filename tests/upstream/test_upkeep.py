"""What runs beside the calls of a cluster, when it has a bug."""

import pytest
import trio
import trio.testing

from tests.fakes.router import document_of
from tests.upstream.scenes import OK, Scene, failing, model_over, start_scene
from vsr.upstream.policy.host import Host
from vsr.upstream.policy.outlier import OutlierDetector
from vsr.workers.components import ComponentStatus, OnFailure, State

CHECKED = "health_check_path: /health, health_check_interval: 10s"
EJECTS = "consecutive_5xx: 1, base_ejection_time: 15s"


def statuses(scene: Scene) -> dict[str, ComponentStatus]:
    """Return what is told of components, by name."""
    return {each.name: each for each in scene.router.parts.components.statuses}


async def test_check_that_fails_begins_again_and_its_endpoint_is_out(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Requests go on meanwhile, to whoever is known to be well."""
    scene = await start_scene(nursery, CHECKED, [OK], [OK])
    buggy = scene.state.health[0]
    is_mended = False

    async def ask(_check: object, host: Host) -> int:
        await trio.lowlevel.checkpoint()
        if host is buggy.host and not is_mended:
            raise ZeroDivisionError
        return 200

    monkeypatch.setattr("vsr.upstream.upkeep._ask", ask)
    await trio.sleep(300)
    is_in = buggy.host.is_healthy
    got = [(await scene.ask()).status for _ in range(4)]
    is_mended = True
    await trio.sleep(300)

    assert not is_in
    assert (got, set(scene.order)) == ([200] * 4, {1})
    assert buggy.host.is_healthy
    status = statuses(scene)["health checks"]
    assert (status.on_failure, status.state) == (OnFailure.RESTART, State.RUNNING)
    assert (status.failures > 2, status.last_failure) == (True, "ZeroDivisionError")


async def test_first_check_that_fails_holds_up_no_configuration(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its endpoint is out, as one that does not answer."""

    async def ask(_check: object, _host: Host) -> int:
        await trio.lowlevel.checkpoint()
        raise ZeroDivisionError

    monkeypatch.setattr("vsr.upstream.upkeep._ask", ask)
    with trio.fail_after(5):
        scene = await start_scene(nursery, CHECKED, [OK], [OK])

    assert [host.is_healthy for host in scene.state.hosts] == [False, False]
    assert not any(each.is_pending for each in scene.state.health)


async def test_sweep_that_fails_begins_again(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever was out comes back, if later."""
    scene = await start_scene(nursery, EJECTS, [failing(503), OK], [OK])
    for _ in range(2):
        await scene.ask()
    sweep, failures = OutlierDetector.sweep, 3

    def buggy(detector: OutlierDetector, now: float) -> bool:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise ZeroDivisionError
        return sweep(detector, now)

    monkeypatch.setattr(OutlierDetector, "sweep", buggy)
    before = [host.is_ejected for host in scene.state.hosts]
    await trio.sleep(60)

    assert (before, [host.is_ejected for host in scene.state.hosts]) == (
        [True, False],
        [False, False],
    )
    assert statuses(scene)["ejection"] == ComponentStatus(
        "ejection", OnFailure.RESTART, State.RUNNING, 3, "ZeroDivisionError"
    )


async def test_work_of_a_configuration_that_is_gone_is_not_told_of(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """As long as it never failed."""
    scene = await start_scene(nursery, EJECTS, [OK], [OK])
    await trio.testing.wait_all_tasks_blocked()
    before = "ejection" in statuses(scene)

    await scene.reload(document_of(model_over(scene.backends)))
    await trio.testing.wait_all_tasks_blocked()

    assert (before, "ejection" in statuses(scene)) == (True, False)
