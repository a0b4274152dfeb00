"""The record of a graph's calls, made of its ledger."""

from collections.abc import Mapping

import pytest
import trio
import trio.testing

from tests.fakes.caller import Said
from tests.fakes.graph import FakeHops, make_run, run_steps
from tests.fakes.runtime import ScriptedRuntime
from tests.graph.compiled_graphs import compiled
from vsr.errors import (
    AnswerNotTranslatable,
    UpstreamAnswerTooLarge,
    UpstreamReset,
    VsrError,
)
from vsr.graph.block import Answer
from vsr.graph.budget import Budget, Limits
from vsr.graph.evidence import Ended, execution_of, stage_of
from vsr.graph.executor import execute
from vsr.graph.ledger import Ledger, Verdict, VerifierCall
from vsr.graph.run import GraphRun
from vsr.routing.budget import Price, Reservation
from vsr.routing.execution import AttemptTrace, ExecutedCall, Execution
from vsr.routing.outcome import Attempt, Cause, Outcome, Terminal, TransportFact, Usage

PRICE = Price(1.0, 2.0, "EUR")
ENDED = Ended("debate", Terminal.SUCCEEDED, None, 1.0, 9.0)


def call(step: str, model: str, **more: object) -> dict[str, object]:
    """Return a step that calls this model."""
    return {"id": step, "type": "call", "model": model, **more}


def evidence_of(run: GraphRun, answer: object = None) -> list[AttemptTrace]:
    """Return the evidence of a run's calls."""
    value = answer.value if isinstance(answer, Answer) else None
    ended = Ended("debate", Terminal.SUCCEEDED, None, 0.0, trio.current_time(), value)
    return [each.evidence for each in execution_of(run.ledger, ended).calls]


def failed_with(code: str, *tries: Attempt, status: int | None = None) -> AttemptTrace:
    """Return the evidence of a call that failed like this."""
    ledger = Ledger()
    entry = ledger.open("alpha", Reservation("alpha", None))
    entry.error = code
    entry.close(Outcome(Terminal.FAILED, None, status, attempts=tries))
    return _only(execution_of(ledger, ENDED)).evidence


def _only(execution: Execution) -> ExecutedCall:
    [made] = execution.calls
    return made


async def test_reply_that_is_the_answer_is_selected(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The one before it is a call like others."""
    run = make_run({"a": Said(after_s=2), "b": Said(after_s=3)}, hops=FakeHops(PRICE))

    answer = await run_steps(
        run, call("draft", "a"), call("final", "b"), {"type": "respond", "from": "$final"}
    )

    first, second = evidence_of(run, answer)
    assert (first.ordinal, first.stage, first.model, first.selected) == (1, "draft", "a", False)
    assert (second.ordinal, second.stage, second.model, second.selected) == (2, "final", "b", True)
    assert (first.usable, first.discarded, first.reason) == (True, False, None)
    assert (first.total_latency_ms, second.total_latency_ms) == (2000, 3000)
    assert first.usage == Usage(7, 3)
    assert (first.actual_cost, first.currency, first.estimated_cost) == (13e-6, "EUR", None)
    assert (first.reserved_tokens, first.estimated_tokens) == (None, None)


async def test_selection_survives_what_passes_a_reply_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """An aggregate picks one of a panel; the other one is not selected."""
    panel = {"id": "panel", "type": "parallel", "over": ["a", "b"], "do": [call("said", "$item")]}
    best = {"id": "best", "type": "aggregate", "strategy": "last_success", "from": "$panel"}
    run = make_run({"a": Said("A"), "b": Said("B")})

    answer = await execute(compiled([panel, best, {"type": "respond", "from": "$best"}]), run)

    assert [each.selected for each in evidence_of(run, answer)] == [False, True]
    execution = execution_of(run.ledger, Ended("x", Terminal.SUCCEEDED, None, 0, 1, answer.value))  # type: ignore[union-attr]  # an answer
    assert execution.trace.final_attempt_ordinal == 2


async def test_what_is_reserved_is_told_where_limits_ask_for_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Of the answer, of both, and what they cost at most."""
    budget = Budget(Limits(max_tokens=1_000))
    run = make_run(budget=budget, hops=FakeHops(PRICE))

    await run_steps(run, call("said", "a"), {"type": "respond", "from": "$said"})

    [evidence] = evidence_of(run)
    assert (evidence.reserved_tokens, evidence.estimated_tokens) == (20, 30)
    assert evidence.estimated_cost == 50e-6


@pytest.mark.parametrize(
    ("said", "status", "reason", "error"),
    [
        (Said(status=503), "failed", "upstream_error", "call_failed"),
        (Said(error=UpstreamReset()), "failed", "upstream_error", "upstream_reset"),
        (Said(body=b"no json"), "failed", "invalid_response", "graph_failed"),
        (Said(text=" "), "succeeded", "unusable_response", ""),
    ],
)
async def test_end_of_a_call_has_a_reason(
    autojump_clock: trio.testing.MockClock, said: Said, status: str, reason: str, error: str
) -> None:
    """A word of a closed list; an answer that says nothing is discarded, not failed."""
    run = make_run({"a": said})
    step = call("said", "a", on_error="skip")

    await run_steps(run, step, call("other", "b"), {"type": "respond", "from": "$other"})

    evidence = evidence_of(run)[0]
    made = execution_of(run.ledger, ENDED).calls[0]
    assert (evidence.status, evidence.reason, made.error) == (status, reason, error)
    assert evidence.discarded is (status == "succeeded")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (AnswerNotTranslatable.code, "invalid_response"),
        (UpstreamAnswerTooLarge.code, "invalid_response"),
        ("upstream_protocol_error", "invalid_response"),
        ("no_healthy_endpoint", "upstream_error"),
        (VsrError.code, "internal_error"),
    ],
)
def test_failure_is_the_backends_the_answers_or_ours(code: str, reason: str) -> None:
    """By its code."""
    assert failed_with(code).reason == reason


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        (Cause.CLIENT_GONE, "request_cancelled"),
        (Cause.DRAIN, "request_cancelled"),
        (Cause.DEADLINE, "deadline_exceeded"),
        (Cause.BUDGET, "budget_exhausted"),
        (Cause.LOST, "lost"),
    ],
)
def test_call_that_was_ended_before_its_time_says_why(cause: Cause, reason: str) -> None:
    """By its cause; it has no error, and what it has used is not known."""
    ledger = Ledger()
    written = Attempt("alpha", "e", "a:1", 1.0, TransportFact.REQUEST_WRITTEN, error="cancelled")
    entry = ledger.open("alpha", Reservation("alpha", None))
    entry.close(Outcome(Terminal.CANCELLED, cause, attempts=(written,)))

    made = _only(execution_of(ledger, ENDED))

    assert (made.evidence.reason, made.cause, made.evidence.usage) == (reason, cause, None)


def test_times_are_those_of_the_first_and_the_last_try() -> None:
    """Waiting for a slot; the head of the answer; the end."""
    ledger = Ledger()
    entry = ledger.open("alpha", Reservation("alpha", None))
    entry.started_at, entry.ended_at = 1.0, 6.0
    first = Attempt("alpha", "e", "a:1", 1.25, status=503, head_at=2.0, ended_at=2.0)
    last = Attempt("alpha", "e", "a:1", 3.0, status=200, head_at=4.5, ended_at=6.0)
    entry.close(Outcome(Terminal.SUCCEEDED, None, 200, Usage(1, 2), (first, last)))

    made = _only(execution_of(ledger, ENDED))

    evidence = made.evidence
    assert (evidence.queue_latency_ms, evidence.first_byte_latency_ms) == (250, 3500)
    assert (evidence.total_latency_ms, made.tries) == (5000, (first, last))


def test_call_that_the_router_has_made_ends_with_its_last_try() -> None:
    """And is the answer if it succeeded; a status is that of the backend."""
    ledger = Ledger()
    for status, terminal in ((200, Terminal.SUCCEEDED), (503, Terminal.FAILED)):
        entry = ledger.open("alpha", Reservation("alpha", None))
        entry.started_at = 1.0
        tried = Attempt("alpha", "e", "a:1", 1.0, status=status, ended_at=3.0)
        entry.close(Outcome(terminal, None, status, attempts=(tried,)))

    execution = execution_of(ledger, ENDED)

    assert [each.evidence.selected for each in execution.calls] == [True, False]
    assert [each.ended_at for each in execution.calls] == [3.0, 3.0]
    assert [each.evidence.reason for each in execution.calls] == [None, "upstream_error"]


def test_call_that_has_not_ended_ends_with_the_graph() -> None:
    """In the same class."""
    ledger = Ledger()
    ledger.open("alpha", Reservation("alpha", None)).started_at = 2.0
    gone = Ended("debate", Terminal.CANCELLED, Cause.CLIENT_GONE, 1.0, 9.0)

    made = _only(execution_of(ledger, gone))

    assert (made.evidence.status, made.cause) == ("cancelled", "client_gone")
    assert (made.ended_at, made.evidence.total_latency_ms) == (9.0, 7000)


@pytest.mark.parametrize(
    ("fact", "terminal", "usage"),
    [
        (TransportFact.CONNECTED, Terminal.FAILED, Usage(0, 0)),
        (TransportFact.REQUEST_PARTLY_WRITTEN, Terminal.FAILED, None),
        (TransportFact.BODY_RECEIVED, Terminal.SUCCEEDED, None),
    ],
)
def test_usage_is_zero_only_where_that_is_sure(
    fact: TransportFact, terminal: Terminal, usage: Usage | None
) -> None:
    """Whatever is unknown makes the sum unknown."""
    ledger = Ledger()
    ledger.open("alpha", Reservation("alpha", None)).close(
        Outcome(terminal, attempts=(Attempt("alpha", "e", "a:1", 0.0, fact),))
    )
    ledger.open("beta", Reservation("beta", None)).close(
        Outcome(Terminal.SUCCEEDED, usage=Usage(3, 4))
    )

    execution = execution_of(ledger, ENDED)

    assert execution.calls[0].evidence.usage == usage
    assert execution.usage == (None if usage is None else Usage(3, 4))


@pytest.mark.parametrize(
    ("verdict", "reason", "discarded"),
    [
        (Verdict(is_accepted=True, score=0.9, threshold=0.7), "threshold_met", False),
        (Verdict(is_accepted=False, score=0.2, threshold=0.7), "threshold_not_met", True),
        (Verdict(is_accepted=True), None, False),
        (Verdict(is_accepted=False), None, True),
    ],
)
async def test_verdict_of_the_graph_is_told(
    autojump_clock: trio.testing.MockClock,
    verdict: Verdict,
    reason: str | None,
    discarded: bool,  # noqa: FBT001  # a column of the table
) -> None:
    """What was not accepted is discarded, unless it is the answer all the same."""
    run = make_run()
    answer = await run_steps(run, call("said", "a"), {"type": "respond", "from": "$said"})
    [entry] = run.ledger.entries

    run.ledger.judge(entry.reply, verdict)

    [evidence] = evidence_of(run)
    assert (evidence.accepted, evidence.score) == (verdict.is_accepted, verdict.score)
    assert (evidence.reason, evidence.discarded) == (reason, discarded)
    assert evidence_of(run, answer)[0].discarded is False


async def test_verdict_on_what_no_call_has_brought_is_nobodys(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A value of another kind, too."""
    run = make_run()
    await run_steps(run, call("said", "a"), {"type": "respond", "from": "$said"})

    run.ledger.judge("text", Verdict(is_accepted=True))

    assert evidence_of(run)[0].accepted is None


async def test_success_of_a_branch_is_a_verdict(autojump_clock: trio.testing.MockClock) -> None:
    """Of the reply that is its value."""
    panel = {
        "id": "panel",
        "type": "parallel",
        "over": ["a", "b"],
        "success": {"content_matches": {"value": "$it", "pattern": "A"}},
        "do": [call("said", "$item")],
    }
    first = {"id": "first", "type": "aggregate", "strategy": "first_success", "from": "$panel"}
    run = make_run({"a": Said("A"), "b": Said("B")})

    await execute(compiled([panel, first, {"type": "respond", "from": "$first"}]), run)

    assert [each.accepted for each in evidence_of(run)] == [True, False]


async def test_verifier_stands_among_the_calls_in_the_order_of_the_starts(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It has no model and no tokens."""
    run = make_run({"a": Said(after_s=1)})
    run.runtime = ScriptedRuntime({"assess/0": b"0.5"})
    ask: Mapping[str, object] = {"id": "judged", "type": "assess", "asks": [{"text": "x"}]}

    await run_steps(
        run, call("draft", "a"), ask, call("final", "b"), {"type": "respond", "from": "$final"}
    )

    calls = evidence_of(run)
    assert [(each.ordinal, each.stage, each.verifier_type) for each in calls] == [
        (1, "draft", None),
        (2, "judged", "runtime"),
        (3, "final", None),
    ]
    assert (calls[1].model, calls[1].usage, calls[1].status) == (None, None, "succeeded")


def test_verifier_that_was_cut_off_ends_with_the_graph() -> None:
    """Or as it says itself."""
    ledger = Ledger(
        verifier_calls=[
            VerifierCall("http", "a", 0, 1.0, 3.0, Terminal.FAILED, None, "call_failed"),
            VerifierCall("http", "b", 0, 3.0),
        ]
    )
    late = Ended("debate", Terminal.TIMED_OUT, Cause.DEADLINE, 1.0, 9.0)

    failed, cut_off = execution_of(ledger, late).calls

    assert (failed.evidence.status, failed.evidence.reason) == ("failed", "upstream_error")
    assert (cut_off.evidence.status, cut_off.evidence.reason) == ("timed_out", "deadline_exceeded")
    assert (failed.evidence.total_latency_ms, cut_off.evidence.total_latency_ms) == (2000, 6000)


@pytest.mark.parametrize(
    ("path", "stage"),
    [
        ("draft", "draft"),
        ("panel[12]/answer", "answer"),
        ("cascade[0]/branch#1/score/grade[3]", "grade"),
        ("group[0]/call#0", "call#0"),
        ("", ""),
    ],
)
def test_stage_is_the_id_of_the_step(path: str, stage: str) -> None:
    """Without what tells rounds and branches apart, of which there are any number."""
    assert stage_of(path) == stage
