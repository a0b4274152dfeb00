"""Components of a process, and what becomes of it when one fails."""

import logging

import attrs
import pytest
import trio
import trio.testing

from vsr.workers.components import Components, ComponentStatus, Health, OnFailure, State


@attrs.define
class Failing:
    """Works for a while, then fails, as often as it is to."""

    times: int
    lives_s: float = 1.0
    began_at: list[float] = attrs.field(factory=list)

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Work."""
        self.began_at.append(trio.current_time())
        task_status.started()
        if len(self.began_at) > self.times:
            await trio.sleep_forever()
        await trio.sleep(self.lives_s)
        raise ZeroDivisionError("with a secret in its text")


async def test_component_begins_again_with_pauses(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Its status tells of it, by the class of the failure alone."""
    components, failing = Components(), Failing(times=4)
    seen = []

    await nursery.start(components.run, "source", OnFailure.RESTART, failing.run)
    for _ in range(2):
        seen.append(components.statuses)
        await trio.sleep(2.2)
    await trio.sleep(20)

    pauses = [
        later - before - failing.lives_s
        for before, later in zip(failing.began_at, failing.began_at[1:], strict=False)
    ]
    assert pauses == pytest.approx([0, 0.5, 1, 2])
    assert seen[0] == (ComponentStatus("source", OnFailure.RESTART, State.RUNNING),)
    assert seen[1][0].state is State.WAITING
    assert components.statuses == (
        ComponentStatus("source", OnFailure.RESTART, State.RUNNING, 4, "ZeroDivisionError"),
    )
    assert [each.levelno for each in caplog.records] == [logging.ERROR] * 4


async def test_process_goes_on_without_what_it_can_do_without(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """That is told in its status; it does not begin again."""
    components, failing = Components(), Failing(times=1)

    await nursery.start(components.run, "metrics", OnFailure.DEGRADE, failing.run)
    await trio.sleep(1000)
    components.degrade("other", "OSError")

    assert len(failing.began_at) == 1
    assert [(each.name, each.state) for each in components.statuses] == [
        ("metrics", State.DEGRADED),
        ("other", State.DEGRADED),
    ]


async def test_failure_of_what_serves_is_that_of_the_process(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Whoever runs the process hears of it."""
    failing = Failing(times=1)

    with pytest.RaisesGroup(ZeroDivisionError, flatten_subgroups=True):
        await Components().run("listeners", OnFailure.FATAL, failing.run)

    assert len(failing.began_at) == 1


async def test_component_that_never_began_is_no_matter_of_policy(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Whoever starts the process is told that it can't be."""

    async def run(  # noqa: ASYNC128  # that is the point
        *, task_status: trio.TaskStatus[None]
    ) -> None:
        del task_status
        await trio.sleep(1)
        raise ZeroDivisionError

    with pytest.RaisesGroup(ZeroDivisionError, flatten_subgroups=True):
        await Components().run("source", OnFailure.RESTART, run)


async def test_component_is_cancelled_with_its_owner(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Amid its work as amid a pause."""
    components, failing = Components(), Failing(times=3)

    for lasts_s in (0.5, 2.25):
        with trio.move_on_after(lasts_s) as scope:
            await components.run("source", OnFailure.RESTART, failing.run)
        assert scope.cancelled_caught

    # It lived for 0.5 s, then failed twice.
    assert components.statuses == (
        ComponentStatus("source", OnFailure.RESTART, State.STOPPED, 2, "ZeroDivisionError"),
    )


async def test_component_that_runs_several_times_is_as_well_as_the_worst_of_them(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One that is over leaves nothing behind but its failures."""
    components, well, ill = Components(), Failing(times=0), Failing(times=3)
    scope, states = trio.CancelScope(), list[State]()

    async def run_ill() -> None:
        with scope:
            await components.run("checks", OnFailure.RESTART, ill.run)

    nursery.start_soon(components.run, "checks", OnFailure.RESTART, well.run)
    nursery.start_soon(run_ill)
    for at_s in (0.5, 2.25, 3.0):
        await trio.sleep_until(at_s)
        states.append(components.statuses[0].state)
    await trio.sleep_until(3.75)  # it waits
    scope.cancel()
    await trio.testing.wait_all_tasks_blocked()

    assert states == [State.RUNNING, State.WAITING, State.RUNNING]
    assert components.statuses == (
        ComponentStatus("checks", OnFailure.RESTART, State.RUNNING, 3, "ZeroDivisionError"),
    )


async def test_work_that_ends_by_itself_is_over(autojump_clock: trio.testing.MockClock) -> None:
    """However often it had to begin again."""
    components, times = Components(), 0

    async def work() -> None:
        nonlocal times
        times += 1
        await trio.sleep(1)
        if times < 3:
            raise OSError

    await components.keep("work", work)

    assert components.statuses == (
        ComponentStatus("work", OnFailure.RESTART, State.STOPPED, 2, "OSError"),
    )


def test_what_runs_elsewhere_is_asked_how_it_is() -> None:
    """Whenever that is told."""
    components, seen = Components(), Health()
    components.watch("exporter", lambda: seen)
    before = components.statuses

    seen = Health(is_failing=True, failures=2, last_failure="OSError")
    failing = components.statuses
    seen = Health(failures=2, last_failure="OSError")

    degrade = OnFailure.DEGRADE
    assert before == (ComponentStatus("exporter", degrade, State.RUNNING),)
    assert failing == (ComponentStatus("exporter", degrade, State.DEGRADED, 2, "OSError"),)
    assert components.statuses == (
        ComponentStatus("exporter", degrade, State.RUNNING, 2, "OSError"),
    )
