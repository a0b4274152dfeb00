"""What is kept of a run that waits for the client's tools."""

import msgspec

from vsr.errors import GraphFailed
from vsr.graph.account import Account


class RunIdentity(msgspec.Struct, frozen=True):
    """What has to be the same for a run to go on."""

    principal: str
    """Who made the request; another one may not go on with it."""
    graph_hash: str
    decision: str
    params: msgspec.Raw
    """JSON object of the graph's parameters."""


class SuspendedCall(msgspec.Struct, frozen=True):
    """The call whose answer asked for tools."""

    path: str
    """Where in the graph, with rounds and branches; opaque here."""
    messages: msgspec.Raw
    """JSON array that it was made with; after a second interrupt the first exchange is in it."""
    assistant: msgspec.Raw
    """The message that asks for the tools, with the ids that the client got."""
    pending: tuple[str, ...]
    """Ids of its tool calls."""
    seq: int
    """Number of the next tool call id of the state."""
    tool_rounds: tuple[tuple[str, ...], ...] = ()
    """Ids of the tool calls that were answered before, round by round."""


class SuspendedRun(msgspec.Struct, frozen=True):
    """A run that stopped at a call; it goes on by being run again from its record."""

    state_id: str
    created_unix_s: float
    identity: RunIdentity
    seed: int
    request: msgspec.Raw
    """The client's request that began the run."""
    finished: msgspec.Raw
    """What the finished steps have left as JSON; see `record`."""
    account: Account
    """What had been counted before the call."""
    call: SuspendedCall
    signals: tuple[bool, ...] = ()
    """What that request said to the rule trees of the graph's conditions."""


_RUN = msgspec.json.Decoder(SuspendedRun)


def encode_run(run: SuspendedRun) -> bytes:
    """Return the run as JSON."""
    return msgspec.json.encode(run)


def decode_run(encoded: bytes) -> SuspendedRun | None:
    """Return the run, None if the JSON is no run, as after an update of the Router."""
    try:
        return _RUN.decode(encoded)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def not_found(state_id: str) -> GraphFailed:
    """Return the error of a state that is not there, too old, or somebody else's.

    Source: looper-algorithms 12.2.
    """
    return GraphFailed(f'workflow tool state "{state_id}" not found or expired')


def check_identity(run: SuspendedRun, current: RunIdentity) -> None:
    """Check that the request may go on with `run` and that nothing changed in between.

    Raises:
        GraphFailed: it may not. To a stranger the state does not exist.
    """
    kept = run.identity
    if kept.principal != current.principal:
        raise not_found(run.state_id)
    prefix = f'workflow tool state "{run.state_id}"'
    if kept.decision != current.decision:
        raise GraphFailed(f"{prefix} belongs to another decision")
    same_params = msgspec.json.decode(kept.params) == msgspec.json.decode(current.params)
    if kept.graph_hash != current.graph_hash or not same_params:
        raise GraphFailed(f"{prefix} belongs to another version of its workflow")
