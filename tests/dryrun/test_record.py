"""Records of runs, and what follows from them."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dryrun.records import answered, call, record
from vsr.dryrun.record import StepRecord, critical_path, in_tree_order
from vsr.routing.outcome import Cause

SPANS = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)), max_size=8)


def test_critical_path_leads_from_the_end_through_what_ended_last() -> None:
    """Waiting without a call is a part of it; calls that lost are not."""
    run = record(
        call(1, "fast", (0, 1)),
        call(2, "slow", (0, 1.5)),
        call(3, "lost", (0, 1.5), cause=Cause.LOST),
        call(4, "judge", (2, 3)),
    )

    path = [
        (link.started_s, link.ended_s, link.call and link.call.model) for link in critical_path(run)
    ]

    assert path == [(0, 1.5, "slow"), (1.5, 2, None), (2, 3, "judge")]


@given(spans=SPANS)
@settings(max_examples=60, deadline=None)
def test_critical_path_covers_the_whole_run(spans: list[tuple[int, int]]) -> None:
    """Its links follow each other without a gap, from the start to the end."""
    calls = [call(at + 1, "m", (start, start + took)) for at, (start, took) in enumerate(spans)]
    end = max((each.ended_s for each in calls), default=0) + 1.0
    run = record(*calls, answer=answered(ended_s=end))

    links = critical_path(run)

    assert links[0].started_s == 0
    assert links[-1].ended_s == end
    assert all(a.ended_s == b.started_s for a, b in pairwise(links))


def test_steps_stand_below_what_they_are_in() -> None:
    """Branch by branch, though the branches run at once; steps of one branch in their order."""
    paths = ["p", "p[0]/a", "p[10]/a", "p[2]/a", "p[2]/b", "p[0]/b", "q", "q[0]/r", "q[0]/r[1]/s"]
    started = [StepRecord(path, "call", at, at) for at, path in enumerate(paths)]

    ordered = [step.path for step in in_tree_order(started)]

    assert ordered == [
        "p",
        "p[0]/a",
        "p[0]/b",
        "p[2]/a",
        "p[2]/b",
        "p[10]/a",
        "q",
        "q[0]/r",
        "q[0]/r[1]/s",
    ]


def test_success_is_a_whole_answer_with_status_200() -> None:
    """Neither an error nor half an answer is one."""
    assert record().has_succeeded
    assert not record(answer=answered(status=502)).has_succeeded
    assert not record(answer=answered(end="cut")).has_succeeded
