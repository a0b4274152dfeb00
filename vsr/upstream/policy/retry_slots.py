"""How many retries of one cluster may run at once."""

import attrs

from vsr.resources.reliability import RetryBudget


@attrs.define(eq=False)
class RetrySlots:
    """Counts the retries of one cluster, so that a failing backend isn't flooded with them.

    A slot is taken before the wait in front of a retry, and released when the repeated attempt has
    its response head or failure, or the call ends earlier. A call that gets no slot ends with
    what its last attempt brought.

    Source: the reference, "Retry concurrency and budget".
    """

    limit: int
    """Slots, unless there is a budget."""
    budget: RetryBudget | None = None
    """Share of the running calls that bounds the slots in place of `limit`."""
    taken: int = attrs.field(default=0, init=False)
    """Slots in use."""

    def try_acquire(self, *, running: int) -> bool:
        """Take a slot and return True, or return False and take none.

        Args:
            running: calls of the cluster that are active or wait for a connection at this moment.
        """
        budget = self.budget
        if budget is None:
            limit = self.limit
        else:
            limit = max(budget.min_concurrency, int(budget.percent * running / 100))
        if self.taken >= limit:
            return False
        self.taken += 1
        return True

    def release(self) -> None:
        """Give a slot back.

        Raises:
            RuntimeError: no slot is taken.
        """
        if not self.taken:
            # Below zero it would silently let more retries through from then on.
            raise RuntimeError("a retry slot was released that nobody took")
        self.taken -= 1
