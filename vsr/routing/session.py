"""One request's passage through the routing core, driven phase by phase by an adapter."""

from typing import Protocol

from vsr.headers import Headers
from vsr.routing.effect import Effect
from vsr.routing.evidence import Evidence


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

    def evidence(self) -> Evidence:
        """Return what was decided so far."""
        ...

    def close(self) -> None:
        """Release what the session holds; exactly once, whatever happened."""
        ...
