"""Node type `rate`."""

from collections.abc import Mapping, Sequence

import pytest
import trio.testing

from tests.fakes.caller import Said
from tests.fakes.graph import make_run
from tests.graph.compiled_graphs import compiled, faults
from vsr.graph.block import Answer
from vsr.graph.executor import execute
from vsr.graph.ledger import Verdict
from vsr.graph.run import GraphRun

CALL = {"id": "said", "type": "call", "model": "a"}


async def rated(run: GraphRun, *steps: Mapping[str, object]) -> str:
    """Run a call, these steps and a respond that tells what `rated` came to."""
    told: Sequence[Mapping[str, object]] = (
        {"type": "respond", "from": "$said", "trace_name": "rated", "trace": {"is": "$rated"}},
    )
    answer = await execute(compiled([CALL, *steps, *told]), run)
    assert isinstance(answer, Answer)
    return answer.body.decode().partition('"rated":')[2]


@pytest.mark.parametrize(
    ("score", "is_accepted"), [(0.7, True), (0.8, True), (0.69, False), (1, True)]
)
async def test_score_is_noted_with_the_call_of_the_reply(
    autojump_clock: trio.testing.MockClock,
    score: float,
    is_accepted: bool,  # noqa: FBT001  # a column of the table
) -> None:
    """And the step's value is whether it is good enough."""
    run = make_run()

    step = {"id": "rated", "type": "rate", "reply": "$said", "score": score, "threshold": 0.7}
    told = await rated(run, step)

    [entry] = run.ledger.entries
    assert entry.verdict == Verdict(is_accepted, float(score), 0.7)
    assert told.startswith('{"is":true}' if is_accepted else '{"is":false}')


async def test_missing_score_is_not_good_enough(autojump_clock: trio.testing.MockClock) -> None:
    """There is none to tell."""
    run = make_run()

    step = {"id": "rated", "type": "rate", "reply": "$said", "score": None, "threshold": 0.7}
    await rated(run, step)

    assert run.ledger.entries[0].verdict == Verdict(is_accepted=False, score=None, threshold=0.7)


async def test_reply_that_is_missing_is_rated_nowhere(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Its call has failed, and says so itself."""
    run = make_run({"b": Said(status=503)})
    lost = {"id": "lost", "type": "call", "model": "b", "on_error": "skip"}

    step = {"id": "rated", "type": "rate", "reply": "$lost", "score": 0.9, "threshold": 0.7}
    told = await rated(run, lost, step)

    assert [entry.verdict for entry in run.ledger.entries] == [None, None]
    assert told.startswith('{"is":true}')


def test_what_is_no_reply_is_refused_when_compiled() -> None:
    """As in every other step."""
    step = {"id": "rated", "type": "rate", "reply": "text", "score": 0.9, "threshold": 0.7}

    [fault] = faults([CALL, step, {"type": "respond", "from": "$said"}])

    assert "reply" in fault
