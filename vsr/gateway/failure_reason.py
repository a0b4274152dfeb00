"""The words for why a span has failed."""

from enum import StrEnum


class FailureReason(StrEnum):
    """Why a span has failed. Source: the reference's closed list, as far as it fits.

    An attempt without an answer has its kind of failure instead: see `upstream.policy.outcome`.
    """

    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    """The client left, or a drain ended the request."""
    CALL_FAILED = "call_failed"
    """No backend gave a good answer."""
    STEP_FAILED = "step_failed"
    """The Router refused the request, or failed itself."""
    STATUS = "status"
    """Of an attempt, our addition: the answer is an error."""
    BUDGET = "budget"
    """Of a graph, ours as well: its budget refused a call that it needed."""
