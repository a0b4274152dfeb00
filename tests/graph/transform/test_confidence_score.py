"""Transformers `confidence_settings` and `confidence_score`."""

import math

import pytest

from tests.graph.branch_ends import INPUTS, reply, scored
from vsr.codec.chat_reply import Reply, TokenLogprob
from vsr.errors import GraphFailed
from vsr.graph.transform.confidence_score import (
    ConfidenceMethod,
    ConfidenceScore,
    MakeConfidenceSettings,
    Scorer,
)


@pytest.mark.parametrize(
    ("method", "threshold", "scorer", "top_logprobs"),
    [
        ("avg_logprob", -1, "logprobs", 1),
        ("margin", 0.5, "logprobs", 2),
        ("hybrid", 0.5, "logprobs", 2),
        ("self_verify", 0.7, "self_verify", None),
        ("automix_entailment", 0.7, "entailment", None),
    ],
)
def test_settings_go_by_the_method(
    method: ConfidenceMethod, threshold: float, scorer: Scorer, top_logprobs: int | None
) -> None:
    """Only a call that asks for no logprobs may be streamed."""
    found = MakeConfidenceSettings(method)(INPUTS)

    assert (found.threshold, found.scorer) == (threshold, scorer)
    assert found.top_logprobs == top_logprobs
    assert (found.stream == "follow") is (top_logprobs is None)


def test_given_threshold_replaces_the_methods_own() -> None:
    """But 0 says nothing, as in the document."""
    assert MakeConfidenceSettings("margin", 0.9)(INPUTS).threshold == 0.9
    assert MakeConfidenceSettings("margin", 0)(INPUTS).threshold == 0.5
    assert MakeConfidenceSettings("avg_logprob", 0.1)(INPUTS).threshold == 0.1


def test_average_is_over_all_tokens() -> None:
    """No alternatives are needed for it."""
    assert ConfidenceScore(scored(("a", -1.0), ("b", -2.0)))(INPUTS) == 0.5


def test_margin_looks_at_alternatives_alone() -> None:
    """Whatever the logprob of the chosen token."""
    score = ConfidenceScore(scored(("a", -50.0, 3.0)), method="margin")(INPUTS)

    assert score == pytest.approx(1 - math.exp(-1))


def test_hybrid_weighs_both() -> None:
    """Each weight goes to its own score, and 0 is a weight."""
    answer = scored(("a", -1.5, 3.0))

    mixed = ConfidenceScore(answer, "hybrid", logprob_weight=0.2, margin_weight=0.8)(INPUTS)
    even = ConfidenceScore(answer, "hybrid")(INPUTS)
    single = ConfidenceScore(answer, "hybrid", logprob_weight=1, margin_weight=0)(INPUTS)

    assert mixed == pytest.approx(0.2 * 0.5 + 0.8 * (1 - math.exp(-1)))
    assert even == pytest.approx(0.5 * 0.5 + 0.5 * (1 - math.exp(-1)))
    assert single == 0.5


def test_filter_scores_tokens_of_argument_values_alone() -> None:
    """A token counts as a whole as soon as one of its characters does."""
    answer = scored(
        ('say <call>{"name": "f", "arguments": {"city', 0.0), ('": "Pa', -1.5), ('ris"}}', -3.0)
    )

    filtered = ConfidenceScore(answer, token_filter="tool_call_args")(INPUTS)

    assert filtered == pytest.approx(0.25)
    assert ConfidenceScore(answer)(INPUTS) == pytest.approx(0.5)


def test_filter_goes_for_margins_too() -> None:
    """Of the same tokens."""
    answer = scored(('{"arguments": ', -1.0, 0.0), ("12", -1.0, 3.0), ("}", -1.0, 0.0))

    score = ConfidenceScore(answer, "margin", "tool_call_args")(INPUTS)

    assert score == pytest.approx(1 - math.exp(-1))


def test_filter_may_leave_an_average_of_0() -> None:
    """That is the best there is, and no sign that there are no such tokens."""
    answer = scored(('{"arguments": ', -3.0), ("12", 0.0), ("}", -3.0))

    assert ConfidenceScore(answer, token_filter="tool_call_args")(INPUTS) == 1


def test_filter_without_a_hit_takes_all_tokens() -> None:
    """A call that is not spelled in the tokens, or has no argument, is scored as any text."""
    answer = scored(('{"arguments": {}}', -1.5), ("", -1.5))

    assert ConfidenceScore(answer, token_filter="tool_call_args")(INPUTS) == 0.5


def test_margins_must_be_complete_beyond_the_filter() -> None:
    """Also a token that does not count must have its alternatives."""
    answer = scored(('{"arguments": ', -1.0), ("12", -1.0, 3.0), ("}", -1.0, 3.0))

    with pytest.raises(GraphFailed, match="no complete top-logprob alternatives"):
        ConfidenceScore(answer, "margin", "tool_call_args")(INPUTS)


@pytest.mark.parametrize("method", ["avg_logprob", "margin", "hybrid"])
def test_answer_without_logprobs_has_no_score(method: ConfidenceMethod) -> None:
    """The message names model and method, and nothing that the model said."""
    with pytest.raises(GraphFailed) as failed:
        ConfidenceScore(reply("secret", "large"), method)(INPUTS)

    assert str(failed.value) == (
        'confidence evaluation for model "large" failed: backend returned no token logprobs '
        f'required by confidence method "{method}"'
    )


@pytest.mark.parametrize("method", ["margin", "hybrid"])
def test_answer_with_a_single_alternative_has_no_margin(method: ConfidenceMethod) -> None:
    """Of one token among others."""
    tokens = scored(("a", -1.0, 1.0)).logprobs
    answer = Reply("large", logprobs=(*tokens, TokenLogprob("b", -1.0, (("b", -1.0),))))

    with pytest.raises(GraphFailed) as failed:
        ConfidenceScore(answer, method)(INPUTS)

    assert str(failed.value) == (
        'confidence evaluation for model "large" failed: backend returned no complete top-logprob '
        f'alternatives required by confidence method "{method}"'
    )


def test_method_of_a_verifier_has_no_logprob_score() -> None:
    """However sure the tokens are."""
    with pytest.raises(GraphFailed, match='"self_verify" does not read token logprobs'):
        ConfidenceScore(scored(("a", 0.0)), "self_verify")(INPUTS)


def test_weight_beyond_1_is_refused() -> None:
    """A score stays between 0 and 1."""
    with pytest.raises(ValueError, match="margin_weight"):
        ConfidenceScore(scored(("a", 0.0)), margin_weight=1.5)
