"""One client request as the routing core sees it."""

import attrs

from vsr.headers import Headers


@attrs.frozen
class Principal:
    """On whose behalf a request runs: the scope of quotas, caches and resumable state."""

    id: str = "anonymous"
    tenant: str = ""


ANONYMOUS = Principal()


@attrs.define
class Request:
    """A request after ingress hygiene; routing reads it and never changes it.

    `headers` begins with `:method`, `:path`, `:authority`, `:scheme`.
    """

    method: bytes
    target: bytes
    """Path and query as sent."""
    headers: Headers
    body: bytes
    id: str
    """Value of `x-request-id`, the client's own or ours."""
    listener: str = ""
    principal: Principal = ANONYMOUS
    received_at: float = 0.0
    """Monotonic seconds at which the head was complete."""
