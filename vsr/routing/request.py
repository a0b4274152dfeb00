"""One client request as the routing core sees it."""

import msgspec

from vsr.headers import Headers


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
