"""Where suspended runs wait."""

import re
from typing import Protocol

from vsr.errors import GraphFailed
from vsr.graph.suspend.run import SuspendedRun

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


class SuspendStore(Protocol):
    """Keeps suspended runs for a while; time is an argument, in seconds of wall time.

    However long a store takes, whoever is cancelled stops waiting at once.
    """

    async def put(self, run: SuspendedRun, *, now_unix_s: float) -> None:
        """Keep a run, in the place of one with its id.

        Cancelled, it is kept or it is not; but once `put_back` has ended, what that was given is.

        Raises:
            GraphFailed: it could not be kept.
        """
        ...

    async def put_back(self, run: SuspendedRun, *, now_unix_s: float) -> None:
        """Keep a run that was taken, as it was.

        Cancelled once it waits, it is done all the same, but later; the caller shields its begin.

        Raises:
            GraphFailed: it could not be kept.
        """
        ...

    async def take(self, state_id: str, *, now_unix_s: float) -> SuspendedRun | None:
        """Return a run and forget it; of several takers one gets it, the others None.

        None also where it is unknown, expired or broken. Cancelled, it has taken nothing: what it
        may have claimed by then is given back.
        """
        ...

    async def clear(self) -> None:
        """Forget all runs."""
        ...


def is_state_id(text: str) -> bool:
    """Return whether `text` may be an id: then no path can be made of it.

    Source: looper-algorithms 12.3.
    """
    return _ID.fullmatch(text) is not None


def not_kept(state_id: str, reason: str) -> GraphFailed:
    """Return the error of a run that could not be kept; `reason` is in our words."""
    return GraphFailed(f'workflow tool state "{state_id}" could not be stored: {reason}')
