"""Many clients that leave at random moments, and load with cancellations: nothing stays behind."""

import gc
import random
from collections import Counter
from enum import StrEnum

import attrs
import pytest
import trio

from tests.e2e.standalone import Standalone, open_descriptors, start_standalone, until
from tests.e2e.wire import Answer, chat, connect, post
from vsr.demo.script import Script
from vsr.demo.server import CallEnd

PATIENCE_S = 180
AT_ONCE = 50
CLEAN_REQUESTS = 100
SPIKE_STREAMS = 300
RECOVERY_S = 1.0
BODIES = [
    chat(),
    chat(stream=True),
    chat("python", stream=True),
    chat("python, too", stream=True),
    chat("x" * 100_000),
]
SCRIPT = Script(latency_s=0.004, chunks=12, chunk_interval_s=0.005)


@pytest.fixture
async def served(nursery: trio.Nursery) -> Standalone:
    """Serve streams that take a while."""
    return await start_standalone(nursery, SCRIPT)


@attrs.frozen
class Baseline:
    """What an idle process has, its pooled connections aside."""

    tasks: int
    descriptors: int

    @classmethod
    def of(cls, served: Standalone) -> "Baseline":
        """Count now; a pooled connection is two descriptors and its backend's task."""
        idle = served.clusters.idle_connections
        tasks = trio.lowlevel.current_statistics().tasks_living - idle
        return cls(tasks, open_descriptors() - 2 * idle)


class Awaits(StrEnum):
    """What a client waits for, once it has sent what it sends, before it looks at its watch."""

    NOTHING = "nothing"
    FIRST_BYTE = "first byte"
    ANSWER = "answer"


@attrs.frozen
class Moment:
    """When one client leaves, and how."""

    sent: bytes = attrs.field(repr=False)
    awaits: Awaits
    then_s: float
    resets: bool

    @classmethod
    def random(cls, rng: random.Random) -> "Moment":
        """Return a moment within the request, the wait, the answer, or behind it."""
        request = post(rng.choice(BODIES))
        if rng.random() < 0.3:
            return cls(request[: rng.randrange(len(request))], Awaits.NOTHING, 0.0, _flip(rng))
        return cls(request, rng.choice(list(Awaits)), rng.random() * 0.05, _flip(rng))


def _flip(rng: random.Random) -> bool:
    return rng.random() < 0.5


async def _leave_at(served: Standalone, moment: Moment) -> None:
    client = await connect(served.port)
    await client.send(moment.sent)
    if moment.awaits is Awaits.FIRST_BYTE:
        await client.first_byte()
    elif moment.awaits is Awaits.ANSWER:
        assert await client.answer() is not None
    await trio.sleep(moment.then_s)
    if moment.resets:
        client.reset()
    else:
        client.close()


async def _storm(served: Standalone, clients: int, rng: random.Random) -> None:
    limiter = trio.CapacityLimiter(AT_ONCE)

    async def play(moment: Moment) -> None:
        async with limiter:
            await _leave_at(served, moment)

    async with trio.open_nursery() as nursery:
        for _ in range(clients):
            nursery.start_soon(play, Moment.random(rng))


@pytest.mark.parametrize(
    "clients", [1000, pytest.param(10_000, marks=pytest.mark.slow)], ids=["1000", "10000"]
)
async def test_random_disconnects_leave_nothing_behind(served: Standalone, clients: int) -> None:
    """Field report C3: sockets, tasks, pool slots and leases are as before; clean requests pass."""
    with trio.fail_after(PATIENCE_S):
        await _ask_cleanly(served, 1)
        await served.settled()
        gc.collect()  # descriptors that earlier tests left behind go now, not in between
        before = Baseline.of(served)

        await _storm(served, clients, random.Random(7))  # noqa: S311  # picks moments
        await served.settled()
        await until(lambda: Baseline.of(served) == before)
        calls = [*served.small.calls, *served.large.calls]
        lines = await served.log_lines()
        statuses = await _ask_cleanly(served, CLEAN_REQUESTS)

    assert statuses == {200: CLEAN_REQUESTS}
    ends = Counter(call.end for call in calls)
    # Of each kind there were plenty, so that the counts above say something.
    assert ends[CallEnd.PEER_GONE] > 200
    assert ends[CallEnd.COMPLETED] > 100
    assert set(ends) == {CallEnd.PEER_GONE, CallEnd.COMPLETED}
    assert {line["outcome"] for line in lines} == {"succeeded", "cancelled"}
    assert sum(line["response_code"] == 200 and line["cause"] is not None for line in lines) > 50
    causes = {line["cause"] for line in lines if line["outcome"] == "cancelled"}
    assert causes == {"client_gone"}


async def test_spike_with_cancellations_passes(served: Standalone) -> None:
    """Field report T3: of 300 streams half are cut off; the others are whole, and so are later."""
    got: list[Answer] = []

    async def stream(at: int) -> None:
        with await connect(served.port) as client:
            await client.send(post(chat(f"stream {at}", stream=True)))
            if at % 2:
                await client.first_byte()
                return
            answer = await client.answer()
            assert answer is not None
            got.append(answer)

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            for at in range(SPIKE_STREAMS):
                nursery.start_soon(stream, at)
        with trio.fail_after(RECOVERY_S):
            statuses = await _ask_cleanly(served, CLEAN_REQUESTS)
        await served.settled()

    assert statuses == {200: CLEAN_REQUESTS}
    assert len(got) == SPIKE_STREAMS / 2
    assert {answer.status for answer in got} == {200}
    assert all(answer.body.endswith(b"data: [DONE]\n\n") for answer in got)


async def _ask_cleanly(served: Standalone, requests: int) -> Counter[int]:
    """Make `requests`, ten at a time on kept connections; return how many had which status."""
    statuses: Counter[int] = Counter()

    async def ask(times: int) -> None:
        with await connect(served.port) as client:
            for _ in range(times):
                await client.send(post(chat("clean")))
                answer = await client.answer()
                statuses[0 if answer is None else answer.status] += 1

    async with trio.open_nursery() as nursery:
        for _ in range(min(10, requests)):
            nursery.start_soon(ask, max(1, requests // 10))
    return statuses
