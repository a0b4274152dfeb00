"""What a process that runs keeps of what it serves, and what it cannot take over."""

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


def reused(before: Snapshot | None, snapshot: Snapshot) -> tuple[str, ...]:
    """Return the components that need nothing of what has changed. Source: standalone-mode 5.2."""
    if before is None:
        return ()
    signals = before.settings == snapshot.settings and before.programs == snapshot.programs
    upstream = before.clusters == snapshot.clusters and before.listeners == snapshot.listeners
    return (*(("signals",) if signals else ()), *(("upstream",) if upstream else ()))
