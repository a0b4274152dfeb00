"""Failures that end a translated stream, as the event that a client's library raises."""

import msgspec

from vsr.codec.anthropic.error import anthropic_backend_error, render_anthropic_error
from vsr.codec.backend_error import openai_backend_error, read_backend_error
from vsr.codec.sse import encode_event
from vsr.errors import UpstreamProtocolError, UpstreamReset, VsrError

_UNKNOWN_STATUS = 500
_STATUSES = range(400, 600)
_STATUS_DIGITS = 3


class StreamFailure(msgspec.Struct, frozen=True):
    """Why a backend's stream cannot be translated on."""

    message: str
    code: str = UpstreamProtocolError.code

    @property
    def openai_event(self) -> bytes:
        """Return the event for a client of the chat API."""
        error = {
            "type": VsrError.type,
            "code": self.code,
            "message": self.message,
            "param": None,
        }
        return encode_event(msgspec.json.encode({"error": error}))

    @property
    def anthropic_event(self) -> bytes:
        """Return the event for a client of the Messages API."""
        return _anthropic_event(render_anthropic_error(UpstreamProtocolError.status, self.message))


TRUNCATED = StreamFailure("the backend's stream ended before its answer did", UpstreamReset.code)
OVERSIZED = StreamFailure("an event of the backend's stream is over the bound")


def openai_error_event(data: bytes) -> bytes:
    """Return a backend's own error for a client of the chat API."""
    return encode_event(openai_backend_error(_status(data), data))


def anthropic_error_event(data: bytes) -> bytes:
    """Return a backend's own error for a client of the Messages API."""
    return _anthropic_event(anthropic_backend_error(_status(data), data))


def _anthropic_event(body: bytes) -> bytes:
    return encode_event(body, event="error")


def _status(data: bytes) -> int:
    """Return the status that the error would have had as an answer; many say it as its code."""
    literal = bytes(read_backend_error(_UNKNOWN_STATUS, data).code).strip(b'"')
    is_number = len(literal) == _STATUS_DIGITS and literal.isdigit()
    status = int(literal) if is_number else _UNKNOWN_STATUS
    return status if status in _STATUSES else _UNKNOWN_STATUS
