"""The one absolute point in time by which a request must have ended."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsr.deadline import Deadline


def test_default_is_no_deadline() -> None:
    """It never passes."""
    deadline = Deadline()

    assert deadline == Deadline.after(5.0, None)
    assert deadline.remaining_s(1e12) == inf
    assert not deadline.has_passed(1e12)


@pytest.mark.parametrize(
    ("now", "remaining_s", "has_passed"),
    [(10.0, 5.0, False), (14.5, 0.5, False), (15.0, 0.0, True), (99.0, 0.0, True)],
)
def test_remaining_time_never_falls_below_zero(
    now: float, remaining_s: float, *, has_passed: bool
) -> None:
    """At the deadline itself the time is up."""
    deadline = Deadline.after(10.0, 5.0)

    assert deadline.remaining_s(now) == remaining_s
    assert deadline.has_passed(now) is has_passed


def test_zero_timeout_has_passed_at_once() -> None:
    """Whoever wants none says None."""
    assert Deadline.after(10.0, 0.0).has_passed(10.0)


_deadlines = st.builds(Deadline, st.floats(0, 1e9) | st.just(inf))


@given(_deadlines, _deadlines)
def test_narrowing_never_extends(first: Deadline, second: Deadline) -> None:
    """Retries, fallbacks and nodes only ever have less."""
    narrowed = first.narrowed(second)

    assert narrowed.at == min(first.at, second.at)
    assert narrowed == second.narrowed(first)
