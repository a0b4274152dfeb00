"""Waits between the attempts of one call."""

import random
from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vsr.upstream.policy.backoff import Backoff, retry_after_s

NANOSECONDS = st.integers(1, 60_000_000_000)
"""Of a configured duration: above zero, at the finest that a document can say."""


def seeded(seed: int) -> random.Random:
    """Return a source that gives the same numbers in every run."""
    return random.Random(seed)  # noqa: S311  # reproducible waits, not a secret


def whole_ms(wait_s: float) -> int:
    """Return the milliseconds of a wait, which must be whole."""
    milliseconds = round(wait_s * 1000)
    assert wait_s == milliseconds / 1000
    return milliseconds


def waits_ms(base_s: float, max_s: float, *, step: int, draws: int = 8000) -> Counter[int]:
    """Return how often the wait number `step` had which milliseconds, in as many fresh calls."""
    rng = seeded(7)
    counter: Counter[int] = Counter()
    for _ in range(draws):
        back_off = Backoff(base_s, max_s, rng)
        for _ in range(step):
            back_off.next_s()
        counter[whole_ms(back_off.next_s())] += 1
    return counter


def asked_ms(value: bytes, max_s: float, *, draws: int = 20_000) -> set[int | None]:
    """Return all waits in milliseconds that a `retry-after` leads to."""
    rng = seeded(7)
    waits = {retry_after_s(value, max_s, rng) for _ in range(draws)}
    return {None if wait_s is None else whole_ms(wait_s) for wait_s in waits}


@pytest.mark.parametrize(
    ("step", "interval_ms"), list(enumerate([25, 50, 100, 200, 250, 250, 250]))
)
def test_intervals_double_up_to_the_maximum(step: int, interval_ms: int) -> None:
    """25, 50, 100, 200, 250, 250 … ms by default, and every whole millisecond below occurs."""
    assert waits_ms(0.025, 0.25, step=step).keys() == set(range(interval_ms))


def test_waits_are_equally_likely() -> None:
    """A wait is uniform; 8000 draws of 25 values are 320 each, give or take 18."""
    counts = waits_ms(0.025, 0.25, step=0).values()

    assert len(counts) == 25
    assert min(counts) > 320 - 5 * 18
    assert max(counts) < 320 + 5 * 18


@pytest.mark.parametrize(
    ("max_s", "interval_ms"), [(0.049, 49), (0.05, 50), (0.051, 50), (0.025, 25)]
)
def test_second_interval_is_at_most_the_maximum(max_s: float, interval_ms: int) -> None:
    """Twice the base as long as that stays below the maximum, else the maximum itself."""
    assert max(waits_ms(0.025, max_s, step=1)) == interval_ms - 1


def test_wait_is_capped_when_the_base_is_above_the_maximum() -> None:
    """Layers merge field by field: one may raise the base above another's maximum."""
    waits = waits_ms(0.1, 0.01, step=0)

    assert max(waits) == 10
    assert waits[10] > 8000 / 2


def test_interval_is_the_maximum_after_a_base_above_it() -> None:
    """The maximum bounds the intervals from the second on."""
    assert max(waits_ms(0.1, 0.01, step=1)) == 9


def test_interval_holds_a_begun_millisecond() -> None:
    """Whole milliseconds below 2.5 are 0, 1 and 2; below half of one there is 0 alone."""
    assert waits_ms(0.0025, 0.25, step=0).keys() == {0, 1, 2}
    assert waits_ms(0.0005, 0.25, step=0).keys() == {0}


def test_interval_excludes_itself() -> None:
    """A base of 70 ms gives 69 at most, although its float is a little more than 70 ms."""
    assert max(waits_ms(0.07, 0.7, step=0)) == 69


@given(
    base_ns=NANOSECONDS, max_ns=NANOSECONDS, seed=st.integers(0, 2**32), steps=st.integers(1, 12)
)
@example(base_ns=100_000_000, max_ns=1, seed=0, steps=2)
@settings(deadline=None)
def test_waits_never_exceed_the_maximum(base_ns: int, max_ns: int, seed: int, steps: int) -> None:
    """However the base, the maximum and the numbers drawn are, and none is negative."""
    back_off = Backoff(base_ns / 1e9, max_ns / 1e9, seeded(seed))

    for _ in range(steps):
        assert 0 <= back_off.next_s() <= max_ns / 1e9


def test_calls_draw_from_the_source_they_are_given() -> None:
    """Equal sources give equal waits, so a test may foresee them; others differ."""
    first, same, other = (
        [back_off.next_s() for _ in range(6)]
        for back_off in (Backoff(0.025, 0.25, seeded(seed)) for seed in (1, 1, 2))
    )

    assert first == same
    assert first != other


def test_retry_after_is_obeyed_with_an_addition() -> None:
    """Two seconds are two seconds and any whole milliseconds below half of them."""
    assert asked_ms(b"2", 10.0) == set(range(2000, 3000))


def test_retry_after_of_one_second_adds_less_than_half_a_second() -> None:
    """The addition is below half of the wait, whatever the wait."""
    assert asked_ms(b"1", 10.0) == set(range(1000, 1500))


def test_retry_after_of_zero_is_no_wait() -> None:
    """Zero is a number of seconds that counts: at once, instead of the back-off."""
    assert asked_ms(b"0", 10.0) == {0}


def test_retry_after_may_equal_the_bound() -> None:
    """The bound is the largest number obeyed; the addition may go beyond it."""
    assert asked_ms(b"2", 2.0) == set(range(2000, 3000))


@pytest.mark.parametrize("max_s", [1.0, 1.999])
def test_retry_after_above_the_bound_is_ignored(max_s: float) -> None:
    """Such a value is not cut down to the bound: the back-off decides."""
    assert asked_ms(b"2", max_s) == {None}


@pytest.mark.parametrize("max_s", [None, 0.0])
@pytest.mark.parametrize("value", [b"0", b"1"])
def test_retry_after_is_ignored_without_a_bound(value: bytes, max_s: float | None) -> None:
    """The header counts only where the policy names a bound above zero."""
    assert retry_after_s(value, max_s, seeded(7)) is None


def test_missing_retry_after_leaves_the_back_off() -> None:
    """Nothing was asked for."""
    assert retry_after_s(None, 10.0, seeded(7)) is None


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b" ",
        b"-1",
        b"+1",
        b"1.0",
        b"1e0",
        b"0x1",
        b"1_0",
        b"1 2",
        b"1, 2",
        b"soon",
        "\u0661".encode(),
        b"inf",
        b"nan",
        b"Fri, 31 Dec 1999 23:59:59 GMT",
    ],
)
def test_retry_after_other_than_whole_seconds_is_ignored(value: bytes) -> None:
    """Dates, fractions, signs and everything else that is not digits alone."""
    assert retry_after_s(value, 1000.0, seeded(7)) is None


@pytest.mark.parametrize("value", [b" 2", b"2\t", b" \t2 ", b"002"])
def test_retry_after_may_have_blanks_around_and_leading_zeros(value: bytes) -> None:
    """Blanks around a field value are no part of it."""
    assert asked_ms(value, 2.0) == set(range(2000, 3000))


def test_retry_after_of_very_many_digits_is_ignored() -> None:
    """A backend must not cause an error by a number that is longer than Python converts."""
    assert retry_after_s(b"9" * 100_000, 1000.0, seeded(7)) is None


@given(
    value=st.binary(max_size=8) | st.integers(0, 10**6).map(lambda number: b"%d" % number),
    max_ns=NANOSECONDS,
    seed=st.integers(0, 2**32),
)
@settings(deadline=None)
def test_retry_after_is_bounded_for_any_bytes(value: bytes, max_ns: int, seed: int) -> None:
    """No value of a backend makes a call wait half as long again as the bound, nor fail."""
    wait_s = retry_after_s(value, max_ns / 1e9, seeded(seed))

    assert wait_s is None or 0 <= wait_s <= 1.5 * max_ns / 1e9
