"""Questions to services that judge, in the ledger."""

import pytest
import trio.testing

from tests.fakes.caller import Said
from tests.fakes.graph import make_run
from tests.fakes.runtime import ScriptedRuntime
from tests.graph.compiled_graphs import compiled
from vsr.errors import GraphFailed
from vsr.graph.executor import execute
from vsr.graph.ledger import VerifierCall
from vsr.graph.run import GraphRun
from vsr.routing.outcome import Cause, Terminal
from vsr.routing.ports import NoRuntime

ASK = {"id": "judged", "type": "assess", "asks": [{"text": "x"}], "on_error": "skip"}
CALL = {"id": "said", "type": "call", "model": "a"}
END = {"type": "respond", "from": "$said"}


def ends_of(run: GraphRun) -> list[tuple[object, ...]]:
    """Return what the ledger tells of questions."""
    calls: list[VerifierCall] = run.ledger.verifier_calls or []
    return [
        (each.step, each.behind, each.terminal, each.cause, each.error, each.ended_at)
        for each in calls
    ]


@pytest.mark.parametrize(
    ("failure", "terminal", "error"),
    [
        (None, Terminal.SUCCEEDED, ""),
        (ValueError("canary"), Terminal.FAILED, GraphFailed.code),
    ],
)
async def test_question_ends_once_it_is_answered_or_has_failed(
    autojump_clock: trio.testing.MockClock,
    failure: Exception | None,
    terminal: Terminal,
    error: str,
) -> None:
    """Behind the calls before it; a step that goes on does not hide it."""
    run = make_run({"a": Said(after_s=1)})
    run.runtime = ScriptedRuntime(delay_s=2, failure=failure)

    await execute(compiled([CALL, ASK, END]), run)

    assert ends_of(run) == [("judged", 1, terminal, None, error, 3.0)]


async def test_question_that_the_graph_does_not_wait_for_is_cancelled(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """With the cause that calls have; the runtime is told at once."""
    group = {"id": "both", "type": "parallel", "branches": [[ASK], [CALL]], "first_k": 1}
    first = {"id": "first", "type": "call", "model": "b"}
    run = make_run({"a": Said(after_s=1)})
    run.runtime = runtime = ScriptedRuntime(delay_s=60)

    await execute(compiled([group, first, {"type": "respond", "from": "$first"}]), run)

    assert ends_of(run) == [("both[0]/judged", 0, Terminal.CANCELLED, Cause.LOST, "", 1.0)]
    assert runtime.cancelled_at == [1.0]


@pytest.mark.parametrize("runtime", [None, NoRuntime()])
async def test_runtime_that_is_not_there_is_not_asked(
    autojump_clock: trio.testing.MockClock, runtime: NoRuntime | None
) -> None:
    """So there is no question."""
    run = make_run()
    run.runtime = runtime

    await execute(compiled([CALL, ASK, END]), run)

    assert run.ledger.verifier_calls is None
