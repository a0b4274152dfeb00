"""Responses that the gateway makes itself."""

import msgspec

from vsr.codec.anthropic.error import anthropic_error
from vsr.codec.error_body import openai_error
from vsr.codec.sse import encode_event
from vsr.errors import GraphFailed, InvalidRequest, UpstreamFailure, VsrError
from vsr.headers import HeaderLine
from vsr.http.h1_server import encode_head
from vsr.routing.request import MESSAGES_PATH

BAD_REQUEST = "bad_request"
"""Code of a request whose framing is broken, wherever in it that shows."""
_JSON = (b"content-type", b"application/json")
_TEXT = (b"content-type", b"text/plain")


def render_error(error: VsrError, target: bytes) -> tuple[int, list[HeaderLine], bytes]:
    """Return status, fields and body for an error.

    A failure of the routed call is a local reply with Envoy's status and text; everything else is
    JSON in the client's protocol, which the request's target tells.
    """
    if isinstance(error, UpstreamFailure):
        return error.status, [_TEXT, *error.headers], str(error).encode()
    is_anthropic = target.startswith(MESSAGES_PATH)
    body = anthropic_error(error) if is_anthropic else openai_error(error)
    return error.status, [_JSON, *error.headers], body


def error_event(error: VsrError, target: bytes) -> bytes:
    """Return the event that tells the client of an error, in the protocol that `target` tells."""
    if target.startswith(MESSAGES_PATH):
        return encode_event(anthropic_error(error), event="error")
    return encode_event(openai_error(error))


def event_of_failure(status: int, body: bytes, target: bytes) -> bytes:
    """Return the event that says what an answer would have said that is an error.

    Args:
        status: of that answer, 400 or above.
        body: in the client's protocol; of any other only the status is told.
        target: of the request.
    """
    try:
        msgspec.json.decode(body, type=_ErrorBody)
    except msgspec.MsgspecError:
        return error_event(GraphFailed(f"the answer has status {status}", status=status), target)
    name = "error" if target.startswith(MESSAGES_PATH) else ""
    return encode_event(msgspec.json.format(body, indent=-1), event=name)


class _ErrorBody(msgspec.Struct):
    """What both protocols' errors have."""

    error: dict[str, object]


def refusal(status: int, reason: str) -> bytes:
    """Return the whole response to a request that cannot even be read; the connection closes."""
    body = openai_error(InvalidRequest(reason, code=BAD_REQUEST))
    lines = [_JSON, (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
    return encode_head(status, lines) + body
