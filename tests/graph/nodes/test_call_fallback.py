"""The other models of a call step."""

import pytest
import trio
import trio.testing

from tests.fakes.caller import Said
from tests.fakes.graph import caller_of, ends_of, make_run, problems_of, run_steps
from vsr.errors import BudgetExhausted, CallFailed, UpstreamReset
from vsr.graph.block import Answer
from vsr.graph.budget import Budget, Limits

DONE = {"type": "respond", "from": "$one"}
BUSY = Said(status=503)


def call(**fields: object) -> dict[str, object]:
    """Return a call that has two other models."""
    return {"id": "one", "type": "call", "model": "a", "fallback": ["b", "c"], **fields}


@pytest.mark.parametrize(
    ("said", "called"),
    [
        ({}, ["a"]),
        ({"a": BUSY}, ["a", "b"]),
        ({"a": Said(error=UpstreamReset()), "b": Said(body=b"<html>")}, ["a", "b", "c"]),
    ],
)
async def test_next_model_is_asked_while_none_has_answered(
    said: dict[str, Said], called: list[str]
) -> None:
    """Each is a call of its own in the ledger."""
    run = make_run(said)

    got = await run_steps(run, call(), DONE)

    assert isinstance(got, Answer)
    assert got.model == called[-1]
    assert caller_of(run).called == called
    assert [end.split()[1] for end in ends_of(run)] == ["failed"] * (len(called) - 1) + [
        "succeeded"
    ]


async def test_last_failure_is_that_of_the_step() -> None:
    """When nobody is left."""
    run = make_run({"a": BUSY, "b": BUSY, "c": Said(status=429)})

    with pytest.raises(CallFailed, match="status 429"):
        await run_steps(run, call(), DONE)

    assert caller_of(run).called == ["a", "b", "c"]


async def test_exhausted_budget_asks_nobody_else() -> None:
    """The second call is refused, and the third is not tried."""
    run = make_run({"a": BUSY}, budget=Budget(Limits(max_hops=1)))

    with pytest.raises(BudgetExhausted):
        await run_steps(run, call(), DONE)

    assert caller_of(run).called == ["a"]


async def test_each_has_the_step_s_timeout(autojump_clock: trio.testing.MockClock) -> None:
    """Of its own, not one for all."""
    run = make_run({"a": Said(after_s=60), "b": Said(after_s=60), "c": Said(after_s=1)})

    await run_steps(run, call(timeout="2s"), DONE)

    assert trio.current_time() == pytest.approx(5, abs=1e-6)
    assert ends_of(run) == ["a timed_out deadline", "b timed_out deadline", "c succeeded"]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"stream": "tail"}, "a call that is handed out has no fallback"),
        ({"on_tool_calls": "suspend"}, "a call that may wait for the client's tools has no"),
    ],
)
def test_fallback_is_refused_where_it_could_not_be_kept(
    fields: dict[str, object], problem: str
) -> None:
    """Once a byte has gone to the client nobody else is asked."""
    assert any(problem in found for found in problems_of([call(**fields), DONE]))
