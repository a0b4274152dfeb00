"""Answers of the management API, and refusals: their bodies and fields."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from vsr.headers import HeaderLine

JSON = b"application/json"
_ALWAYS: tuple[HeaderLine, ...] = (
    (b"cache-control", b"no-store"),
    # A page of another site may neither run nor embed what it cannot read.
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Answer(msgspec.Struct, frozen=True):
    """What is sent."""

    status: int
    body: bytes
    content_type: bytes = JSON
    lines: tuple[HeaderLine, ...] = ()

    def fields(self, request_id: str) -> list[HeaderLine]:
        """Return its header lines."""
        return [
            *([(b"content-type", self.content_type)] if self.body else []),
            *_ALWAYS,
            (b"x-request-id", request_id.encode("latin-1")),
            *self.lines,
        ]


def told(content: object, status: int = 200, lines: Sequence[HeaderLine] = ()) -> Answer:
    """Return an answer in JSON."""
    return Answer(status, msgspec.json.encode(content) + b"\n", lines=tuple(lines))


class ErrorDetail(msgspec.Struct, frozen=True, omit_defaults=True):
    """What went wrong. Source: the reference's management API, error body."""

    code: str
    message: str
    timestamp: str
    """RFC 3339."""
    request_id: str = ""
    reasons: tuple["ReasonView", ...] = ()


class ErrorBody(msgspec.Struct, frozen=True):
    """The body of every refusal."""

    error: ErrorDetail


class ReasonView(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a document is refused: one of all reasons."""

    stage: str
    code: str
    message: str
    path: str = ""
    file: str = ""
    line: int = 0


class Refusal(Exception):
    """A request that is not done; `str` is the message, and safe to show."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        reasons: tuple[ReasonView, ...] = (),
        lines: tuple[HeaderLine, ...] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.reasons = reasons
        self.lines = lines

    def answer(self, request_id: str, now: float) -> Answer:
        """Return what the client is told; `now`: seconds since 1970."""
        detail = ErrorDetail(self.code, str(self), rfc3339(now), request_id, self.reasons)
        return told(ErrorBody(detail), self.status, self.lines)


class Invalid(Refusal):
    """The request is at fault."""

    def __init__(self, message: str, code: str = "INVALID_INPUT") -> None:
        super().__init__(400, code, message)


def rfc3339(at: float) -> str:
    """Return a time, seconds since 1970, in UTC."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
