"""Retries through the whole Router: where they go, how many there are, who asked for them."""

from itertools import pairwise

import attrs
import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd, chat_body
from tests.engine.stepped_backend import EVENT_STREAM, Act
from tests.fakes.router import clusters_of
from tests.faults.moments import RecordingEngine
from tests.upstream.raw_backend import reply
from tests.upstream.scenes import (
    NOTHING,
    OK,
    RESET,
    SILENT,
    STREAM,
    Play,
    event,
    failing,
    start_scene,
)
from vsr.deadline import Deadline
from vsr.headers import Headers
from vsr.network.memory import Fault as NetworkFault
from vsr.routing.outcome import Usage
from vsr.routing.plan import Call, Plan
from vsr.routing.ports import Journal, Tasks
from vsr.routing.request import Request

RETRIES = "retry_on: 5xx, retry_count: "
STOP = b"x-should-retry"
PREFIX = b"upstream connect error or disconnect/reset before headers. "


@pytest.mark.parametrize("weights", [(1, 1), (3, 1), (1, 3)])
async def test_retry_goes_to_another_endpoint(
    weights: tuple[int, int], nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Even where the weights would have the same one follow itself."""
    always = [failing(503)]
    scene = await start_scene(nursery, RETRIES + "1", always, always, weights=weights)

    for _ in range(12):
        await scene.ask()

    pairs = [scene.order[at : at + 2] for at in range(0, 24, 2)]
    assert [set(pair) for pair in pairs] == [{0, 1}] * 12
    hosts = {each.number: f"{each.host}:{each.port}" for each in scene.backends}
    told = [[attempt.address for attempt in scene.journal(at)] for at in range(12)]
    assert told == [[hosts[each] for each in pair] for pair in pairs]


@pytest.mark.parametrize("count", range(6))
async def test_there_are_as_many_attempts_as_allowed(
    count: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report R4: the answer is the last one, and tells SDKs to stop if any was repeated."""
    statuses = [500, 502, 503, 504, 501, 505]
    plays = [failing(each, (b"x-number", b"%d" % each)) for each in statuses]
    scene = await start_scene(nursery, RETRIES + str(count), plays)

    got = await scene.ask()

    assert (got.status, got.end) == (statuses[count], AnswerEnd.WHOLE)
    assert got.json()["error"]
    assert got.line(b"x-number") == b"%d" % statuses[count]
    assert got.line(STOP) == (b"false" if count else b"")
    assert len(scene.calls) == count + 1
    [line] = await scene.router.log()
    assert (line["attempts"], line["response_code"]) == (count + 1, statuses[count])
    assert await scene.held() == NOTHING


@pytest.mark.parametrize(
    ("condition", "count", "repeated"),
    [("reset", 0, 0), ("reset", 1, 1), ("reset", 5, 5), ("connect-failure", 5, 0)],
)
async def test_last_failure_says_that_it_is_the_last_of_several(
    condition: str,
    count: int,
    repeated: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """In the text and in a header, and only then."""
    scene = await start_scene(nursery, f"retry_on: {condition}, retry_count: {count}", [RESET])

    got = await scene.ask()

    words = b"retried and the latest " if repeated else b""
    text = PREFIX + words + b"reset reason: connection termination"
    assert (got.status, got.body) == (503, text)
    assert got.line(STOP) == (b"false" if repeated else b"")
    assert len(scene.calls) == repeated + 1


async def test_success_behind_failures_tells_nobody_to_stop(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The client gets the good answer alone."""
    scene = await start_scene(nursery, RETRIES + "5", [failing(503), RESET, OK])

    got = await scene.ask()

    assert (got.status, got.body, got.line(STOP)) == (200, b"{}", b"")
    [line] = await scene.router.log()
    assert (line["outcome"], line["attempts"]) == ("succeeded", 3)


@pytest.mark.parametrize("size", [1, 60_000, 300_000])
async def test_every_attempt_sends_the_same(
    size: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report R6: in one write or two; behind an answer, a reset and too long a wait."""
    settings = RETRIES + "3, per_try_timeout: 1s"
    scene = await start_scene(nursery, settings, [failing(500), RESET, SILENT, OK])

    got = await scene.ask(chat_body("x" * size, model="auto"))

    assert got.status == 200
    assert len(scene.calls) == 4
    assert all(len(call.body) > size for call in scene.calls)
    for one, other in pairwise(scene.calls):
        assert (one.body, one.head.target) == (other.body, other.head.target)
        assert one.head.lines == other.head.lines


async def test_retry_elsewhere_does_not_wait_if_nothing_was_done(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A refused connection does not come of too much to do."""
    settings = RETRIES + "1, retry_back_off_base: 60s"
    scene = await start_scene(nursery, settings, [failing(503)], [OK])
    scene.network.forget(scene.backends[0].port)

    for _ in range(8):
        assert (await scene.ask()).status == 200

    assert trio.current_time() == 0
    assert scene.order == [1] * 8
    assert sum(len(scene.journal(at)) for at in range(8)) > 8


@pytest.mark.parametrize("endpoints", [1, 2])
async def test_retry_waits_where_an_endpoint_may_need_it(
    endpoints: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """An answer may come of too much to do; and a lone endpoint that refuses needs time."""
    settings = RETRIES + "1, retry_back_off_base: 60s"
    scene = await start_scene(nursery, settings, *[[failing(503)]] * endpoints)
    if endpoints == 1:
        scene.network.forget(scene.backends[0].port)

    await scene.ask()

    first, second = scene.journal()
    assert first.ended_at == 0
    assert second.started_at > 0


@pytest.mark.parametrize(("spare", "calls"), [(0, 2), (-1, 1)])
async def test_body_over_the_limit_is_not_repeated(
    spare: int, calls: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """`replay_bytes` counts what leaves for the backend, and is itself allowed."""
    probe = await start_scene(nursery, "", [OK])
    await probe.ask()
    limit = len(probe.calls[0].body) + spare
    scene = await start_scene(nursery, f"{RETRIES}1, replay_bytes: {limit}", [failing(503)])

    got = await scene.ask()

    assert (got.status, len(scene.calls)) == (503, calls)
    assert got.line(STOP) == (b"false" if calls == 2 else b"")


@pytest.mark.parametrize("is_cut", [False, True])
async def test_stream_is_not_repeated_once_a_byte_of_it_is_out(
    is_cut: bool,  # noqa: FBT001  # a case
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Whatever the conditions: an answer that has begun can only break."""
    every = "'5xx,gateway-error,reset,reset-before-request,connect-failure,refused-stream'"
    settings = f"retry_on: {every}, retry_count: 5, first_byte_timeout: 9s"
    play: Play = (EVENT_STREAM + event("first"), 1.0, Act.CLOSE if is_cut else Act.RESET)
    scene = await start_scene(nursery, settings, [play], [OK])

    got = await scene.ask(STREAM)

    assert (got.status, got.end) == (200, AnswerEnd.CUT)
    assert got.body.count(b"first") == 1
    assert got.line(STOP) == b""
    assert len(scene.calls) == 1
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("layer", ["decision", "recipe", "entrypoint"])
@pytest.mark.parametrize("model", ["", "retry_count: 5, retry_on: connect-failure"])
async def test_layers_above_the_model_decide_on_retries(
    model: str, layer: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A decision, a recipe or an entrypoint repeats what the model alone would not."""
    blocks = dict.fromkeys(("decision", "recipe", "entrypoint"), "{}")
    blocks[layer] = "{retry_count: 2, retry_on: 5xx}"
    decision = f"{{name: d, modelRefs: [{{model: alpha}}], reliability: {blocks['decision']}}}"
    recipe = f"{{reliability: {blocks['recipe']}, decisions: [{decision}]}}"
    entry = f"{{model_names: [door], recipe: r, reliability: {blocks['entrypoint']}}}"
    more = f"recipes: [{{name: r, routing: {recipe}}}]\nentrypoints: [{entry}]"
    scene = await start_scene(nursery, model, [failing(503)], more=more)

    layered = await scene.ask(chat_body(model="door"))
    calls = len(scene.calls)
    plain = await scene.ask(chat_body(model="alpha"))

    assert (layered.status, calls, layered.line(STOP)) == (503, 3, b"false")
    assert (plain.status, len(scene.calls) - calls, plain.line(STOP)) == (503, 1, b"")


async def test_innermost_layer_has_the_last_word(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Counts replace, from the model to the decision; conditions add."""
    decision = "{name: d, modelRefs: [{model: alpha}], reliability: {retry_count: 1}}"
    recipe = f"{{reliability: {{retry_count: 3, retry_on: reset}}, decisions: [{decision}]}}"
    entry = "{model_names: [door], recipe: r, reliability: {retry_count: 4}}"
    more = f"recipes: [{{name: r, routing: {recipe}}}]\nentrypoints: [{entry}]"
    scene = await start_scene(nursery, RETRIES + "5", [failing(503), RESET], more=more)

    await scene.ask(chat_body(model="door"))

    assert [attempt.status for attempt in scene.journal()] == [503, None]


async def test_journal_tells_of_every_attempt(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Where, how far, with what end and when, in the order in which they were made."""
    settings = RETRIES + "4, per_try_timeout: 2s"
    used = b'{"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}'
    plays = [RESET, SILENT, (1.0, b"HTTP/1.1 2x0 OK\r\n\r\n"), (0.25, reply(200, used))]
    scene = await start_scene(nursery, settings, [(0.5, *failing(502))], plays)

    await scene.ask()

    journal = scene.journal()
    assert [(each.cluster, each.endpoint) for each in journal] == [
        ("alpha", f"backend-{each + 1}") for each in scene.order
    ]
    told = [(each.fact.name, each.status, each.error, each.stage) for each in journal]
    assert told == [
        ("BODY_RECEIVED", 502, "", ""),
        ("REQUEST_WRITTEN", None, "upstream_reset", ""),
        ("REQUEST_WRITTEN", None, "deadline_exceeded", "per_try"),
        ("REQUEST_WRITTEN", None, "upstream_protocol_error", ""),
        ("BODY_RECEIVED", 200, "", ""),
    ]
    assert not any(attempt.is_known_zero for attempt in journal)
    lasted = [(each.ended_at or 0) - each.started_at for each in journal]
    assert lasted == pytest.approx([0.5, 0, 2, 1, 0.25])
    heads = [each.head_at and each.head_at - each.started_at for each in journal]
    assert heads == [pytest.approx(0.5), None, None, None, pytest.approx(0.25)]
    for one, other in pairwise(journal):
        assert one.ended_at is not None
        assert one.ended_at <= other.started_at <= one.ended_at + 0.25
    [line] = await scene.router.log()
    assert line["attempts"] == 5
    assert line["upstream_host"] == journal[-1].address
    assert [each.usage for each in journal] == [None, None, None, None, Usage(7, 3)]


@pytest.mark.parametrize("evidence", ["any", "known_zero"])
@pytest.mark.parametrize(
    ("play", "host_fault", "is_zero"),
    [
        (failing(503), None, False),
        (RESET, None, False),
        (SILENT, None, False),
        (OK, NetworkFault.SILENT, True),
    ],
    ids=["an answer", "a reset", "silence", "no connection"],
)
async def test_known_zero_repeats_only_what_never_left(
    play: Play,
    host_fault: NetworkFault | None,
    is_zero: bool,  # noqa: FBT001  # part of the case
    evidence: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """With `any` the same failures are all repeated."""
    settings = f"{RETRIES}1, retry_evidence: {evidence}, per_try_timeout: 2s"
    scene = await start_scene(nursery, settings, [play], [OK])
    if host_fault is not None:
        scene.network.faults["b0.test"] = host_fault

    got = await scene.ask()

    journal = scene.journal()
    assert len(journal) == (2 if is_zero or evidence == "any" else 1)
    assert journal[0].is_known_zero is is_zero
    assert journal[0].usage == (Usage(0, 0) if is_zero else None)
    assert got.status == (200 if len(journal) == 2 else journal[0].status or got.status)


@attrs.define(eq=False)
class CountingSpend:
    """Implements `routing.budget.Spend`: admits so many further attempts."""

    left: int
    asked: list[bool] = attrs.field(factory=list)
    """Whether the attempts before were known to have used nothing."""

    def admit_retry(self, *, is_known_zero: bool) -> bool:
        """Admit one more while any is left."""
        self.asked.append(is_known_zero)
        self.left -= 1
        return self.left >= 0


@attrs.define(eq=False)
class SpendingEngine(RecordingEngine):
    """Gives every call a spend of the test's."""

    spend: CountingSpend = attrs.field(factory=lambda: CountingSpend(0))

    async def plan(self, request: Request, tasks: Tasks, journal: Journal) -> Plan:
        """Plan, and put the spend in."""
        plan = await super().plan(request, tasks, journal)
        assert plan.call is not None
        plan.call.spend = self.spend
        return plan


@pytest.mark.parametrize("left", [0, 2, 9])
async def test_budget_is_asked_before_every_further_attempt(
    left: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Refused, the call ends with what it has, and gives its retry slot back."""
    scene = await start_scene(nursery, RETRIES + "5", [failing(503)])
    engine = SpendingEngine(scene.engine.real, spend=CountingSpend(left))
    scene.router.generation.engine = engine  # type: ignore[assignment]  # passes on the rest

    got = await scene.ask()

    assert (got.status, len(scene.calls)) == (503, min(left, 5) + 1)
    assert engine.spend.asked == [False] * min(left + 1, 5)
    assert await scene.held() == NOTHING


async def test_answer_is_let_go_when_nobody_can_say_whether_to_repeat_it(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A budget that fails is a bug of ours, and leaves no connection or slot behind."""
    scene = await start_scene(nursery, RETRIES + "1", [failing(503)])
    cluster = clusters_of(scene.router.generation).cluster_for(b"alpha")

    class Broken:
        def admit_retry(self, *, is_known_zero: bool) -> bool:
            raise ValueError(is_known_zero)

    call = Call(b"POST", b"/v1/chat/completions", Headers(), b"{}", b"alpha", spend=Broken())
    with pytest.raises(ValueError, match="False"):
        await cluster.send(
            call,
            now=trio.current_time(),
            deadline=Deadline(),
            idle_s=None,
            journal=Journal(),
        )

    assert cluster.state.gate.breaker.active == cluster.state.slots.taken == 0
    assert sum(host.pool.in_use for host in cluster.state.hosts) == 0
