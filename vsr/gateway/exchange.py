"""One request and its response, whatever HTTP version carries them."""

from typing import Protocol

from vsr.headers import HeaderLine
from vsr.http.framing import RequestHead


class Exchange(Protocol):
    """What the handler gets from a connection: a head, a body to read, a response to write."""

    head: RequestHead
    scheme: bytes
    protocol: str
    is_committed: bool
    """Whether the response head was sent: from then on nothing can be taken back."""
    has_ended: bool
    """Whether the response was sent to its end."""
    status: int
    """Status that was sent, 0 before."""
    bytes_sent: int
    """Body bytes sent."""

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
