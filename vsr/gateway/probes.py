"""Liveness and readiness, answered before anything else: no key, no routing, no log line."""

from vsr.headers import HeaderLine
from vsr.http.framing import RequestHead

_JSON: list[HeaderLine] = [(b"content-type", b"application/json")]
_METHODS = (b"GET", b"HEAD")
PROBES = frozenset({b"/health", b"/ready"})
"""Targets that are probes if the method is one of theirs."""


def answer_probe(
    head: RequestHead, *, is_ready: bool
) -> tuple[int, list[HeaderLine], bytes] | None:
    """Return status, fields and body if `head` is a probe, else None."""
    if head.method not in _METHODS:
        return None
    if head.target == b"/health":
        return 200, _JSON, b'{"status":"ok"}'
    if head.target == b"/ready":
        if is_ready:
            return 200, _JSON, b'{"status":"ready"}'
        return 503, _JSON, b'{"status":"not_ready"}'
    return None
