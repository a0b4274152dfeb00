"""Traces the requests of a gateway: stands before it where tracing is on, and nowhere else."""

import logging
import random
from collections.abc import Coroutine

import msgspec
import trio

from vsr.gateway.exchange import Exchange, Handler, Run
from vsr.gateway.gateway import Gateway, ListenerHandler
from vsr.gateway.handler import RequestRun
from vsr.gateway.request_scope import RequestScope
from vsr.gateway.spans import spans_of
from vsr.resources.listener import Listener
from vsr.resources.tracing import Tracing
from vsr.routing.trace import TRACEPARENT, Sampler, Trace, begin_trace
from vsr.telemetry.spans import SpanSink

_log = logging.getLogger("vsr.gateway")


class TracedGateway:
    """A gateway whose requests are traced; the configuration that was first decides how."""

    def __init__(
        self, gateway: Gateway, tracing: Tracing, sink: SpanSink, rng: random.Random
    ) -> None:
        """Take the gateway, how to trace, and where spans go; `rng` gives ids."""
        self._gateway = gateway
        self._sampler = Sampler(tracing.rate, tracing.heeds_parent)
        self._sink = sink
        self._rng = rng

    @property
    def is_draining(self) -> bool:
        """Return whether the server ends; it says so itself."""
        return self._gateway.is_draining

    @is_draining.setter
    def is_draining(self, value: bool) -> None:
        self._gateway.is_draining = value

    def handler_for(self, listener: Listener) -> Handler:
        """Return the handler of one listener's connections."""
        return TracingHandler(
            self._gateway.handler_for(listener), self._sampler, self._sink, self._rng
        )

    async def close(self) -> None:
        """Let the last spans out, in a thread that is left to itself when this is cancelled.

        So whoever calls it bounds it: a collector that does not answer holds up no exit.
        """
        try:
            await trio.to_thread.run_sync(self._sink.close, abandon_on_cancel=True)
        except Exception:  # noqa: BLE001  # nothing else is to suffer from it
            _log.warning("the last spans are lost")


class TracingHandler(msgspec.Struct, frozen=True, eq=False):
    """Gives each request of a listener its trace."""

    handler: ListenerHandler
    sampler: Sampler
    sink: SpanSink
    rng: random.Random

    def __call__(self, exchange: Exchange, scope: RequestScope) -> Run:
        """Open the run of one request; a probe is not traced."""
        run = self.handler(exchange, scope)
        if not isinstance(run, RequestRun):
            return run
        head = exchange.head
        lines = head.lines if TRACEPARENT in head.fields else ()
        trace = run.journal.trace = begin_trace(lines, self.sampler, self.rng)
        return TracedRun(run, trace, self.sink) if trace.is_sampled else run

    def note_refusal(self, status: int, protocol: str = "HTTP/1.1") -> None:
        """Log a request whose head could not be read; nobody knows what trace it is part of."""
        self.handler.note_refusal(status, protocol)


class TracedRun(msgspec.Struct, frozen=True, eq=False):
    """A sampled request under way; its spans are made when it has ended."""

    run: RequestRun
    trace: Trace
    sink: SpanSink

    @property
    def needs_end(self) -> bool:
        """Return whether `conclude` must follow."""
        return self.run.needs_end

    def work(self) -> Coroutine[None, None, None]:
        """Answer the request; see `vsr.gateway.exchange.Run`."""
        return self.run.work()

    def conclude(self, failure: Exception | None) -> Coroutine[None, None, None]:
        """End a request that went wrong; see `vsr.gateway.exchange.Run`."""
        return self.run.conclude(failure)

    def finish(self) -> None:
        """Account for the request, and hand its spans on."""
        self.run.finish()
        try:
            self.sink.add(spans_of(self.run, self.trace))
        except Exception:  # noqa: BLE001  # tracing must not take the connection down with it
            _log.exception("a trace is lost")
