"""Requests that end in every way there is, for a connection that serves them in turn."""

from functools import partial

import attrs
import trio

from tests.fakes.scripted_run import Script, ScriptedRun
from vsr.routing.outcome import Cause

REQUEST = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
IN_CHUNKS = (
    b"POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
)
LATE_S = 5.0
CHILD_S = 3.0


async def answer_later(run: ScriptedRun) -> None:
    """Answer after a second."""
    await run.exchange.read_body(1000)
    await trio.sleep(1)
    await run.exchange.respond(200, [], b"done")


async def answer_at_once(run: ScriptedRun) -> None:
    """Answer without waiting for anything."""
    await run.exchange.respond(200, [], await run.exchange.read_body(1000))


async def stream(run: ScriptedRun) -> None:
    """Answer in two pieces, a second apart."""
    await run.exchange.read_body(1000)
    await run.exchange.start(200, [], None, b"do")
    await trio.sleep(1)
    assert run.exchange.try_write(b"ne")
    await run.exchange.end()


async def miss_the_deadline(run: ScriptedRun) -> None:
    """Be ended by a deadline."""
    await run.exchange.read_body(1000)
    run.exchange.end_at(run.exchange.now() + LATE_S)
    await trio.sleep_forever()


async def beat_the_deadline(run: ScriptedRun) -> None:
    """Leave a deadline behind that would pass in the middle of a later request."""
    await run.exchange.read_body(1000)
    run.exchange.end_at(run.exchange.now() + 1.5)
    await trio.sleep(1)
    await run.exchange.respond(200, [], b"done")


async def fail(run: ScriptedRun) -> None:
    """Fail after a second."""
    await run.exchange.read_body(1000)
    await trio.sleep(1)
    raise LookupError


async def _fail_at_once(run: ScriptedRun) -> None:  # noqa: ASYNC124  # its caller awaits it
    raise LookupError(run.exchange.head.target)


async def leave_a_child(run: ScriptedRun) -> None:  # noqa: ASYNC124  # its caller awaits it
    """Answer, and leave a task that ends by itself."""
    await run.exchange.read_body(1000)
    run.start_child(partial(trio.sleep, CHILD_S))
    await run.exchange.respond(200, [], b"done")


async def _leave_a_child_to_the_deadline(run: ScriptedRun) -> None:
    await run.exchange.read_body(1000)
    run.exchange.end_at(run.exchange.now() + LATE_S)
    run.start_child(trio.sleep_forever)
    await run.exchange.respond(200, [], b"done")


async def _have_children_that_end(run: ScriptedRun) -> None:
    await run.exchange.read_body(1000)
    for _ in range(3):
        run.start_child(partial(trio.sleep, 0.5))
    await trio.sleep(1)
    await run.exchange.respond(200, [], b"done")


async def _raise_soon() -> None:
    await trio.sleep(0.5)
    raise LookupError


async def _raise_at_once() -> None:  # noqa: ASYNC124  # its caller awaits it
    raise LookupError


async def _fail_in_a_child(run: ScriptedRun) -> None:
    await run.exchange.read_body(1000)
    run.start_child(_raise_soon)
    await trio.sleep_forever()


async def _fail_beside_a_child(run: ScriptedRun) -> None:
    await run.exchange.read_body(1000)
    run.start_child(trio.sleep_forever)
    await trio.sleep(1)
    raise LookupError


async def _fail_in_a_child_unseen(run: ScriptedRun) -> None:
    """Answer although a child has failed: nothing in between tells of it."""
    await run.exchange.read_body(1000)
    run.start_child(_raise_at_once)
    for _ in range(10):
        await trio.lowlevel.cancel_shielded_checkpoint()
    await run.exchange.respond(200, [], b"done")


async def _fail_in_a_child_behind_the_answer(run: ScriptedRun) -> None:
    await run.exchange.read_body(1000)
    run.start_child(_raise_soon)
    await run.exchange.respond(200, [], b"done")


async def _break_off(run: ScriptedRun) -> None:
    await run.exchange.read_body(1000)
    await run.exchange.start(200, [], None, b"do")
    run.exchange.end_at(run.exchange.now() + LATE_S)
    await trio.sleep_forever()


@attrs.frozen
class Kind:
    """One kind of request and how it ends."""

    script: Script
    status: int = 200
    takes_s: float = 1.0
    """Until its connection is free for the next one."""
    is_concluded: bool | None = True
    """Whether its nursery ends with it; None where that is left open."""
    cause: Cause | None = None
    is_kept: bool = True
    """Whether the connection stays."""


KEPT = {
    "answers": Kind(answer_later, is_concluded=False),
    "answers at once": Kind(answer_at_once, takes_s=0, is_concluded=False),
    "streams": Kind(stream, is_concluded=False),
    "misses its deadline": Kind(miss_the_deadline, 504, LATE_S, cause=Cause.DEADLINE),
    "beats its deadline": Kind(beat_the_deadline, is_concluded=False),
    "fails": Kind(fail, 500),
    "leaves a child": Kind(leave_a_child, takes_s=CHILD_S),
    "leaves a child to its deadline": Kind(
        _leave_a_child_to_the_deadline, takes_s=LATE_S, cause=Cause.DEADLINE
    ),
    "has children that end": Kind(_have_children_that_end, is_concluded=None),
    "fails in a child": Kind(_fail_in_a_child, 500, takes_s=0.5),
    "fails beside a child": Kind(_fail_beside_a_child, 500),
    "fails in a child unseen": Kind(_fail_in_a_child_unseen, takes_s=0),
    "fails in a child behind the answer": Kind(_fail_in_a_child_behind_the_answer, takes_s=0.5),
}
LAST = {
    "fails before its body is read": Kind(_fail_at_once, 500, takes_s=0, is_kept=False),
    "is broken off": Kind(_break_off, takes_s=LATE_S, cause=Cause.DEADLINE, is_kept=False),
}
KINDS = KEPT | LAST
