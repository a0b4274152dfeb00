"""Ids of recorded configurations."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsr.config.record_ids import is_record_id, next_record_id, record_order

AT = datetime(2026, 3, 1, 12, 30, 5, tzinfo=UTC)


def test_id_is_the_time_and_a_number_where_that_is_taken() -> None:
    """From the second record of a second on."""
    first = next_record_id(AT, [])
    second = next_record_id(AT, [first])

    assert [first, second, next_record_id(AT, [second, first])] == [
        "20260301-123005",
        "20260301-123005-001",
        "20260301-123005-002",
    ]


@given(st.lists(st.integers(-5, 5), max_size=30))
def test_ids_increase_whatever_the_clock_does(steps: list[int]) -> None:
    """It may go back, as on the day that winter begins."""
    ids: list[str] = []
    now = AT
    for step in steps:
        now += timedelta(seconds=step)
        ids.append(next_record_id(now, reversed(ids)))

    assert ids == sorted(set(ids), key=record_order)
    assert all(map(is_record_id, ids))


def test_more_than_a_thousand_in_a_second_are_in_order() -> None:
    """As numbers, not as texts."""
    assert next_record_id(AT, ["20260301-123005-999"]) == "20260301-123005-1000"
    assert record_order("20260301-123005-1000") > record_order("20260301-123005-999")


@pytest.mark.parametrize(
    "text", ["", "20260301", "20260301-123005-1", "20260301-123005/../x", "20260301-123005\n", "٢"]
)
def test_nothing_else_is_an_id(text: str) -> None:
    """An id becomes part of a path."""
    assert not is_record_id(text)
    with pytest.raises(ValueError, match="no record id"):
        record_order(text)
