"""What the request phases come to: an immediate answer, or one call to a backend."""

from collections.abc import Callable

import msgspec

from vsr.headers import Headers
from vsr.routing.budget import Spend
from vsr.routing.effect import ImmediateResponse
from vsr.routing.outcome import Outcome
from vsr.routing.session import Session


class Call(msgspec.Struct, gc=False):
    """A request to a backend, complete but for its endpoint."""

    method: bytes
    target: bytes
    """Path and query at the backend."""
    headers: Headers
    """Without pseudo-headers."""
    body: bytes
    route_key: bytes
    """Name of the cluster; unknown or empty means the default cluster."""
    model: str = ""
    """Alias the call is accounted to; empty for a request that is only passed on."""
    own_headers: frozenset[bytes] = frozenset()
    """Names that the core has set: no line of theirs is the client's any more."""
    spend: Spend | None = None
    """The request's budget, asked before every further attempt; None where nothing is counted."""


class Settlement:
    """The one owner of "exactly once": whoever ends the request first, ends it.

    Steps run in reverse order of registration, like an exit stack; all of them run.
    """

    __slots__ = ("_steps", "outcome")

    def __init__(self, *steps: Callable[[Outcome], None]) -> None:
        self._steps = list(steps)
        self.outcome: Outcome | None = None

    def on_finish(self, step: Callable[[Outcome], None]) -> None:
        """Register what the end of the request must do; at once if it has ended already."""
        if self.outcome is not None:
            step(self.outcome)
        else:
            self._steps.append(step)

    def finish(self, outcome: Outcome) -> bool:
        """Record `outcome` and run the steps; later calls change nothing and return False."""
        if self.outcome is not None:
            return False
        self.outcome = outcome
        if len(self._steps) == 1:
            self._steps.pop()(outcome)
            return True
        failure: Exception | None = None
        while self._steps:
            try:
                self._steps.pop()(outcome)
            except Exception as error:  # noqa: BLE001  # one failing step must not stop the others
                failure = error
        if failure is not None:
            raise failure
        return True


class Answer(msgspec.Struct):
    """A whole answer to the client."""

    status: int
    headers: Headers
    body: bytes


class Label(msgspec.Struct, frozen=True, gc=False):
    """What logs and metrics call a request: the parts of its evidence that repeat."""

    recipe: str | None = None
    decision: str | None = None
    model: str | None = None


UNROUTED = Label()


class Plan(msgspec.Struct):
    """The result of the request phases: one of `immediate` and `call` is set.

    `Engine.respond` sets `immediate` beside the call if the backend's answer cannot be passed on.
    """

    session: Session
    settlement: Settlement
    immediate: ImmediateResponse | None = None
    call: Call | None = None
    label: Label = UNROUTED

    def finish(self, outcome: Outcome) -> bool:
        """End the request exactly once; return whether this call did it."""
        return self.settlement.finish(outcome)
