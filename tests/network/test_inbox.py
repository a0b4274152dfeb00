"""The receiving half of a connection, driven directly."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trio.testing

from vsr.network.inbox import Inbox
from vsr.network.port import ConnectionBroken, ReceiveTimedOut
from vsr.network.timers import LazyTimers


@attrs.define(eq=False)
class Reading:
    """An inbox and what a task of its own has read from it."""

    inbox: Inbox
    got: list[bytes | str] = attrs.field(factory=list)
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    async def receive(self, until: float = float("inf")) -> None:
        """Read once and note what came of it."""
        self.scope = trio.CancelScope()
        try:
            with self.scope:
                self.got.append(await self.inbox.receive(until))
        except (ConnectionBroken, ReceiveTimedOut) as error:
            self.got.append(type(error).__name__)
        if self.scope.cancelled_caught:
            self.got.append("cancelled")


@asynccontextmanager
async def reading() -> AsyncIterator[tuple[Reading, trio.Nursery]]:
    """Serve the timers of an inbox."""
    timers = LazyTimers()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timers.run)
        yield Reading(Inbox(timers, lambda: None)), nursery
        nursery.cancel_scope.cancel()


async def test_waiting_reader_gets_what_is_delivered(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Piece by piece, empty ones included, each to the reader of its moment."""
    async with reading() as (one, nursery):
        for data in (b"a", b"bc", b"", b"d"):
            nursery.start_soon(one.receive)
            await trio.testing.wait_all_tasks_blocked()
            one.inbox.deliver(data)
            await trio.testing.wait_all_tasks_blocked()

        assert one.got == [b"a", b"bc", b"", b"d"]
        assert (one.inbox.held_bytes, one.inbox.is_silent()) == (0, True)


async def test_bytes_behind_those_of_a_woken_reader_wait_for_the_next(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A reader is woken once; it has not run yet when more arrives, or the end."""
    async with reading() as (one, nursery):
        nursery.start_soon(one.receive)
        await trio.testing.wait_all_tasks_blocked()

        one.inbox.deliver(b"a")
        one.inbox.deliver(b"b")
        one.inbox.finish()
        for _ in range(3):
            await trio.testing.wait_all_tasks_blocked()
            await one.receive()

        assert one.got == [b"a", b"b", b"", b""]


async def test_cancelled_reader_loses_nothing(autojump_clock: trio.testing.MockClock) -> None:
    """Cancelled before: it waits for the next. Cancelled after: the reader has it."""
    async with reading() as (one, nursery):
        nursery.start_soon(one.receive)
        await trio.testing.wait_all_tasks_blocked()
        one.scope.cancel()
        one.inbox.deliver(b"a")
        await trio.testing.wait_all_tasks_blocked()
        await one.receive()

        nursery.start_soon(one.receive)
        await trio.testing.wait_all_tasks_blocked()
        one.inbox.deliver(b"b")
        one.scope.cancel()
        await trio.testing.wait_all_tasks_blocked()

        assert one.got == ["cancelled", b"a", b"b"]


async def test_limit_of_a_read_that_was_served_is_none_of_a_later_one(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The timer of a connection is one, its limits are each read's own."""
    async with reading() as (one, nursery):
        nursery.start_soon(one.receive, 10)
        await trio.sleep(5)
        one.inbox.deliver(b"a")
        nursery.start_soon(one.receive, 100)
        await trio.sleep(50)
        got_by_then = list(one.got)
        await trio.sleep(50)
        one.inbox.deliver(b"late")

        assert got_by_then == [b"a"]
        assert one.got == [b"a", "ReceiveTimedOut"]
        assert one.inbox.held_bytes == 4


async def test_read_without_a_limit_has_none(autojump_clock: trio.testing.MockClock) -> None:
    """Also behind one that had a limit and was served in time."""
    async with reading() as (one, nursery):
        nursery.start_soon(one.receive, 10)
        await trio.sleep(5)
        one.inbox.deliver(b"a")
        nursery.start_soon(one.receive)
        await trio.sleep(50)
        one.inbox.deliver(b"b")
        await trio.testing.wait_all_tasks_blocked()

        assert one.got == [b"a", b"b"]


@pytest.mark.parametrize("broken", [False, True])
async def test_end_reaches_a_reader_that_waits(
    broken: bool,  # noqa: FBT001  # a parameter of the table
    autojump_clock: trio.testing.MockClock,
) -> None:
    """And every later one, and `on_gone` once."""
    calls: list[str] = []
    async with reading() as (one, nursery):
        one.inbox.on_gone = lambda: calls.append("gone")
        nursery.start_soon(one.receive, 100)
        await trio.testing.wait_all_tasks_blocked()

        one.inbox.finish(broken=broken)
        one.inbox.finish(broken=not broken)
        await trio.testing.wait_all_tasks_blocked()
        await one.receive()
        await trio.sleep(200)

        assert one.got == (["ConnectionBroken"] * 2 if broken else [b"", b""])
        assert calls == ["gone"]


@pytest.mark.parametrize("wants", [0, 1, 2, 5])
async def test_pump_hands_over_until_its_sink_has_enough(
    wants: int, autojump_clock: trio.testing.MockClock
) -> None:
    """What the sink took nobody else gets; what comes later is read as ever."""
    taken: list[bytes] = []

    def sink(data: bytes) -> bool:
        taken.append(data)
        return len(taken) <= wants

    async def pump() -> None:
        ends.append(await one.inbox.pump(sink, 10))

    ends: list[bool] = []
    async with reading() as (one, nursery):
        nursery.start_soon(pump)
        await trio.testing.wait_all_tasks_blocked()
        for number in range(4):
            one.inbox.deliver(b"%d" % number)
        one.inbox.finish()
        await trio.testing.wait_all_tasks_blocked()
        rest = []
        while data := await one.inbox.receive(float("inf")):
            rest.append(data)

        assert taken == [b"0", b"1", b"2", b"3"][: wants + 1]
        assert taken + rest == [b"0", b"1", b"2", b"3"]
        assert len(ends) == 1
        assert ends[0] is (wants == 5)


async def test_pump_s_sink_is_no_later_reader_s(autojump_clock: trio.testing.MockClock) -> None:
    """Ended by its sink, by a cancellation, or by a timeout."""
    taken: list[bytes] = []

    def sink(data: bytes) -> bool:
        taken.append(data)
        return data != b"enough"

    async with reading() as (one, nursery):
        for end in ("sink", "cancel", "timeout"):
            with trio.CancelScope() as scope:
                if end == "cancel":
                    scope.deadline = trio.current_time() + 1
                if end == "sink":
                    nursery.start_soon(_deliver_later, one.inbox, b"enough")
                try:
                    await one.inbox.pump(sink, 5)
                except ReceiveTimedOut:
                    assert end == "timeout"
            nursery.start_soon(_deliver_later, one.inbox, end.encode())
            await one.receive(trio.current_time() + 100)

        assert one.got == [b"sink", b"cancel", b"timeout"]
        assert taken == [b"enough"]


async def _deliver_later(inbox: Inbox, data: bytes) -> None:
    await trio.sleep(0.5)
    inbox.deliver(data)


async def test_pump_is_put_off_by_each_piece(autojump_clock: trio.testing.MockClock) -> None:
    """Its limit is of each single wait."""

    def sink(data: bytes) -> bool:
        del data
        return True

    async def deliver_now_and_then() -> None:
        for _ in range(5):
            await trio.sleep(4)
            one.inbox.deliver(b"x")

    async with reading() as (one, nursery):
        nursery.start_soon(deliver_now_and_then)
        with pytest.raises(ReceiveTimedOut):
            await one.inbox.pump(sink, 5)

        assert trio.current_time() == pytest.approx(25)


async def test_closing_our_own_end_breaks_a_reader(autojump_clock: trio.testing.MockClock) -> None:
    """It must not wait for bytes that nobody will deliver; `on_gone` is not told of ourselves."""
    calls: list[str] = []
    async with reading() as (one, nursery):
        one.inbox.on_gone = lambda: calls.append("gone")
        nursery.start_soon(one.receive, 10)
        await trio.testing.wait_all_tasks_blocked()

        one.inbox.discard()
        await trio.sleep(20)

        assert (one.got, calls) == (["ConnectionBroken"], [])
