"""Transformers `self_verify_prompt` and `self_verify_score`."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.graph.branch_ends import INPUTS, reply
from vsr.errors import GraphFailed
from vsr.graph.transform.self_verification import SelfVerifyPrompt, SelfVerifyScore

BAD_GRADE = (
    'self verification for model "large" failed: the reply has no confidence between 0 and 1'
)


def grade(text: str) -> float:
    """Return the grade in a reply of the model `large`."""
    return SelfVerifyScore(reply(text, "large"))(INPUTS)


def test_prompt_starts_a_conversation_with_question_and_answer() -> None:
    """It says what to reply with; braces in what it quotes are left alone."""
    prompt = SelfVerifyPrompt("What is {x}?", "It is {y}.", "large")(INPUTS)

    assert prompt.place == "fresh"
    for part in ("What is {x}?", "It is {y}.", '{"confidence": ', '"reason"', "0.0", "1.0"):
        assert part in prompt.text


def test_prompt_may_be_about_an_empty_answer() -> None:
    """As that of a reply that only calls tools is."""
    prompt = SelfVerifyPrompt("q", "", "large")(INPUTS)

    assert "<answer>\n\n</answer>" in prompt.text


def test_prompt_needs_a_question() -> None:
    """Without one no call is made."""
    with pytest.raises(GraphFailed) as failed:
        SelfVerifyPrompt("", "an answer", "large")(INPUTS)

    assert str(failed.value) == (
        'self verification for model "large" failed: could not extract user question from request'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"confidence": 0.85, "reason": "x"}', 0.85),
        ('Sure! ```json\n{"confidence": 1}\n``` done', 1.0),
        ('{"confidence": 1.7}', 1.0),
        ('{"confidence": -0.5}', 0.0),
        ('{"reason": "confidence is 0.9"}', 0.0),
        ("{}", 0.0),
        ('{"confidence": null}', 0.0),
        ('{"Confidence": 0.4}', 0.4),
        ('{"confidence": 0.4, "reason": {"a": "}"}}', 0.4),
        ('{"confidence": 0.4, "confidence": 0.6}', 0.6),
    ],
)
def test_object_has_the_grade(text: str, expected: float) -> None:
    """From the first brace to the last, taken into the range from 0 to 1, missing is 0."""
    assert grade(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Confidence: 0.85 overall", 0.85),
        ("1", 1.0),
        ("0", 0.0),
        ("-0.5", 0.5),
        ("0.7 or 3", 0.7),
        ("} 0.7 {", 0.7),
        ("} 0.7", 0.7),
        ("{ 0.7", 0.7),
        ("1. yes", 1.0),
    ],
)
def test_first_number_is_the_grade_where_there_is_no_object(text: str, expected: float) -> None:
    """A brace that nothing closes is no object; a sign is not read."""
    assert grade(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "looks fine to me",
        "8/10",
        "I give 85, so 0.85",
        ".5",
        "\u0660.\u0665",
        "{confidence: 0.8}",
        '{"confidence": "0.8"}',
        '{"confidence": true}',
        '{"confidence": 1e999}',
        '{"confidence": 0.8} or {"confidence": 0.9}',
        '{"a": ' + "[" * 20_000 + "]" * 20_000 + "}",
        "[0.8, {]}",
        '{"\ud800": 1}',
    ],
)
def test_reply_without_a_grade_is_an_error(text: str) -> None:
    """Naming the model and nothing of what it wrote."""
    with pytest.raises(GraphFailed) as failed:
        grade(text)

    assert str(failed.value) == BAD_GRADE


@settings(max_examples=100)
@given(st.text('{}[]":,confidence 0.19-e\\é', max_size=30))
@example('{"confidence":0}')
def test_any_reply_has_a_grade_from_0_to_1_or_none(text: str) -> None:
    """No text brings anything else down."""
    try:
        found: float | None = grade(text)
    except GraphFailed:
        found = None

    assert found is None or 0 <= found <= 1
