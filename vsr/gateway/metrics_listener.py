"""Where operators read the metrics: a listener of its own, by default on loopback alone."""

from collections.abc import Awaitable, Callable

import trio

from vsr.gateway.exchange import Exchange
from vsr.gateway.request_scope import RequestScope
from vsr.headers import HeaderLine
from vsr.network.port import NetworkError
from vsr.resources.listener import Listener

METRICS_PATH = b"/metrics"
_TEXT: list[HeaderLine] = [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")]
_PLAIN: list[HeaderLine] = [(b"content-type", b"text/plain")]

Render = Callable[[], bytes]


class MetricsFront:
    """Answers the requests of the metrics listener; they are neither routed, counted nor logged."""

    def __init__(
        self, load: Callable[[], Render], gather: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Take what loads the renderer of all metrics, in Prometheus' text format 0.0.4.

        It is loaded for the first reader, in a thread: that takes its time, which a Router that
        nobody watches need not spend.

        Args:
            load: loads it.
            gather: brings what is to be rendered up to date first, where that is elsewhere.
        """
        self._gather = gather
        self.is_draining = False
        self._load = load
        self._render: Render | None = None

    def handler_for(self, listener: Listener) -> "MetricsFront":
        """Return what answers: itself, whatever the listener."""
        del listener
        return self

    def __call__(self, exchange: Exchange, scope: RequestScope) -> "_MetricsRun":
        """Open the run of one request."""
        del scope
        return _MetricsRun(self, exchange)

    def note_refusal(self, status: int, protocol: str = "HTTP/1.1") -> None:
        """Do nothing: nobody's request was lost."""

    async def render(self) -> bytes:
        """Return all metrics."""
        if self._render is None:
            self._render = await trio.to_thread.run_sync(self._load)
        if self._gather is not None:
            await self._gather()
        return self._render()


class _MetricsRun:
    """The run of one request for the metrics."""

    needs_end = False

    def __init__(self, front: MetricsFront, exchange: Exchange) -> None:
        self._front = front
        self._exchange = exchange

    async def work(self) -> None:
        """Answer."""
        try:
            await self._exchange.respond(*await self._answer())
        except NetworkError:
            self._exchange.abort()

    async def _answer(self) -> tuple[int, list[HeaderLine], bytes]:
        head = self._exchange.head
        if head.target.partition(b"?")[0] != METRICS_PATH:
            return 404, _PLAIN, b"not found\n"
        if head.method not in {b"GET", b"HEAD"}:
            return 405, [(b"allow", b"GET, HEAD"), *_PLAIN], b"method not allowed\n"
        return 200, _TEXT, await self._front.render()

    async def conclude(self, failure: Exception | None) -> None:
        """Do nothing: what could not be answered has no other end."""

    def finish(self) -> None:
        """Do nothing."""
