"""How a call ended: transport fact, terminal class, cause, usage."""

from enum import IntEnum, StrEnum

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


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """One try of a call at one endpoint."""

    cluster: str
    endpoint: str
    fact: TransportFact
    status: int | None
    """None when no response head arrived."""
    error: str = ""
    """Code of the failure, empty for a response."""


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The end of one call."""

    terminal: Terminal
    cause: Cause | None = None
    status: int | None = None
    usage: Usage | None = None
    attempts: tuple[Attempt, ...] = ()
