"""Which branches brought something, for the strategies that go on with that."""

from collections.abc import Sequence

from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.reading import success_of
from vsr.graph.value import BranchOutcome, Failure


def find_successes(outcomes: Sequence[BranchOutcome[object]]) -> list[tuple[int, object]]:
    """Return index and value of every branch that brought a value, in declared order."""
    found = ((outcome.index, success_of(outcome)) for outcome in outcomes)
    return [(index, value) for index, value in found if value is not None]


def find_replies(outcomes: Sequence[BranchOutcome[object]]) -> list[tuple[int, Reply]]:
    """Return index and reply of every branch that brought one, in declared order.

    Raises:
        GraphFailed: a branch brought something else.
    """
    return [(index, as_reply(index, value)) for index, value in find_successes(outcomes)]


def as_reply(index: int, value: object) -> Reply:
    """Return `value` of a branch, which must be a reply.

    Raises:
        GraphFailed: it is something else.
    """
    if not isinstance(value, Reply):
        raise wrong_value(index, value, "a reply")
    return value


def wrong_value(index: int, value: object, wanted: str) -> GraphFailed:
    """Return the failure of a strategy whose branches bring what it cannot read."""
    return GraphFailed(f"branch {index} brought a {type(value).__name__} instead of {wanted}")


def find_failures(outcomes: Sequence[BranchOutcome[object]]) -> list[tuple[int, Failure]]:
    """Return index and failure of every branch that failed, in declared order.

    One whose last step has a failure for a value failed too; one that was cut off did not.
    """
    found = (
        (outcome.index, outcome.failure if outcome.failure is not None else outcome.value)
        for outcome in outcomes
    )
    return [(index, ended) for index, ended in found if isinstance(ended, Failure)]


def no_success(outcomes: Sequence[BranchOutcome[object]]) -> GraphFailed:
    """Return the failure of a strategy that needs a success and has none."""
    failures = find_failures(outcomes)
    reason = f": {failures[-1][1].message}" if failures else ""
    return GraphFailed(f"no branch succeeded{reason}")
