"""A request body that is passed on as it comes, because nobody needs to have it whole."""

from collections.abc import Callable
from typing import Protocol


class BodySource(Protocol):
    """The client's body, piece by piece; a call that has begun to take it cannot be repeated."""

    length: int | None
    """Declared length, None when it is not known."""
    total_at: float
    """When the call's time is over, monotonic seconds; infinite until all of it has been read."""

    @property
    def is_begun(self) -> bool:
        """Return whether any of it has been asked for."""
        ...

    @property
    def has_ended(self) -> bool:
        """Return whether its end has been handed out."""
        ...

    async def read(self) -> bytes:
        """Return the next bytes, empty at the end.

        Raises:
            BodyTooLarge, InvalidRequest, RequestTimedOut: the client is at fault; no backend is.
        """
        ...

    def on_end(self, tell: Callable[[float], None]) -> None:
        """Have `tell` called with the time of the end, when all of it has been read.

        A call's time counts from there: a slow upload is not the backend's.
        Source: Envoy, HTTP route timeouts, which begin when the whole request is there.
        """
        ...
