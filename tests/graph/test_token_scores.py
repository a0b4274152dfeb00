"""Token logprobs as scores."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.graph.branch_ends import scored
from vsr.codec.chat_reply import TokenLogprob
from vsr.graph.token_scores import (
    has_margins,
    logprob_score,
    margin_score,
    mean_logprob,
    mean_margin,
)


@pytest.mark.parametrize(
    ("mean", "score"), [(0.0, 1.0), (-1.5, 0.5), (-3.0, 0.0), (-40.0, 0.0), (0.1, 1.0)]
)
def test_logprob_score_is_linear_from_minus_3_to_0(mean: float, score: float) -> None:
    """Beyond these it is cut."""
    assert logprob_score(mean) == score


def test_margin_score_grows_from_0_towards_1() -> None:
    """By 1 - e^(-x/3); a second alternative that leads counts as no confidence."""
    assert margin_score(-1.0) == 0
    assert margin_score(0.0) == 0
    assert margin_score(3.0) == pytest.approx(1 - math.exp(-1))
    assert margin_score(1e6) == 1


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_scores_keep_the_order_of_the_means(one: float, other: float) -> None:
    """And lie between 0 and 1."""
    low, high = sorted((one, other))

    for score in (logprob_score, margin_score):
        assert 0 <= score(low) <= score(high) <= 1


def test_margin_takes_the_first_two_alternatives_as_given() -> None:
    """Neither the best ones nor the chosen token; a third does not matter."""
    tokens = [
        TokenLogprob("x", -9.0, (("a", -2.0), ("b", -1.0), ("c", 0.0))),
        TokenLogprob("x", -9.0, (("a", -1.0), ("b", -4.0))),
    ]

    assert mean_margin(tokens) == 1


def test_margins_are_there_only_if_every_token_has_one() -> None:
    """One alternative is none."""
    whole = scored(("a", -1.0, 1.0), ("b", -1.0, 1.0)).logprobs
    single = TokenLogprob("c", -1.0, (("c", -1.0),))

    assert has_margins(whole)
    assert not has_margins([*whole, single])


def test_mean_adds_from_left_to_right() -> None:
    """So a score on its threshold falls on the same side under every Python version."""
    tokens = scored(*[("t", -0.1)] * 10).logprobs

    assert mean_logprob(tokens) == -0.9999999999999999 / 10
