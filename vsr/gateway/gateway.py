"""What all requests of a process share, and what opens the run of each."""

import time

import attrs

from vsr.gateway.exchange import Exchange
from vsr.gateway.handler import RequestRun
from vsr.gateway.ingress import ANYWHERE, IngressRules
from vsr.gateway.probes import PROBES, ProbeRun, answer_probe
from vsr.gateway.request_scope import RequestScope
from vsr.gateway.requests import Requests
from vsr.resources.listener import Listener
from vsr.routing.generation import Active, Generation
from vsr.routing.outcome import Terminal
from vsr.routing.ports import Admission, AdmitAll
from vsr.telemetry.access_log import AccessLine, AccessLog


@attrs.define(eq=False)
class Gateway:
    """What all listeners' requests share."""

    active: Active
    access_log: AccessLog
    admission: Admission = attrs.field(factory=AdmitAll)
    is_draining: bool = False
    requests: Requests = attrs.field(factory=Requests)

    def handler_for(self, listener: Listener) -> "ListenerHandler":
        """Return the handler of one listener's connections."""
        return ListenerHandler(self, listener)


class ListenerHandler:
    """Handles the requests of one listener."""

    def __init__(self, gateway: Gateway, listener: Listener) -> None:
        """Take what it is in the configuration that it was bound for."""
        self.gateway = gateway
        self._bound = listener
        self._generation: Generation | None = None
        self._listener = listener
        self._rules = ANYWHERE

    def __call__(self, exchange: Exchange, scope: RequestScope) -> "RequestRun | ProbeRun":
        """Open the run of one request, pinned to the configuration that is active now."""
        gateway = self.gateway
        generation = gateway.active.current
        if exchange.head.target in PROBES:
            is_ready = generation is not None and not gateway.is_draining
            probe = answer_probe(exchange.head, is_ready=is_ready)
            if probe is not None:
                return ProbeRun(exchange, probe)
        if generation is not self._generation:
            self._look_up(generation)
        if generation is not None:
            generation.leases += 1
        run = RequestRun(
            gateway.requests,
            gateway.access_log,
            gateway.admission,
            generation,
            exchange,
            scope,
            exchange.now(),
            self._listener,
            self._rules,
        )
        gateway.requests.under_way.add(run)
        return run

    def _look_up(self, generation: Generation | None) -> None:
        """Find this listener in another configuration, and which headers of its clients stay.

        What is no longer there serves those that have come to it as it did before.
        """
        self._generation = generation
        if generation is not None:
            self._listener = generation.listener_for(self._bound) or self._listener
        if self._listener.identity is not self._rules.identity:
            self._rules = IngressRules(self._listener.identity)

    def note_refusal(self, status: int, protocol: str = "HTTP/1.1") -> None:
        """Log a request whose head could not even be read."""
        log = self.gateway.access_log
        log.add(
            AccessLine(
                start_time=log.stamp(time.time_ns()),
                method="",
                path="",
                protocol=protocol,
                response_code=status,
                response_flags="DPE",
                outcome=Terminal.FAILED,
                listener=self._listener.name,
            )
        )
