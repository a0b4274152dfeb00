"""A listener for operators: its requests are answered by a function, neither routed nor logged."""

import logging
from collections.abc import Awaitable, Callable, Sequence

import trio

from vsr.gateway.exchange import Exchange
from vsr.gateway.request_scope import RequestScope
from vsr.headers import HeaderLine
from vsr.network.port import NetworkError
from vsr.resources.listener import Listener

ReadBody = Callable[[int], Awaitable[bytes]]
Answerer = Callable[
    [bytes, bytes, Sequence[HeaderLine], ReadBody],
    Awaitable[tuple[int, list[HeaderLine], bytes]],
]
"""Takes method, target, header lines and what reads the body; returns the answer."""
_log = logging.getLogger("vsr.gateway")
_FAILED = b'{"error":{"code":"INTERNAL_ERROR","message":"The request failed; see the log."}}\n'


class AnsweringFront:
    """Answers the requests of a listener's connections."""

    def __init__(self, load: Callable[[], Answerer]) -> None:
        """Take what loads the answerer: for the first request, and in a thread."""
        self.is_draining = False
        self._load = load
        self._answerer: Answerer | None = None
        self._loading = trio.Lock()

    def handler_for(self, listener: Listener) -> "AnsweringFront":
        """Return what answers: itself, whatever the listener."""
        del listener
        return self

    def __call__(self, exchange: Exchange, scope: RequestScope) -> "_AnsweringRun":
        """Open the run of one request."""
        del scope
        return _AnsweringRun(self, exchange)

    def note_refusal(self, status: int, protocol: str = "HTTP/1.1") -> None:
        """Do nothing: nobody's request was lost."""

    async def answerer(self) -> Answerer:
        """Return what answers, once and for all."""
        async with self._loading:
            if self._answerer is None:
                self._answerer = await trio.to_thread.run_sync(self._load)
        return self._answerer


class _AnsweringRun:
    """The run of one request."""

    needs_end = False

    def __init__(self, front: AnsweringFront, exchange: Exchange) -> None:
        self._front = front
        self._exchange = exchange

    async def work(self) -> None:
        """Answer; a failure that is nobody's fault is told as one, and logged."""
        exchange = self._exchange
        try:
            try:
                answer = await self._front.answerer()
                head = exchange.head
                response = await answer(head.method, head.target, head.lines, exchange.read_body)
            except NetworkError:
                raise
            except Exception:  # noqa: BLE001  # the request boundary
                _log.exception("a request of an operator failed")
                response = 500, [(b"content-type", b"application/json")], _FAILED
            await exchange.respond(*response)
        except NetworkError:
            exchange.abort()

    async def conclude(self, failure: Exception | None) -> None:
        """Do nothing: what could not be answered has no other end."""

    def finish(self) -> None:
        """Do nothing."""
