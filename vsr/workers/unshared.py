"""What several workers may not each keep to themselves, since clients would notice."""

from vsr.errors import Problem
from vsr.resources.looper import StateBackend
from vsr.resources.snapshot import Snapshot

_STATE = "global.integrations.looper.flow.state.store_backend"


def unshared(snapshot: Snapshot) -> tuple[Problem, ...]:
    """Return what of `snapshot` more than one worker cannot serve."""
    if snapshot.settings.looper.state.backend is not StateBackend.MEMORY:
        return ()
    what = "runs that wait for a client's tools are kept in the memory of one process"
    why = "the client's next request may reach another worker"
    mend = "keep them in files (`file`), or run one worker"
    return (Problem(_STATE, what, why, mend, code="unsupported"),)
