"""The Router at work: health, status, backends, metrics, drain, and what was done to it."""

import attrs

from vsr.admin.answer import Answer, Invalid, told
from vsr.admin.audit import Audit
from vsr.admin.call import Call
from vsr.admin.ports import Configuration, Serving
from vsr.admin.quarantine import QuarantineChange
from vsr.admin.shapes import (
    Backends,
    ConfigStatus,
    Draining,
    Health,
    Readiness,
    Status,
    active_view,
    attempt_view,
    quarantine_entry,
)

_METRICS = b"text/plain; version=0.0.4; charset=utf-8"


@attrs.frozen
class Operations:
    """Handlers about the process."""

    configuration: Configuration
    serving: Serving
    audit_trail: Audit
    release: str

    async def health(self, _call: Call) -> Answer:
        """Answer `GET /health`."""
        return told(Health())

    async def ready(self, _call: Call) -> Answer:
        """Answer `GET /ready`."""
        view = await self.serving.view()
        if view.ready:
            return told(Readiness("ready", ready=True, phase="ready", message="Router is ready"))
        phase = "draining" if view.draining else "starting"
        status = Readiness("starting", ready=False, phase=phase, message=f"Router is {phase}")
        return told(status, 503)

    async def models(self, _call: Call) -> Answer:
        """Answer `GET /v1/models`, as clients are told."""
        return Answer(200, await self.configuration.models())

    async def status(self, _call: Call) -> Answer:
        """Answer `GET /api/v1/status`."""
        view, config = await self.serving.view(), self.configuration.status
        latest, rejection = config.latest, config.last_rejection
        return told(
            Status(
                self.release,
                "draining" if view.draining else "serving" if view.ready else "starting",
                "standalone",
                view,
                ConfigStatus(
                    None if config.active is None else active_view(config.active),
                    None if latest is None else attempt_view(latest),
                    None if rejection is None else attempt_view(rejection),
                ),
            )
        )

    async def backends(self, _call: Call) -> Answer:
        """Answer `GET /api/v1/backends`."""
        view = await self.serving.backends()
        entries = tuple(quarantine_entry(each) for each in self.serving.quarantine.entries)
        return told(Backends(view.version, view.clusters, entries, view.missing))

    async def take_out(self, call: Call) -> Answer:
        """Answer `POST /api/v1/backends/{model}/{endpoint}/quarantine`."""
        allow_empty = call.query.get("allow_empty", "false")
        if allow_empty not in {"true", "false"}:
            raise Invalid("allow_empty must be true or false.")
        place = call.parameters["model"], call.parameters["endpoint"]
        return _changed(
            await self.serving.quarantine.take_out(*place, allow_empty=allow_empty == "true")
        )

    async def put_back(self, call: Call) -> Answer:
        """Answer `DELETE` of the same."""
        place = call.parameters["model"], call.parameters["endpoint"]
        return _changed(await self.serving.quarantine.put_back(*place))

    async def metrics(self, _call: Call) -> Answer:
        """Answer `GET /metrics`."""
        return Answer(200, await self.serving.metrics(), _METRICS)

    async def drain(self, _call: Call) -> Answer:
        """Answer `POST /api/v1/drain`."""
        self.serving.drain()
        return told(Draining(), 202)

    async def audit(self, call: Call) -> Answer:
        """Answer `GET /api/v1/observability/audit`."""
        return told(self.audit_trail.page(call.query))


def _changed(change: QuarantineChange) -> Answer:
    """Tell of a change: 202 where a worker has yet to heed it."""
    return told(change, 202 if change.missing else 200)
