"""Which branches brought something."""

import pytest

from tests.graph.branch_ends import ends, failure, reply
from vsr.errors import GraphFailed
from vsr.graph.aggregate.successes import (
    find_failures,
    find_replies,
    find_successes,
    no_success,
)


def test_success_is_a_value_that_is_no_failure() -> None:
    """A failed branch has none, nor has one that was cut off or whose last step failed."""
    late = failure("of the last step")
    outcomes = ends("one", failure(), None, 3)
    outcomes.append(type(outcomes[0])(4, late, rank=4))

    assert find_successes(outcomes) == [(0, reply("one")), (3, 3)]
    assert find_failures(outcomes) == [(1, failure()), (4, late)]


def test_replies_are_asked_for() -> None:
    """A branch that ends with something else is a mistake of the graph, and said to be one."""
    assert find_replies(ends(None, "one")) == [(1, reply("one"))]
    with pytest.raises(GraphFailed, match="branch 1 brought a int instead of a reply"):
        find_replies(ends("one", 7))


def test_no_success_tells_the_last_reason() -> None:
    """If there is one: all branches may have been cut off."""
    outcomes = ends(failure("first"), failure("last"), None)

    assert str(no_success(outcomes)) == "no branch succeeded: last"
    assert str(no_success(ends(None))) == "no branch succeeded"
