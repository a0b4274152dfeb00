"""One client request as the routing core sees it."""

import msgspec

from vsr.headers import Headers

MESSAGES_PATH = b"/v1/messages"
"""Where the Messages API begins, whose clients read errors of another form."""
USER_KEY_HEADERS = frozenset(
    b"x-user-%b-key" % provider
    for provider in (
        b"anthropic",
        b"azure-openai",
        b"bedrock",
        b"cloudflare-workers-ai",
        b"gemini",
        b"minimax",
        b"openai",
        b"vertex-ai",
    )
)
"""Where a trusted authenticator puts a user's own provider keys; they never travel on.

Source: the reference's parity records, removal list of the request-body phase.
"""
CREDENTIALS = frozenset({b"authorization", b"api-key", b"x-api-key"})
"""Where clients and Routers put keys."""


class Principal(msgspec.Struct, frozen=True):
    """On whose behalf a request runs: the scope of quotas, caches and resumable state."""

    id: str = "anonymous"
    tenant: str = ""


ANONYMOUS = Principal()


class Request(msgspec.Struct, gc=False):
    """A request after ingress hygiene; routing reads it and never changes it."""

    method: bytes
    target: bytes
    """Path and query as sent."""
    authority: bytes
    scheme: bytes
    headers: Headers
    """Without pseudo-headers: those are the four members above."""
    body: bytes
    id: str
    """Value of `x-request-id`, the client's own or ours."""
    listener: str = ""
    principal: Principal = ANONYMOUS
    received_at: float = 0.0
    """Monotonic seconds at which the head was complete."""
    timeout_s: float | None = None
    """What the listener gives a request that nobody else gives a time; None: no limit."""
