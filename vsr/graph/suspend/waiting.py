"""What a run that may wait for the client's tools has at hand."""

import msgspec

from vsr.errors import GraphFailed, VsrError
from vsr.graph.suspend.record import Record
from vsr.graph.suspend.tool_ids import DrawBytes


class ResumedCall(msgspec.Struct, frozen=True):
    """The call with which a run goes on: the client has answered its tool calls."""

    path: str
    state_id: str
    seq: int
    """Number of the next tool call id."""
    messages: msgspec.Raw
    """What is sent: all of before, the model's message, the client's answers."""
    tool_rounds: tuple[tuple[str, ...], ...]
    """Ids of the tool calls that were answered, the last ones too."""


class Waiting(msgspec.Struct, eq=False, gc=False):
    """One run's way to be put aside and to go on."""

    record: Record
    draw: DrawBytes
    resumed: ResumedCall | None = None
    """None where the run begins."""

    def resumed_at(self, path: str) -> ResumedCall | None:
        """Return the call to go on with if it is the one at `path`."""
        resumed = self.resumed
        return resumed if resumed is not None and resumed.path == path else None


class ResumeFailed(GraphFailed):
    """The call with which a run goes on failed; no step may go on without it.

    The client can then send its tools' answers once more. Source: looper-algorithms 12.2 and 19.
    """

    def __init__(self, model: str, cause: VsrError) -> None:
        super().__init__(
            f'workflow tool resume failed for model "{model}": {cause}', status=cause.status
        )
        self.code = cause.code  # type: ignore[misc]  # of this one alone
        self.headers = cause.headers  # type: ignore[misc]  # of this one alone
