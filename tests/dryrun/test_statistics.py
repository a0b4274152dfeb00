"""Statistics of many runs."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dryrun.records import answered, call, record
from vsr.dryrun.render.statistics_text import render_statistics
from vsr.dryrun.statistics import Tally, spread
from vsr.routing.outcome import Cause


def test_percentiles_are_the_least_values_that_so_many_do_not_pass() -> None:
    """Of 1 to 100, the 90th is 90."""
    values = spread(range(1, 101))

    assert (values.least, values.mean, values.most) == (1, 50.5, 100)
    assert values.percentiles == (50, 90, 95, 99)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40))
@settings(max_examples=50, deadline=None)
def test_spread_is_in_order(values: list[float]) -> None:
    """Every percentile is one of the values, between the least and the greatest."""
    found = spread(values)

    ordered = (found.least, *found.percentiles, found.most)
    assert list(ordered) == sorted(ordered)
    assert set(found.percentiles) <= set(values)


def test_tally_counts_failures_answers_and_models() -> None:
    """A model's share of calls that did not succeed counts the cancelled ones."""
    tally = Tally()
    tally.add(record(call(1, "a", (0, 1)), call(2, "b", (0, 1), cause=Cause.LOST)))
    tally.add(record(call(1, "a", (0, 1)), answer=answered(status=502)))

    found = tally.result("test", 5)

    assert (found.runs, found.failures) == (2, 1)
    assert found.outcomes == (("200", 1), ("502", 1))
    assert found.models == (("a", 1.0, 0.0), ("b", 0.5, 1.0))
    text = render_statistics(found)
    assert "1 failed (50.00%)" in text
    assert max(map(len, text.splitlines())) <= 80
