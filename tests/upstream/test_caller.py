"""Calls whose whole answer is wanted."""

from collections.abc import Callable, Sequence
from itertools import count

import attrs
import pytest
import trio
import trio.testing

from tests.engine.stepped_backend import EVENT_STREAM, LAST_CHUNK, Act, chunk
from tests.fakes.router import clusters_of
from tests.faults.test_every_step import AfterStep
from tests.upstream.raw_backend import reply
from tests.upstream.scenes import NOTHING, OK, SILENT, Play, Scene, failing, start_scene
from vsr.deadline import NO_DEADLINE, Deadline
from vsr.errors import (
    DeadlineExceeded,
    UpstreamAnswerTooLarge,
    UpstreamFailure,
    UpstreamProtocolError,
    UpstreamReset,
)
from vsr.headers import Headers
from vsr.routing.outcome import Attempt, TransportFact
from vsr.routing.plan import Call
from vsr.routing.ports import CallAnswer, Journal
from vsr.upstream.caller import UpstreamCaller

LIMIT_BYTES = 1_000
RETRIES = "retry_count: 1, retry_on: '5xx,reset', retry_back_off_base: 1ms"
SLOW: Play = (EVENT_STREAM + chunk(b"one"), 2.0, chunk(b"two"), 2.0, LAST_CHUNK)


@attrs.define(eq=False)
class Spending:
    """Counts what is asked of it; implements `routing.budget.Spend`."""

    allows: bool = True
    asked: list[bool] = attrs.field(factory=list)

    def admit_retry(self, *, is_known_zero: bool) -> bool:
        """Answer as told."""
        self.asked.append(is_known_zero)
        return self.allows


@attrs.define(eq=False)
class Hop:
    """One call to the scene's model."""

    scene: Scene
    listener_s: float | None = None
    spend: Spending = attrs.field(factory=Spending)
    journal: Journal = attrs.field(factory=Journal)

    async def run(
        self, deadline: Deadline = NO_DEADLINE, *, limit_bytes: int = LIMIT_BYTES
    ) -> CallAnswer:
        """Make the call."""
        caller = UpstreamCaller(clusters_of(self.scene.generations[0]), self.listener_s)
        call = Call(
            b"POST",
            b"/v1/chat/completions",
            Headers([(b"content-type", b"application/json")]),
            b'{"model":"alpha"}',
            b"alpha",
            "alpha",
            spend=self.spend,
        )
        return await caller.call(call, deadline, limit_bytes=limit_bytes, journal=self.journal)

    @property
    def ends(self) -> list[tuple[int | None, str, TransportFact]]:
        """Return how each attempt ended."""
        assert all(each.ended_at is not None for each in self.journal.attempts)
        return [(each.status, each.error, each.fact) for each in self.journal.attempts]


async def begin(nursery: trio.Nursery, *plays: Play, reliability: str = "") -> Scene:
    """Start one backend that plays these, call by call."""
    return await start_scene(nursery, reliability, list(plays))


async def failed(hop: Hop, error: type[UpstreamFailure], deadline: Deadline = NO_DEADLINE) -> float:
    """Make the call, which fails; return how long it took."""
    begun = trio.current_time()
    with pytest.raises(error):
        await hop.run(deadline)
    assert await hop.scene.held() == NOTHING
    return trio.current_time() - begun


@pytest.mark.parametrize("status", [200, 404, 503])
async def test_whole_answer_comes_back_whatever_its_status(
    status: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """With its headers, its attempt, and its connection back in the pool."""
    scene = await begin(nursery, (reply(status, b'{"a":1}', (b"x-own", b"yes")),))
    hop = Hop(scene)

    answer = await hop.run()

    assert (answer.status, answer.body) == (status, b'{"a":1}')
    assert answer.headers.get(b"x-own") == b"yes"
    assert answer.attempts == tuple(hop.journal.attempts)
    assert hop.ends == [(status, "", TransportFact.BODY_RECEIVED)]
    assert [asked.body for asked in scene.calls] == [b'{"model":"alpha"}']
    assert await scene.held() == NOTHING
    assert clusters_of(scene.generations[0]).idle_connections == 1


async def test_first_byte_is_the_body_s_not_the_head_s(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Of a body that comes in pieces it is when the first one was there."""
    late: Play = (EVENT_STREAM, 1.5, chunk(b"one"), 2.0, chunk(b"two") + LAST_CHUNK)
    scene = await begin(nursery, late)
    begun = trio.current_time()

    answer = await Hop(scene).run()

    assert answer.body == b"onetwo"
    assert answer.first_byte_at == pytest.approx(begun + 1.5)
    assert trio.current_time() - begun == pytest.approx(3.5)


async def test_empty_body_has_no_first_byte(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """None, rather than the time of something else."""
    answer = await Hop(await begin(nursery, (reply(200),))).run()

    assert (answer.body, answer.first_byte_at) == (b"", None)


def declared(size_bytes: int) -> Play:
    """Return an answer that says its length."""
    return (reply(200, b"x" * size_bytes),)


def chunked(size_bytes: int) -> Play:
    """Return one that does not, the last byte apart."""
    body = b"x" * (size_bytes - 1)
    return (EVENT_STREAM + chunk(body), 0.1, chunk(b"x"), 0.1, LAST_CHUNK)


@pytest.mark.parametrize("form", [declared, chunked])
async def test_body_of_exactly_the_limit_passes(
    form: Callable[[int], Play], nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The limit is what may be, not what may not."""
    scene = await begin(nursery, form(LIMIT_BYTES))

    answer = await Hop(scene).run()

    assert len(answer.body) == LIMIT_BYTES


@pytest.mark.parametrize("form", [declared, chunked])
async def test_one_byte_more_fails(
    form: Callable[[int], Play], nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The connection is dropped, the attempt says why, and the endpoint is not blamed."""
    ejects = "consecutive_5xx: 1"
    plays: list[Play] = [form(LIMIT_BYTES + 1)]
    scene = await start_scene(nursery, ejects, plays, [OK])
    hop = Hop(scene)

    await failed(hop, UpstreamAnswerTooLarge)

    [attempt] = hop.journal.attempts
    assert (attempt.status, attempt.error) == (200, "upstream_answer_too_large")
    host = scene.state.hosts[0]
    assert not any(host.stats.broken.values())
    assert host.is_rotating


async def test_declared_length_above_the_limit_is_not_waited_for(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The head says enough."""
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n"
    scene = await begin(nursery, (head, Act.HANG))

    assert await failed(Hop(scene), UpstreamAnswerTooLarge) == pytest.approx(0, abs=0.01)


async def test_call_is_tried_again_as_its_policy_says(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The budget is asked first, and both attempts are told."""
    scene = await begin(nursery, failing(503), OK, reliability=RETRIES)
    hop = Hop(scene)

    answer = await hop.run()

    assert answer.status == 200
    assert [each.status for each in answer.attempts] == [503, 200]
    assert hop.spend.asked == [False]


async def test_budget_may_forbid_a_further_attempt(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Then the first answer is the answer."""
    scene = await begin(nursery, failing(503), OK, reliability=RETRIES)
    hop = Hop(scene, spend=Spending(allows=False))

    answer = await hop.run()

    assert (answer.status, len(scene.calls)) == (503, 1)


async def test_attempts_of_an_earlier_call_are_not_this_one_s(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Calls may share a journal."""
    scene = await begin(nursery, OK)
    hop = Hop(scene)
    await hop.run()

    answer = await hop.run()

    assert len(answer.attempts) == 1
    assert len(hop.journal.attempts) == 2


@pytest.mark.parametrize(
    ("play", "error", "wanted"),
    [
        (
            (EVENT_STREAM + chunk(b"one"), Act.RESET),
            UpstreamProtocolError,
            (200, "upstream_protocol_error", TransportFact.HEAD_RECEIVED),
        ),
        (
            (EVENT_STREAM + chunk(b"one"), Act.CLOSE),
            UpstreamProtocolError,
            (200, "upstream_protocol_error", TransportFact.HEAD_RECEIVED),
        ),
        (
            (EVENT_STREAM + chunk(b"one"), 0.1, b"zz\r\n"),
            UpstreamProtocolError,
            (200, "upstream_protocol_error", TransportFact.HEAD_RECEIVED),
        ),
        ((Act.RESET,), UpstreamReset, (None, "upstream_reset", TransportFact.REQUEST_WRITTEN)),
    ],
    ids=["reset in the body", "cut off", "broken framing", "reset before the head"],
)
async def test_answer_that_breaks_fails(
    play: Play,
    error: type[UpstreamFailure],
    wanted: tuple[int | None, str, TransportFact],
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """With the failure that fits, and the journal says how far it came."""
    hop = Hop(await begin(nursery, play))

    await failed(hop, error)

    assert hop.ends == [wanted]


@pytest.mark.parametrize("play", [SILENT, SLOW], ids=["before the head", "in the body"])
@pytest.mark.parametrize(
    ("reliability", "listener_s", "deadline_s", "took_s"),
    [
        ("", None, 1.0, 1.0),
        ("total_timeout: 1s", None, 3.0, 1.0),
        ("total_timeout: 3s", None, 1.0, 1.0),
        ("", 1.0, 3.0, 1.0),
    ],
    ids=["deadline", "its own total", "the earlier one", "the listener's"],
)
async def test_earliest_limit_ends_the_call(
    play: Play,
    reliability: str,
    listener_s: float | None,
    deadline_s: float,
    took_s: float,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Before the head as in the body; what was under way timed out."""
    scene = await begin(nursery, play, reliability=reliability)
    hop = Hop(scene, listener_s)
    deadline = Deadline(trio.current_time() + deadline_s)

    assert await failed(hop, DeadlineExceeded, deadline) == pytest.approx(took_s)

    [(_, error, _)] = hop.ends
    assert error == "deadline_exceeded"


async def test_silence_in_the_body_is_an_idle_timeout(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Of the call's own policy, long before its deadline."""
    hop = Hop(await begin(nursery, SLOW, reliability="idle_timeout: 500ms"))

    assert await failed(hop, DeadlineExceeded) == pytest.approx(0.5)

    assert hop.journal.attempts[-1].stage == "idle"


async def test_nothing_is_sent_behind_the_deadline(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Not even an attempt is begun."""
    scene = await begin(nursery, OK)
    hop = Hop(scene)

    await failed(hop, DeadlineExceeded, Deadline(trio.current_time()))

    assert (scene.calls, hop.journal.attempts) == ([], [])


PLAYS: dict[str, Sequence[Play]] = {
    "at once": [OK],
    "in pieces": [(EVENT_STREAM + chunk(b"one"), 0.01, chunk(b"two"), 0.01, LAST_CHUNK)],
    "behind a retry": [failing(503), OK],
    "behind a reset": [(Act.RESET,), OK],
}


@pytest.mark.parametrize("name", PLAYS)
async def test_cancelled_call_leaves_nothing_behind(
    name: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Behind whichever step of any task: no connection, permit or retry slot, and one end each."""
    for step in count(1):
        async with trio.open_nursery() as nursery:
            scene = await begin(nursery, *PLAYS[name], reliability=RETRIES)
            hop = Hop(scene)
            was_cancelled = await _cancel_behind(step, hop)
            assert await scene.held() == NOTHING
            assert all(map(_has_ended, hop.journal.attempts))
            nursery.cancel_scope.cancel()
        if not was_cancelled:
            break
    assert step > len(PLAYS[name])


async def _cancel_behind(step: int, hop: Hop) -> bool:
    """Make a call and cancel it behind a step; return whether it was still under way."""
    scope = trio.CancelScope()
    instrument = AfterStep(step, scope.cancel)
    trio.lowlevel.add_instrument(instrument)
    with scope:
        await hop.run()
    trio.lowlevel.remove_instrument(instrument)
    return scope.cancelled_caught


def _has_ended(attempt: Attempt) -> bool:
    return attempt.ended_at is not None
