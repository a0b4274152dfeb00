"""One request's passage through the routing core, driven phase by phase by an adapter."""

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from vsr.headers import Headers
from vsr.routing.effect import Effect
from vsr.routing.evidence import Evidence
from vsr.routing.execution import Execution
from vsr.routing.outcome import Usage

if TYPE_CHECKING:
    from vsr.routing.request_views import RoutingView


class BodyMode(StrEnum):
    """How the body of a response passes the session; known once its head has."""

    UNSEEN = "unseen"
    """As it comes; nobody looks at it."""
    WATCH = "watch"
    """As it comes; a whole one is shown to `watch` by who has it anyway."""
    WHOLE = "whole"
    """Collected, and replaced by what `response_body` says."""
    STREAM = "stream"
    """Piece by piece through `stream`."""
    REPLACED = "replaced"
    """Not at all: an answer of the Router's own goes out instead, see `Plan.immediate`."""


class BodyStream(Protocol):
    """A stream on its way through the session; never waits."""

    def feed(self, data: bytes) -> bytes:
        """Return what may go to the client now, maybe nothing."""
        ...

    def close(self) -> bytes:
        """Return the rest: the backend's stream has ended."""
        ...

    def break_off(self) -> bytes:
        """Return the event that tells the client of a failure; nothing inside another event."""
        ...

    @property
    def is_whole(self) -> bool:
        """Return whether, after `close`, the client has a whole answer as far as can be told."""
        ...


class Grounds(Protocol):
    """Why and how a session has routed its request, without anything of what that was about."""

    @property
    def asked(self) -> str | None:
        """Return the model that the client named; None: not known yet, or nobody looks at it."""
        ...

    @property
    def refusal(self) -> str:
        """Return the code of what the client was told instead of an answer; empty: nothing."""
        ...

    def view(self, started_at: float, now: float) -> "RoutingView":
        """Return what operators see of it.

        Args:
            started_at: when the request began, monotonic seconds.
            now: monotonic seconds.
        """
        ...


class Session(Protocol):
    """Answers each phase with an `Effect`; phases come in this order, each at most once.

    `response_body` comes once with the whole body, or once per chunk and a last time empty with
    `is_last`, when `response_headers` asked for streaming.
    """

    def request_headers(self) -> Effect:
        """Judge the head of the request."""
        ...

    async def request_body(self) -> Effect:
        """Judge the whole request; decides the model."""
        ...

    def decide(self) -> Effect:
        """Do the same for an inference request, where nothing is waited for: `Engine.may_wait`."""
        ...

    def response_headers(self, status: int, headers: Headers) -> Effect:
        """Judge the head of the backend's response."""
        ...

    async def response_body(self, data: bytes, *, is_last: bool) -> Effect:
        """Judge the response body."""
        ...

    @property
    def wants_response_body(self) -> bool:
        """Return whether `response_body` must be called at all."""
        ...

    @property
    def body_mode(self) -> BodyMode:
        """Return how an adapter that has the body in hand passes it, after `response_headers`."""
        ...

    @property
    def stream(self) -> BodyStream | None:
        """Return what a streamed body passes, in mode STREAM."""
        ...

    def watch(self, body: bytes) -> None:
        """See a whole body that is passed on unchanged."""
        ...

    @property
    def usage(self) -> Usage | None:
        """Return the tokens that the backend reported; None while it did not say."""
        ...

    def evidence(self) -> Evidence:
        """Return what was decided so far."""
        ...

    @property
    def grounds(self) -> Grounds:
        """Return what is to be told of it so far, once it has ended all there is."""
        ...

    @property
    def execution(self) -> Execution | None:
        """Return what the calls of the decision's graph came to, once the request has ended.

        None where no graph has answered for a decision.
        """
        ...

    def close(self) -> None:
        """Release what the session holds; exactly once, whatever happened."""
        ...
