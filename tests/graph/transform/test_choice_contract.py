"""Transformers `choice_contract` and `majority_choice`."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graph.transform.workflow_values import INPUTS, reply
from vsr.codec.chat_reply import Reply
from vsr.graph.transform.choice_contract import (
    ChoiceContract,
    ChoiceSpec,
    MajorityChoice,
    Source,
    majority_of,
)

ABC = ChoiceSpec(("A", "B", "C"))


def _choose(said: Reply, choice: ChoiceSpec | None = ABC) -> str:
    return ChoiceContract(said, choice)(INPUTS).content


@pytest.mark.parametrize(
    ("said", "content"), [(" B\n", "B"), ("b", "b"), ("B.", "B."), ("The answer is B", None)]
)
def test_choice_contract_takes_a_text_that_is_a_value(said: str, content: str | None) -> None:
    """Only the whole trimmed text counts, in its exact case: anything fuzzier guesses."""
    assert _choose(reply("x", said)) == (said if content is None else content)


@pytest.mark.parametrize(
    ("sources", "content"),
    [
        (("content",), "no"),
        (("reasoning_content",), "A"),
        (("content", "reasoning_content"), "A"),
        (("candidate_responses",), "no"),
    ],
)
def test_choice_contract_looks_where_it_is_told(sources: tuple[Source, ...], content: str) -> None:
    """Sources count in order, and candidates are none here."""
    choice = ChoiceSpec(("A", "B"), sources)

    assert _choose(reply("x", "no", reasoning=" A "), choice) == content


@pytest.mark.parametrize(
    ("template", "content"),
    [(None, "A"), ("Answer: {choice}", "Answer: A"), ("<{{choice}}>", "<A>")],
)
def test_choice_contract_renders_the_value(template: str | None, content: str) -> None:
    """The value goes where the template says, in either spelling."""
    assert _choose(reply("x", "A"), ChoiceSpec(("A",), template=template)) == content


def test_choice_contract_leaves_tool_calls_alone() -> None:
    """A reply that asks for a tool has not answered yet."""
    asking = msgspec.structs.replace(reply("x", " A "), has_tool_calls=True)

    assert _choose(asking) == " A "


def test_choice_contract_does_nothing_where_there_is_none() -> None:
    """A graph applies it always; most decisions have no contract."""
    assert _choose(reply("x", " A "), None) == " A "


def _vote(final: str, *votes: Reply, choice: ChoiceSpec | None = ABC) -> str:
    return MajorityChoice(reply("f", final), votes, choice)(INPUTS).content


def test_majority_replaces_what_is_no_bare_value() -> None:
    """Workers that agree outweigh a final answer that does not keep the contract."""
    votes = (reply("x", "C"), reply("y", " B "), reply("z", " ", reasoning="B"), reply("v", "b"))

    assert _vote("I think it is C", *votes) == "B"
    assert _vote(" C ", *votes) == " C "


def test_majority_goes_to_the_value_seen_first_on_a_tie() -> None:
    """The order of the values in the contract does not matter, that of the workers does."""
    assert _vote("?", reply("x", "C"), reply("y", "A"), reply("z", "A"), reply("v", "C")) == "C"


def test_majority_outweighs_a_rendered_value() -> None:
    """A rendered choice is no bare value any more: the reference lets the workers decide."""
    choice = ChoiceSpec(("A", "C"), template="Answer: {choice}")

    assert _vote("Answer: C", reply("x", "A"), choice=choice) == "Answer: A"


def test_majority_changes_nothing_without_votes_or_contract() -> None:
    """No vote, no answer made up."""
    assert _vote("hm", reply("x", "hm")) == "hm"
    assert _vote("hm", reply("x", "A"), choice=None) == "hm"


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from(["A", "B", "C", "x", " A ", ""]), max_size=9))
def test_majority_of_has_the_most_votes(said: list[str]) -> None:
    """The winner is a value of the contract that nobody outvotes; None only without a vote."""
    winner = majority_of([reply("x", text) for text in said], ABC)

    votes = [text.strip() for text in said if text.strip() in ABC.values]
    assert (winner is None) == (not votes)
    if winner is not None:
        most = max(votes.count(value) for value in ABC.values)
        assert votes.count(winner) == most
        assert winner == next(vote for vote in votes if votes.count(vote) == most)
