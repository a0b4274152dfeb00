"""How a call ended: transport fact, terminal class, cause, usage."""

from enum import IntEnum, StrEnum
from typing import Final

import msgspec


class TransportFact(IntEnum):
    """The last thing known to have happened on the wire of an attempt, in order."""

    NOT_CONNECTED = 0
    CONNECTED = 1
    REQUEST_PARTLY_WRITTEN = 2
    REQUEST_WRITTEN = 3
    HEAD_RECEIVED = 4
    BODY_RECEIVED = 5


class Terminal(StrEnum):
    """The one class in which every started call ends."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"


class Cause(StrEnum):
    """Why a request or a call was ended before its time; the first one recorded counts."""

    CLIENT_GONE = "client_gone"
    DEADLINE = "deadline"
    BUDGET = "budget"
    DRAIN = "drain"
    LOST = "lost"


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Tokens as the backend reported them; unknown usage is None, never this with zeros."""

    prompt_tokens: int
    completion_tokens: int


NOTHING_USED: Final = Usage(0, 0)
"""Of an attempt that surely did nothing; one that may have is None."""
CANCELLED: Final = "cancelled"
"""Code of an attempt that was given up, by whoever ended its request or its call."""
REFUSED_STREAM: Final = "refused_stream"
"""Code of an attempt whose stream the backend refused before any work. Source: RFC 9113, 8.7."""


class Attempt(msgspec.Struct, gc=False):
    """One try of a call at one endpoint, as far as it has got. Times are monotonic seconds."""

    cluster: str
    """The model's alias."""
    endpoint: str
    address: str
    """`host:port` of the endpoint, as configured."""
    started_at: float
    fact: TransportFact = TransportFact.NOT_CONNECTED
    """The last thing known to have happened on the wire."""
    status: int | None = None
    """None when no response head arrived."""
    error: str = ""
    """Code of the failure, of a body that broke off too; empty while there is none."""
    stage: str = ""
    """Which limit passed, where the failure is a timeout: see `upstream.policy.outcome`."""
    asked_at: float | None = None
    """When the last of a body that its client was still sending had gone out; None: at once."""
    head_at: float | None = None
    ended_at: float | None = None
    usage: Usage | None = None
    """None is unknown, never zero."""

    @property
    def is_known_zero(self) -> bool:
        """Return whether the backend surely did nothing: no byte of the request left us."""
        return self.fact <= TransportFact.CONNECTED or self.error == REFUSED_STREAM


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The end of one call."""

    terminal: Terminal
    cause: Cause | None = None
    status: int | None = None
    usage: Usage | None = None
    attempts: tuple[Attempt, ...] = ()
