"""Read timeouts of many connections in one queue."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.network.timers import LazyTimers, Timer


@asynccontextmanager
async def serving() -> AsyncIterator[LazyTimers]:
    """Run a queue of timers."""
    timers = LazyTimers()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timers.run)
        await trio.testing.wait_all_tasks_blocked()
        yield timers
        nursery.cancel_scope.cancel()


def note(log: list[tuple[str, float]], name: str) -> Timer:
    """Return a timer that notes in `log` when it expires."""
    return Timer(lambda: log.append((name, trio.current_time())))


async def test_timers_expire_in_the_order_of_their_times(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Not in the order in which they were set; a new earliest one moves the alarm."""
    log: list[tuple[str, float]] = []
    async with serving() as timers:
        start = trio.current_time()
        for name, delay_s in [("c", 3), ("a", 1), ("b", 2), ("also b", 2)]:
            timers.set(note(log, name), start + delay_s)
        await trio.sleep(10)

    assert log == [("a", start + 1), ("b", start + 2), ("also b", start + 2), ("c", start + 3)]


async def test_timer_expires_once(autojump_clock: trio.testing.MockClock) -> None:
    """It is free to be set again afterwards."""
    log: list[tuple[str, float]] = []
    async with serving() as timers:
        start = trio.current_time()
        timer = note(log, "a")
        timers.set(timer, start + 1)
        await trio.sleep(5)
        assert log == [("a", start + 1)]

        timers.set(timer, start + 7)
        await trio.sleep(10)

    assert log == [("a", start + 1), ("a", start + 7)]


async def test_timer_in_the_past_expires_now(autojump_clock: trio.testing.MockClock) -> None:
    """At the next turn of the task, not before."""
    log: list[tuple[str, float]] = []
    async with serving() as timers:
        start = trio.current_time()
        timers.set(note(log, "a"), start - 5)
        assert log == []
        await trio.testing.wait_all_tasks_blocked()

    assert log == [("a", start)]


async def test_re_arming_later_keeps_one_entry(autojump_clock: trio.testing.MockClock) -> None:
    """A busy connection sets its timer for every read; the queue must not grow with that."""
    log: list[tuple[str, float]] = []
    async with serving() as timers:
        start = trio.current_time()
        timer = note(log, "a")
        for later in range(1000):
            timers.set(timer, start + 1 + later / 1000)
        assert len(timers._queue) == 1
        await trio.sleep(10)

    assert log == [("a", start + 1.999)]


async def test_re_arming_earlier_expires_earlier(autojump_clock: trio.testing.MockClock) -> None:
    """And only once: the entry that is left behind is dead."""
    log: list[tuple[str, float]] = []
    async with serving() as timers:
        start = trio.current_time()
        timer = note(log, "a")
        timers.set(timer, start + 5)
        timers.set(timer, start + 1)
        await trio.sleep(10)

    assert log == [("a", start + 1)]


async def test_idle_timer_does_not_expire(autojump_clock: trio.testing.MockClock) -> None:
    """Whoever got bytes in time sets the limit back to infinity without touching the queue."""
    log: list[tuple[str, float]] = []
    async with serving() as timers:
        start = trio.current_time()
        timer = note(log, "a")
        timers.set(timer, start + 1)
        timer.at = float("inf")
        await trio.sleep(2)
        assert timers._queue == []

        timers.set(timer, start + 4)
        await trio.sleep(10)

    assert log == [("a", start + 4)]


async def test_discarded_timer_is_forgotten(autojump_clock: trio.testing.MockClock) -> None:
    """Its owner is closed; discarding twice or before use does nothing."""
    log: list[tuple[str, float]] = []
    async with serving() as timers:
        timer, unused = note(log, "a"), note(log, "b")
        timers.set(timer, trio.current_time() + 1)
        timers.discard(timer)
        timers.discard(timer)
        timers.discard(unused)
        await trio.sleep(10)

        assert log == []
        assert timers._queue == []
        assert timers._dead == 0


async def test_queue_is_compacted_when_most_of_it_is_dead(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Closed connections with an hour to go must not hold memory for that hour."""
    log: list[tuple[str, float]] = []
    async with serving() as timers:
        start = trio.current_time()
        alive = [note(log, str(index)) for index in range(10)]
        for index, timer in enumerate(alive):
            timers.set(timer, start + 10 - index)
        longest = 0
        for _ in range(5000):
            timer = note(log, "dead")
            timers.set(timer, start + 3600)
            timers.discard(timer)
            longest = max(longest, len(timers._queue))
        assert longest < 1000
        await trio.sleep(20)

    assert [name for name, _ in log] == [str(index) for index in reversed(range(10))]


async def test_expired_timer_may_set_and_discard_others(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The owner of an expired timer closes connections and arms new ones."""
    log: list[tuple[str, float]] = []
    async with serving() as timers:
        start = trio.current_time()
        victims = [note(log, "victim") for _ in range(600)]
        heir = note(log, "heir")

        def expire() -> None:
            for victim in victims:
                timers.discard(victim)
            timers.set(heir, start + 1)

        timers.set(Timer(expire), start + 1)
        for victim in victims:
            timers.set(victim, start + 1)
        await trio.sleep(10)

    assert log == [("heir", start + 1)]


_steps = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["set", "set", "set", "idle", "discard", "wait"]),
        st.integers(0, 6),
    ),
    max_size=40,
)


@given(_steps)
@settings(deadline=None, max_examples=60)
def test_timers_behave_like_one_alarm_each(steps: list[tuple[int, str, int]]) -> None:
    """Whatever the order of calls, each timer expires exactly when its last setting says."""
    got, expected = trio.run(partial(_play, steps), clock=trio.testing.MockClock(0, 0))

    assert sorted(got) == sorted(expected)


async def _play(
    steps: list[tuple[int, str, int]],
) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    log: list[tuple[str, float]] = []
    expected: list[tuple[str, float]] = []
    alarms: dict[int, float] = {}

    async def wait_until(at: float) -> None:
        await trio.sleep_until(at)
        await trio.testing.wait_all_tasks_blocked()
        over = [name for name, due in alarms.items() if due <= at]
        expected.extend((str(name), alarms.pop(name)) for name in over)

    async with serving() as timers:
        timer_of = {name: note(log, str(name)) for name in range(4)}
        for name, act, amount in steps:
            now = trio.current_time()
            if act == "wait":
                # Half a second on, so that no alarm falls on the instant of a step.
                await wait_until(round(now) + amount + 0.5)
            elif act == "set":
                alarms[name] = round(now) + amount + 1
                timers.set(timer_of[name], alarms[name])
            elif act == "idle":
                alarms.pop(name, None)
                timer_of[name].at = float("inf")
            else:
                alarms.pop(name, None)
                timers.discard(timer_of[name])
                timer_of[name] = note(log, str(name))
        await wait_until(trio.current_time() + 100)
        assert timers._queue == []
        assert timers._dead == 0
    return log, expected


@pytest.mark.parametrize("count", [0, 1])
async def test_service_ends_when_cancelled(
    autojump_clock: trio.testing.MockClock, count: int
) -> None:
    """With or without timers waiting."""
    log: list[tuple[str, float]] = []
    async with serving() as timers:
        for _ in range(count):
            timers.set(note(log, "a"), trio.current_time() + 5)

    assert log == []
