"""What a connection and the handler of its requests are to each other, in any HTTP version."""

from typing import Protocol

from vsr.gateway.request_scope import RequestScope
from vsr.headers import HeaderLine
from vsr.http.framing import RequestHead
from vsr.http.plain_head import PlainHeads
from vsr.network.timers import LazyTimers


class Exchange(Protocol):
    """What the handler gets from a connection: a head, a body to read, a response to write."""

    head: RequestHead

    @property
    def is_committed(self) -> bool:
        """Return whether anything of the answer was sent: then nothing can be taken back."""
        ...

    @property
    def has_ended(self) -> bool:
        """Return whether the response was sent to its end."""
        ...

    @property
    def status(self) -> int:
        """Return the status of the answer, 0 before it is sent."""
        ...

    @property
    def bytes_sent(self) -> int:
        """Return the body bytes sent."""
        ...

    @property
    def is_behind(self) -> bool:
        """Return whether something is sent in part, so that nothing else may be written."""
        ...

    @property
    def scheme(self) -> bytes:
        """Return `http` or `https`."""
        ...

    @property
    def peer(self) -> str:
        """Return the client's IP address, empty when unknown."""
        ...

    @property
    def protocol(self) -> str:
        """Return the protocol as access logs name it."""
        ...

    def now(self) -> float:
        """Return monotonic seconds."""
        ...

    def end_at(self, at: float) -> None:
        """Let the connection end the request when the deadline `at` passes."""
        ...

    async def read_body(self, limit_bytes: int) -> bytes:
        """Return the whole request body.

        Raises:
            BodyTooLarge: as soon as more than the limit is announced or has arrived.
            InvalidRequest: its framing is broken.
            RequestTimedOut: the client stopped sending.
        """
        ...

    async def read_piece(self) -> bytes:
        """Return the next bytes of the request body, empty at its end; it is not read otherwise.

        Raises:
            InvalidRequest, RequestTimedOut: as `read_body`.
        """
        ...

    async def respond(self, status: int, lines: list[HeaderLine], body: bytes) -> None:
        """Send a whole response; `lines` may hold a `content-length`, which is checked anew."""
        ...

    async def start(
        self, status: int, lines: list[HeaderLine], length: int | None, first: bytes
    ) -> None:
        """Send a response head and the first piece of its body in one write.

        Args:
            status: final status.
            lines: fields without framing.
            length: of the whole body, None when it is not known.
            first: not empty.
        """
        ...

    def try_write(self, data: bytes) -> bool:
        """Send more of the body without waiting; return whether all of it went out.

        If not, `flush` must be awaited before anything else is written.
        """
        ...

    async def flush(self) -> None:
        """Send what `try_write` could not, waiting as long as the client does not read."""
        ...

    async def end(self) -> None:
        """End the body."""
        ...

    def abort(self) -> None:
        """Break the response off visibly: the client must not take it for whole."""
        ...


class Run(Protocol):
    """One request under way."""

    @property
    def needs_end(self) -> bool:
        """Return whether `conclude` must follow, once the request's nursery has ended."""
        ...

    async def work(self) -> None:
        """Do what the request asks for and answer it, in its nursery; only cancellation passes."""
        ...

    async def conclude(self, failure: Exception | None) -> None:
        """End a request that went wrong or left tasks: its nursery, and all in it, has ended.

        Args:
            failure: what its tasks failed with.
        """
        ...

    def finish(self) -> None:
        """Account for the request; the last thing that is done for it."""
        ...


class Handler(Protocol):
    """Answers the requests of a connection."""

    def __call__(self, exchange: Exchange, scope: RequestScope) -> Run:
        """Open the run of one request, whose nursery and ends `scope` holds."""
        ...

    def note_refusal(self, status: int, protocol: str = "HTTP/1.1") -> None:
        """Take note of a request whose head could not be read."""
        ...


class ListenerState(Protocol):
    """What connections of one listener ask of it while they are served."""

    @property
    def idle_s(self) -> float:
        """Return how long a connection may be silent between requests."""
        ...

    @property
    def is_draining(self) -> bool:
        """Return whether the current request of each connection is to be its last."""
        ...

    @property
    def scheme(self) -> bytes:
        """Return `http` or `https`."""
        ...

    @property
    def heads(self) -> PlainHeads:
        """Return what its connections know of heads."""
        ...

    @property
    def timers(self) -> LazyTimers:
        """Return what serves the deadlines of requests."""
        ...
