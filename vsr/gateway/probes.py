"""Liveness and readiness, answered before anything else: no key, no routing, no log line."""

from vsr.gateway.exchange import Exchange
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


class ProbeRun:
    """The run of a probe: nothing is counted, logged or routed."""

    needs_end = False

    def __init__(self, exchange: Exchange, answer: tuple[int, list[HeaderLine], bytes]) -> None:
        self.exchange = exchange
        self.answer = answer

    async def work(self) -> None:
        """Answer."""
        await self.exchange.respond(*self.answer)

    async def conclude(self, failure: Exception | None) -> None:
        """Do nothing: a probe that could not be answered has no other end."""

    def finish(self) -> None:
        """Do nothing."""
