"""Aggregate strategies `quorum` and `majority`."""

import pytest

from tests.graph.branch_ends import INPUTS, ends, failure, reply
from vsr.decision.signals.pattern_set import PatternError
from vsr.errors import GraphFailed
from vsr.graph.aggregate.vote import FindMajority, Majority, Quorum


def test_quorum_is_the_first_reply_with_the_most_frequent_content() -> None:
    """White space around it makes no difference."""
    outcomes = ends("Lyon", reply(" Paris\n", "m1"), failure(), reply("Paris", "m2"))

    assert Quorum()(outcomes, INPUTS) == reply(" Paris\n", "m1")


def test_quorum_of_equals_is_the_one_that_came_up_first() -> None:
    """In declared order."""
    assert Quorum()(ends("b", "a", "a", "b", "c"), INPUTS) == reply("b")


def test_quorum_needs_its_votes() -> None:
    """Exactly as many are enough; without any branch there are none."""
    outcomes = ends("a", "a", "b")

    assert Quorum(2)(outcomes, INPUTS) == reply("a")
    assert Quorum(3)(outcomes, INPUTS) is None
    assert Quorum(1)([], INPUTS) is None
    with pytest.raises(ValueError, match="min_votes"):
        Quorum(0)


def test_replies_that_say_nothing_do_not_agree() -> None:
    """Silence is no answer, so two of them are no quorum, and one does not outvote."""
    assert Quorum()(ends(" ", "", " "), INPUTS) is None
    assert Quorum(1)(ends(" ", " ", "a"), INPUTS) == reply("a")


def test_quorum_compares_as_it_is_told() -> None:
    """Each way sees what the one before does not."""
    assert Quorum(normalize="exact")(ends("a", "a "), INPUTS) is None
    assert Quorum()(ends("a", "A"), INPUTS) is None
    assert Quorum(normalize="casefold")(ends("a", " A"), INPUTS) == reply("a")
    assert Quorum(normalize="number")(ends("it is 42.", "42.0"), INPUTS) == reply("it is 42.")
    assert Quorum(normalize="number")(ends("many", "many"), INPUTS) is None


def test_majority_counts_answers() -> None:
    """A reply without one is no voter; the winner is told as its first voter spells it."""
    outcomes = ends(
        reply("Think.\nAnswer: 7", "m1"),
        reply("Answer: 12 apples", "m2"),
        failure(),
        reply("no idea", "m3"),
        reply("Answer: 3. No: Answer: 12.0", "m4"),
        reply("Answer: ", "m5"),
    )

    found = FindMajority("pattern", r"Answer: ([^\n]*?)(?:\. |$)", normalize="number")(
        outcomes, INPUTS
    )

    assert found == Majority("12 apples", outcomes[1].value, votes=2, voters=3)  # type: ignore[arg-type]
    assert found.share == pytest.approx(2 / 3)


def test_majority_of_equals_is_the_one_that_came_up_first() -> None:
    """And a single vote is enough for it."""
    found = FindMajority()(ends("b", "a"), INPUTS)

    assert found == Majority("b", reply("b"), votes=1, voters=2)


def test_majority_reads_a_member_of_an_object() -> None:
    """Of replies that have it."""
    outcomes = ends('{"answer": "B"}', 'I say {"answer": "B", "why": "x"}', '{"other": "A"}', "A")

    found = FindMajority("json", member="answer")(outcomes, INPUTS)

    assert (found.answer, found.votes, found.voters) == ("B", 2, 2)


def test_majority_without_any_answer_is_an_error() -> None:
    """Told apart from a run in which nothing succeeded."""
    with pytest.raises(GraphFailed, match="none of 2 replies has an answer"):
        FindMajority("json", member="answer")(ends("a", "", failure("x")), INPUTS)
    with pytest.raises(GraphFailed, match="no branch succeeded: x"):
        FindMajority()(ends(failure("x")), INPUTS)


def test_majority_needs_the_field_of_its_extraction() -> None:
    """And an expression that says which part is the answer."""
    with pytest.raises(ValueError, match="extract: pattern needs pattern"):
        FindMajority("pattern")
    with pytest.raises(ValueError, match="extract: json needs member"):
        FindMajority("json", "(a)")
    with pytest.raises(PatternError, match="pattern has 0 groups and needs 1"):
        FindMajority("pattern", "a")
    with pytest.raises(PatternError, match="pattern is not valid RE2"):
        FindMajority("pattern", "(a")
