"""Runs whose store takes its time: nobody waits longer for it than for the run."""

from typing import Any

import attrs
import pytest
import trio
import trio.testing

from tests.conformance.looper_reply import reply_of
from tests.engine.suspending import (
    ONE_CALL,
    QUESTION,
    Scene,
    answered_by,
    asks,
    says,
    start_answering,
    tool,
)
from vsr.graph.suspend.memory import MemoryStore
from vsr.graph.suspend.run import SuspendedRun

NOT_FOUND = "not found or expired"


@attrs.define
class SlowStore:
    """A store that takes its time, as one on a disk does."""

    nursery: trio.Nursery
    """Of what goes on when nobody waits any more."""
    inner: MemoryStore = attrs.field(factory=MemoryStore)
    take_s: float = 0
    put_s: float = 0
    put_back_s: float = 0
    is_interrupted: bool = True
    """Whether a cancel ends a `put`, and not only the wait for it."""

    async def put(self, run: SuspendedRun, *, now_unix_s: float) -> None:
        """Keep a run after a while."""
        if self.is_interrupted:
            await trio.sleep(self.put_s)
            await self.inner.put(run, now_unix_s=now_unix_s)
        else:
            await self._keep(self.put_s, run, now_unix_s)

    async def put_back(self, run: SuspendedRun, *, now_unix_s: float) -> None:
        """Keep a run after a while, whoever waits."""
        await self._keep(self.put_back_s, run, now_unix_s)

    async def _keep(self, after_s: float, run: SuspendedRun, now_unix_s: float) -> None:
        done = trio.Event()

        async def keep() -> None:
            await trio.sleep(after_s)
            await self.inner.put(run, now_unix_s=now_unix_s)
            done.set()

        self.nursery.start_soon(keep)
        await done.wait()

    async def take(self, state_id: str, *, now_unix_s: float) -> SuspendedRun | None:
        """Take a run after a while."""
        await trio.sleep(self.take_s)
        return await self.inner.take(state_id, now_unix_s=now_unix_s)

    async def clear(self) -> None:
        """Forget all runs."""
        await self.inner.clear()


async def start_slow(
    nursery: trio.Nursery, store: SlowStore, replies: list[dict[str, Any]], graph: str = ONE_CALL
) -> Scene:
    """Start a Router that keeps its runs in a slow store."""
    return await start_answering(
        nursery,
        graph,
        lambda call: reply_of(replies.pop(0), call.body["model"]),
        open_states=lambda _: store,
    )


async def test_run_is_put_back_though_its_client_has_left(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A store that takes its time gets it."""
    replies = [asks("x"), says("never", delay_ms=60_000), says("done")]
    scene = await start_slow(nursery, SlowStore(nursery, put_back_s=1), replies)
    first = await scene.ask([QUESTION])

    await scene.leave(answered_by(first), after_s=5)
    await trio.sleep(2)

    assert (await scene.resume(first)).text == "done"


async def test_run_is_as_it_was_where_its_client_leaves_while_the_next_stop_is_kept(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It has not seen the ids of that stop, and sends the answers that it has once more."""
    replies = [asks("x"), asks("y"), says("done")]
    scene = await start_slow(nursery, SlowStore(nursery, put_s=1), replies)
    first = await scene.ask([QUESTION])

    await scene.leave(answered_by(first), after_s=0.5)
    await trio.sleep(3)

    assert (await scene.resume(first)).text == "done"


async def test_answer_does_not_wait_for_a_run_that_is_put_back_late(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An operator learns of it, and the run is there when the store is done."""
    store = SlowStore(nursery, put_back_s=60)
    scene = await start_slow(nursery, store, [asks("x"), says("done")])
    first = await scene.ask([QUESTION])
    began = trio.current_time()

    refused = await scene.ask([*answered_by(first)[:2], tool(first.tool_ids[0] + "z")])

    assert "is not pending" in refused.text
    assert trio.current_time() - began == pytest.approx(0.25)
    late = "a run that waits for tools is put back late: its store takes too long"
    assert late in caplog.messages
    await trio.sleep(60)
    assert (await scene.resume(first)).text == "done"


TIMED = "limits: {timeout: 300ms}" + ONE_CALL


async def test_store_that_hangs_on_a_take_gets_no_more_time_than_the_graph(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The client is told in time, nobody is asked, and the run is as it was."""
    store = SlowStore(nursery)
    scene = await start_slow(nursery, store, [asks("x"), says("done")], TIMED)
    first = await scene.ask([QUESTION])
    scene.called()
    store.take_s, began = 2, trio.current_time()

    late = await scene.resume(first)

    assert (late.status, late.body["error"]["code"]) == (504, "deadline_exceeded")
    assert trio.current_time() - began == pytest.approx(0.3)
    assert scene.called() == []
    store.take_s = 0
    assert (await scene.resume(first)).text == "done"


async def test_client_that_leaves_does_not_wait_for_a_take(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What it held is free at once, and the run is as it was."""
    store = SlowStore(nursery)
    scene = await start_slow(nursery, store, [asks("x"), says("done")])
    first = await scene.ask([QUESTION])
    store.take_s = 1000

    await scene.leave(answered_by(first), after_s=1)

    assert await scene.router.held() == (0, 0)
    store.take_s = 0
    assert (await scene.resume(first)).text == "done"


async def test_store_that_hangs_on_a_put_gets_no_more_time_than_the_graph(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Be it the first stop of a run or a later one, which then has not happened."""
    store = SlowStore(nursery, put_s=2)
    scene = await start_slow(nursery, store, [asks("w"), asks("x"), asks("y"), says("done")], TIMED)
    began = trio.current_time()

    none = await scene.ask([QUESTION])
    took_s = trio.current_time() - began
    store.put_s = 0
    first = await scene.ask([QUESTION])
    store.put_s = 2
    late = await scene.resume(first)

    assert (none.status, late.status) == (504, 504)
    assert took_s == pytest.approx(0.3)
    assert (await scene.resume(first)).text == "done"


async def test_one_of_two_requests_that_go_on_at_once_wins_in_a_slow_store(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The other one is told that there is no such run."""
    store = SlowStore(nursery, take_s=1)
    scene = await start_slow(nursery, store, [asks("x"), says("done")])
    first = await scene.ask([QUESTION])
    texts: list[str] = []

    async def resume() -> None:
        texts.append((await scene.resume(first)).text)

    async with trio.open_nursery() as both:
        both.start_soon(resume)
        both.start_soon(resume)

    assert sorted(NOT_FOUND in text for text in texts) == [False, True]
    assert "done" in texts
