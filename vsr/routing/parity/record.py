"""What happened to one case: effects, both messages, evidence; as bytes, not yet compared."""

from enum import StrEnum

import attrs
import msgspec

from vsr.headers import HeaderLine
from vsr.routing.effect import Effect
from vsr.routing.evidence import Evidence


class Phase(StrEnum):
    """The four phases of a session, in order."""

    REQUEST_HEADERS = "request_headers"
    REQUEST_BODY = "request_body"
    RESPONSE_HEADERS = "response_headers"
    RESPONSE_BODY = "response_body"


class PhaseCall(msgspec.Struct, frozen=True):
    """One call of a phase: what it wanted, and the body bytes it was shown."""

    phase: Phase
    effect: Effect
    given: bytes = b""


class UpstreamMessage(msgspec.Struct, frozen=True):
    """The request as it leaves for the backend, pseudo-headers in front."""

    lines: list[HeaderLine]
    body: bytes


class ClientResponse(msgspec.Struct, frozen=True):
    """The response as it leaves for the client; `chunks` has one entry per delivery."""

    status: int
    lines: list[HeaderLine]
    chunks: list[bytes]
    is_streamed: bool = False


@attrs.define
class Record:
    """One case as it went; whoever drives the session fills it in."""

    case: str
    calls: list[PhaseCall] = attrs.field(factory=list)
    """In the order in which they were made."""
    route: bytes | None = None
    """Key of the upstream call; None when no call was made."""
    upstream: UpstreamMessage | None = None
    response: ClientResponse | None = None
    evidence: Evidence = attrs.field(factory=Evidence)
    error: str = ""
    """Code of the failure that ended the request, empty if none did."""

    def note(self, phase: Phase, effect: Effect, given: bytes = b"") -> Effect:
        """Add one call and return its effect."""
        self.calls.append(PhaseCall(phase, effect, given))
        return effect

    def effects(self, phase: Phase) -> list[PhaseCall]:
        """Return the calls of one phase."""
        return [call for call in self.calls if call.phase is phase]
