"""What a process that runs cannot take over from another configuration."""

from vsr.config.attempt import Code, Reason, Stage
from vsr.resources.snapshot import Snapshot
from vsr.resources.tracing import Tracing


def only_by_restart(snapshot: Snapshot, tracing: Tracing | None) -> tuple[Reason, ...]:
    """Return what of `snapshot` a process that traces by `tracing` can't serve as it runs."""
    reasons = []
    if not snapshot.listeners:
        what = "standalone mode needs at least one listener in the configuration"
        reasons.append(Reason(Stage.VALIDATE, Code.INVALID_RESOURCE, what, "listeners"))
    if snapshot.tracing != tracing:
        what = "tracing is set up when the Router starts, so restart it to apply this"
        path = "global.services.observability.tracing"
        reasons.append(Reason(Stage.VALIDATE, Code.RESTART_REQUIRED, what, path))
    return tuple(reasons)
