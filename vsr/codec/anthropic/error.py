"""Errors in the form that Anthropic clients read.

Source: the reference's rules "Error bodies".
"""

import msgspec

from vsr.codec.backend_error import read_backend_error
from vsr.codec.strict_json import NULL
from vsr.errors import VsrError

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    529: "overloaded_error",
}
_OTHER_TYPE = "api_error"


def anthropic_error(error: VsrError) -> bytes:
    """Return the body for an error of the Router."""
    return render_anthropic_error(error.status, str(error))


def anthropic_backend_error(status: int, body: bytes) -> bytes:
    """Return a backend's error; one in Anthropic's own form keeps its type."""
    error = read_backend_error(status, body)
    if error.is_anthropic and error.type != NULL:
        return _envelope(error.type, error.message)
    return render_anthropic_error(status, error.message)


def render_anthropic_error(status: int, message: str) -> bytes:
    """Return the body for a failure with `status`."""
    return _envelope(_TYPES.get(status, _OTHER_TYPE), message)


def _envelope(kind: msgspec.Raw | str, message: str) -> bytes:
    return msgspec.json.encode({"type": "error", "error": {"type": kind, "message": message}})
