"""Which API a request's method and path name."""

from enum import StrEnum

from vsr.errors import EndpointNotFound, MethodNotAllowed
from vsr.routing.request import MESSAGES_PATH

_CHAT = b"/v1/chat/completions"
_MODELS = b"/v1/models"
_REPLAY = b"/v1/router_replay"
_NOT_SERVED = (b"/v1/responses", MESSAGES_PATH, _REPLAY)
"""APIs that exist but are off: passing them on would bypass routing."""


class Protocol(StrEnum):
    """What a client or a backend speaks, as response headers name it."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


class Endpoint(StrEnum):
    """What a request asks for."""

    CHAT = "chat"
    MESSAGES = "messages"
    MODELS = "models"
    ELSEWHERE = "elsewhere"
    """Nothing of ours: the default backend answers, unless a header names a model."""
    BYPASS = "bypass"
    """Anything, past all routing, as its client wished and the configuration allows."""

    def __init__(self, word: str) -> None:
        self.protocol = Protocol.ANTHROPIC if word == "messages" else Protocol.OPENAI
        """What its clients speak."""


def protocol_of(target: bytes) -> Protocol:
    """Return what a client speaks that asks for `target`, served or not."""
    return Protocol.ANTHROPIC if target.startswith(MESSAGES_PATH) else Protocol.OPENAI


def find_endpoint(method: bytes, target: bytes) -> Endpoint:
    """Return the endpoint of a request target.

    Raises:
        EndpointNotFound, MethodNotAllowed: the path is ours, but this is not served.

    Source: the reference's method and path check; unlike it, paths under `/v1` that are nobody's
    go to the default backend, as the standalone mode's design asks.
    """
    if target == _CHAT and method == b"POST":
        return Endpoint.CHAT  # as nearly all are
    path = target.partition(b"?")[0]
    if path == _CHAT or path == _CHAT + b"/":
        return _posted(method, Endpoint.CHAT)
    if path == MESSAGES_PATH or path == MESSAGES_PATH + b"/":
        return _posted(method, Endpoint.MESSAGES)
    if path.startswith(_MODELS):
        if method == b"GET":
            return Endpoint.MODELS
        if path.rstrip(b"/") == _MODELS:
            raise MethodNotAllowed
    if any(path == taken or path.startswith(taken + b"/") for taken in _NOT_SERVED):
        raise EndpointNotFound
    return Endpoint.ELSEWHERE


def is_passed_on(method: bytes, target: bytes, *, may_bypass: bool) -> bool:
    """Return whether such a request goes to a backend without anybody reading its body.

    Args:
        method: of the request.
        target: path and query.
        may_bypass: whether it goes past all routing, if its target is not a closed one.
    """
    try:
        return find_endpoint(method, target) is Endpoint.ELSEWHERE or may_bypass
    except (EndpointNotFound, MethodNotAllowed):
        return may_bypass and not is_closed(target)


def is_closed(target: bytes) -> bool:
    """Return whether `target` is served to nobody, not even past all routing."""
    return target.startswith(_REPLAY)


def _posted(method: bytes, endpoint: Endpoint) -> Endpoint:
    if method != b"POST":
        raise MethodNotAllowed
    return endpoint
