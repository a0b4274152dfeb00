"""Counts of what graphs came to."""

from vsr.engine.execution_stats import BOUNDS_S, OTHER, Durations, ExecutionStats
from vsr.routing.execution import AttemptTrace, ExecutedCall, Execution, bounded
from vsr.routing.outcome import Terminal, Usage


def execution_of(algorithm: str, *stages: str) -> Execution:
    """Return an execution with a call in each of these stages."""
    evidences = [
        AttemptTrace(
            ordinal=at,
            stage=stage,
            status=Terminal.SUCCEEDED,
            usage=Usage(1, 2),
            total_latency_ms=9,
        )
        for at, stage in enumerate(stages, 1)
    ]
    calls = tuple(ExecutedCall(each, each.stage, 0.0, 1.0) for each in evidences)
    trace = bounded(algorithm, evidences)
    return Execution(algorithm, Terminal.SUCCEEDED, None, 0.0, 2.0, calls, None, trace)


def test_calls_beyond_the_bounds_of_a_trace_count_all_the_same() -> None:
    """A trace drops what is too much; a count does not."""
    stats = ExecutionStats()

    stats.add(execution_of("a", *["answer"] * 150))

    assert stats.attempts == {("a", "answer", "succeeded", "none"): 150}
    assert stats.tokens == {("a", "answer", "prompt"): 150, ("a", "answer", "completion"): 300}


def test_series_are_bounded_whatever_configurations_were_served() -> None:
    """Stages beyond a thousand are counted together, and none is lost."""
    stats = ExecutionStats()

    for number in range(1_200):
        stats.add(execution_of(f"graph-{number}", "answer"))

    assert len(stats.attempts) <= 1_001
    assert sum(stats.attempts.values()) == 1_200
    assert stats.attempts[(OTHER, OTHER, "succeeded", "none")] == 700
    assert sum(sum(each.counts) for each in stats.executions.values()) == 1_200


def test_duration_stands_in_the_first_bucket_that_it_does_not_exceed() -> None:
    """The last one takes the rest."""
    durations = Durations()

    for seconds in (BOUNDS_S[0], BOUNDS_S[0] * 1.01, 1e6):
        durations.add(seconds)

    assert (durations.counts[0], durations.counts[1], durations.counts[-1]) == (1, 1, 1)
    assert durations.seconds > 1e6
