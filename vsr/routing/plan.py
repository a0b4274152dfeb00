"""What the request phases come to: an immediate answer, or one call to a backend."""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from vsr.headers import HeaderLine, Headers
from vsr.resources.reliability import CallPolicy, FallbackPolicy
from vsr.resources.stream_comments import StreamComments
from vsr.routing.body import BodySource
from vsr.routing.budget import Price, Spend
from vsr.routing.effect import ImmediateResponse
from vsr.routing.execution import GraphFailure
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
    """Asked before every further attempt; None where nothing is counted."""
    policy: CallPolicy | None = None
    """Timeouts and retries; None: the cluster's own."""
    source: BodySource | None = None
    """The body, where it is passed on as it comes; `body` is empty then."""
    renditions: "Renditions | None" = None
    """The call for the cluster's other endpoints; None: it is the same for all of them."""


class Hop(msgspec.Struct, gc=False):
    """A call of a graph's step, in the form that its backend takes."""

    call: Call
    read: Callable[[Headers, bytes], bytes]
    """Returns the backend's whole answer as a chat completion, streamed if it was asked to be."""
    price: Price | None = None
    prompt_bound_tokens: int = 0
    """Of the prompt, at most; 0 where no limit asks for it."""
    output_bound_tokens: int = 0
    """Of the answer, at most; the request says so to the backend."""


class Renditions(Protocol):
    """A request in the form that each kind of endpoint of one cluster takes.

    Kinds go by `resources.cluster.Endpoint.profile`. All methods are synchronous, and each form is
    made of the client's request alone: nothing of another kind's is in it.
    """

    @property
    def profile(self) -> int:
        """Return the kind that the call itself is made for."""
        ...

    def call_for(self, profile: int) -> Call:
        """Return the call for another kind.

        Raises:
            VsrError: it cannot be said to that kind, or there is no key for it.
        """
        ...

    def answered_by(self, profile: int) -> None:
        """Take note of the kind whose answer is the one of the call; it was made for it."""
        ...


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


class Alternatives(Protocol):
    """The other models that a request's failed call may go on to."""

    @property
    def policy(self) -> FallbackPolicy:
        """Return when and how far the call goes on."""
        ...

    @property
    def models(self) -> Sequence[str]:
        """Return the models in the order of preference, the one that was chosen among them."""
        ...

    @property
    def has_tool_result(self) -> bool:
        """Return whether the request hands over what a tool did."""
        ...

    def is_refusal(self, body: bytes) -> bool:
        """Return whether a backend's whole answer is a refusal to answer."""
        ...

    def prepare(self, model: str) -> Call:
        """Return the client's request as a call to `model`, and reserve for it.

        Raises:
            VsrError: it cannot be said to that model, or nothing may be spent on it.
        """
        ...

    def last_resort(self, path: Sequence[str]) -> ImmediateResponse:
        """Return the fixed answer of a policy that has one, when no model has answered.

        Args:
            path: models that were called, in order.
        """
        ...

    def give_back(self) -> None:
        """Let the first call's failure be the answer: the last candidate has failed, too."""
        ...

    def abandon(self) -> None:
        """Take note that nobody waits any more while a candidate was asked."""
        ...

    def commit(self, path: Sequence[str]) -> Label:
        """Let the session go on with the call prepared last; return what logs call it then.

        Args:
            path: models called so far, in order; the last one serves.
        """
        ...


class Ahead(Protocol):
    """A graph that has yet to run, while its client may be told that it does."""

    @property
    def comments(self) -> StreamComments:
        """Return what the client is told meanwhile."""
        ...

    @property
    def lines(self) -> list[HeaderLine]:
        """Return the response headers that are known before it runs."""
        ...

    async def run(self, tell: Callable[[str], None]) -> "Plan":
        """Run it; return what takes the place of the plan that it comes from.

        Args:
            tell: gets a short text for each step and call that begins or ends; synchronous.

        Raises:
            RoutingFailed: an effect could not be applied.
        """
        ...


class Plan(msgspec.Struct, gc=False):
    """The result of the request phases: one of `immediate`, `call` and `ahead` is set in the end.

    `Engine.respond` sets `immediate` beside the call if the backend's answer cannot be passed on.
    """

    session: Session
    settlement: Settlement
    immediate: ImmediateResponse | None = None
    call: Call | None = None
    label: Label = UNROUTED
    alternatives: Alternatives | None = None
    """Where a failed call may go on; None: its failure is the answer."""
    ahead: Ahead | None = None
    """What has to be run first, where the client is told of it."""
    failure: GraphFailure | None = None
    """What the decision's graph has failed with, where the immediate answer tells of it."""

    def finish(self, outcome: Outcome) -> bool:
        """End the request exactly once; return whether this call did it."""
        return self.settlement.finish(outcome)
