"""What operators see of requests under way and ended, and how that of several processes is merged.

No prompt, reply, key or address is ever a member. Times in milliseconds count from the start of the
request; what is not known is None.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

import msgspec

from vsr.errors import DeadlineExceeded
from vsr.routing.outcome import CANCELLED, Attempt

Stage = Literal["reading", "routing", "graph", "calling", "answering", "ended"]
"""What it is at: `reading` its body, deciding, its graph, waiting for a backend, answering."""
State = Literal[
    "running", "succeeded", "failed", "timed_out", "cancelled", "handed_out", "suspended", "ended"
]
"""Of a step or call. A step that is `handed_out` left its call to the Router, one that is
`suspended` waits for the client's tools, one that has `ended` brought no value."""

_FIRST_ERROR = 400


class TryView(msgspec.Struct, frozen=True):
    """One attempt of a call at one endpoint."""

    model: str
    endpoint: str
    """Its name."""
    state: State
    started_ms: float
    head_ms: float | None
    ended_ms: float | None
    status: int | None
    error: str
    """Code; empty: none."""
    timeout: str
    """Which limit passed; empty: none."""


class CallView(msgspec.Struct, frozen=True):
    """One call of a graph to a model or a verifier."""

    ordinal: int
    """From 1, in the order of the starts."""
    step: str
    """Path of the step, with the number of each round and branch."""
    model: str | None
    """None for a verifier."""
    verifier: str | None
    state: State
    reason: str | None
    """Why it ended so, where it did not simply succeed."""
    started_ms: float
    ended_ms: float | None
    status: int | None
    error: str
    prompt_tokens: int | None
    completion_tokens: int | None
    selected: bool = False
    """Whether it is the graph's answer, or a part of it."""
    accepted: bool | None = None
    score: float | None = None
    threshold: float | None = None
    attempts: tuple[TryView, ...] = ()


class StepView(msgspec.Struct, frozen=True):
    """One step of a graph that has begun; each round and branch has steps of its own."""

    path: str
    type: str
    state: State
    started_ms: float
    ended_ms: float | None
    error: str = ""
    """Code; empty: none."""


class NodePart(msgspec.Struct, frozen=True):
    """A list of steps inside a step."""

    label: str
    nodes: "tuple[NodeView, ...]"


class NodeView(msgspec.Struct, frozen=True):
    """A step as it is written, whether it has begun or not."""

    id: str
    type: str
    parts: tuple[NodePart, ...] = ()


class GraphView(msgspec.Struct, frozen=True):
    """A decision's graph at one moment of its run."""

    name: str
    state: State
    error: str
    started_ms: float
    ended_ms: float | None
    nodes: tuple[NodeView, ...]
    steps: tuple[StepView, ...]
    """In the order of their starts."""
    calls: tuple[CallView, ...]
    steps_dropped: int = 0
    """That began when as many were kept already as are kept."""
    calls_dropped: int = 0


class SignalRule(msgspec.Struct, frozen=True):
    """A rule of a signal that the request matched."""

    type: str
    name: str
    confidence: float | None
    """None: unknown."""


class DecisionView(msgspec.Struct, frozen=True):
    """Why a model serves."""

    because: Literal["decision", "default", "model", "undecided"]
    """A decision holds; none does, and the default serves; the client named the model."""
    recipe: str | None = None
    name: str | None = None
    rules: str | None = None
    """Of the decision, in words."""
    matched: tuple[str, ...] = ()
    """Labels `type:name` that it holds by."""
    confidence: float | None = None
    priority: int | None = None
    tier: int | None = None
    method: str | None = None
    """How one of its models was chosen."""
    model: str | None = None
    reasoning_mode: str | None = None


class ReservationView(msgspec.Struct, frozen=True):
    """What one attempt might use, and has used."""

    tokens: int | None
    """None: no limit asked."""
    usd: float | None
    settled: bool
    used_tokens: int | None
    """None while it is open, and for good where the backend did not say: then what was reserved
    counts as used."""
    used_usd: float | None


class LedgerEntryView(msgspec.Struct, frozen=True):
    """One call in the ledger."""

    ordinal: int
    model: str
    step: str
    state: State
    reservations: tuple[ReservationView, ...]
    """For each attempt that the budget was asked for."""
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    currency: str | None
    refused: bool
    """Whether the budget refused one attempt more."""


class LedgerView(msgspec.Struct, frozen=True):
    """What a request may spend, and has spent."""

    attempts: int
    """That were reserved for."""
    reserved_tokens: int
    """Of those under way."""
    spent_tokens: int
    reserved_usd: float
    spent_usd: float
    overrun: bool
    """Whether a backend reported more than was reserved."""
    max_attempts: int | None
    max_tokens: int | None
    max_prompt_tokens: int | None
    max_completion_tokens: int | None
    max_usd: float | None
    entries: tuple[LedgerEntryView, ...]


class RoutingView(msgspec.Struct, frozen=True):
    """How a request was routed, as far as that has come."""

    model_asked: str | None = None
    decision: DecisionView = DecisionView("undecided")
    signals: tuple[SignalRule, ...] = ()
    fallbacks: tuple[str, ...] = ()
    """Models that were called, where more than one was; the last one serves."""
    graph: GraphView | None = None
    ledger: LedgerView | None = None


class RequestView(msgspec.Struct, frozen=True):
    """One request."""

    id: str
    """Of `x-request-id`; clients may send one twice, `start_time` tells them apart."""
    start_time: str
    """As in the access log."""
    duration_ms: float
    """So far, or in all."""
    listener: str
    protocol: str
    method: str
    path: str
    """Without its query."""
    stage: Stage
    model_asked: str | None
    recipe: str | None
    decision: str | None
    model: str | None
    """That serves."""
    config_version: int
    """0: none served."""
    status: int | None
    outcome: str | None
    """None while it is under way."""
    cause: str | None
    error: str
    """Code of what the client was told; empty: none."""
    attempts: int
    graph: GraphView | None = None
    """Of one that is under way."""
    worker: int | None = None
    """None: the process is the whole Router."""


class UsageView(msgspec.Struct, frozen=True):
    """Tokens as backends reported them."""

    prompt_tokens: int
    completion_tokens: int


class TransferView(msgspec.Struct, frozen=True):
    """What went over the wire to and from the client."""

    bytes_received: int
    bytes_sent: int
    first_byte_ms: float | None
    upstream_ms: float | None
    """From sending the call to having its response head."""
    flags: str
    """Of the access log."""


class RequestDetail(msgspec.Struct, frozen=True):
    """One request, explained."""

    request: RequestView
    routing: RoutingView
    attempts: tuple[TryView, ...]
    """Of a plain request; those of a graph stand in its calls."""
    usage: UsageView | None
    """None: unknown."""
    transfer: TransferView | None
    """None while it is under way."""


class RequestList(msgspec.Struct, frozen=True):
    """Requests of a Router, the newest first."""

    under_way: tuple[RequestView, ...] = ()
    ended: tuple[RequestView, ...] = ()
    under_way_total: int = 0
    """How many there are, those that are not listed too."""
    kept: int = 0
    """How many that have ended are kept at most, of each worker."""
    missing_workers: tuple[int, ...] = ()
    """That did not answer in time."""


class Watched(Protocol):
    """Whoever can be asked about its requests."""

    def list(self, limit: int) -> RequestList:
        """Return them, at most `limit` under way and as many that have ended."""
        ...

    def find(self, request_id: str, start_time: str) -> RequestDetail | None:
        """Return the newest with an id; only one that began at `start_time` unless it is empty."""
        ...


def merged(
    lists: Iterable[tuple[int, RequestList]], limit: int, missing: Sequence[int] = ()
) -> RequestList:
    """Return the requests of several workers as one list, the newest first.

    Args:
        lists: what each worker has said, with its number.
        limit: of those under way, and of those that have ended.
        missing: workers that have said nothing.
    """
    under_way: list[RequestView] = []
    ended: list[RequestView] = []
    total = kept = 0
    for worker, each in lists:
        under_way += [of_worker(it, worker) for it in each.under_way]
        ended += [of_worker(it, worker) for it in each.ended]
        total, kept = total + each.under_way_total, max(kept, each.kept)
    return RequestList(newest(under_way, limit), newest(ended, limit), total, kept, tuple(missing))


def newest(requests: Iterable[RequestView], limit: int) -> tuple[RequestView, ...]:
    """Return the requests that began last, the newest first."""
    found = sorted(requests, key=lambda each: each.start_time, reverse=True)
    return tuple(found[:limit])


def chosen(found: Iterable[tuple[int, RequestDetail | None]]) -> RequestDetail | None:
    """Return the newest of what several workers have found under one id."""
    there = [
        msgspec.structs.replace(each, request=of_worker(each.request, worker))
        for worker, each in found
        if each is not None
    ]
    return max(there, key=lambda each: each.request.start_time, default=None)


def of_worker(request: RequestView, worker: int) -> RequestView:
    """Return a request as one of a worker's."""
    return msgspec.structs.replace(request, worker=worker)


def ms(at: float | None, started_at: float) -> float | None:
    """Return a time as milliseconds since the start; None stays None."""
    return None if at is None else round((at - started_at) * 1000, 3)


def ms_of(at: float, started_at: float) -> float:
    """Return a time that is known as milliseconds since the start."""
    return round((at - started_at) * 1000, 3)


def try_view(attempt: Attempt, started_at: float, ended_at: float | None) -> TryView:
    """Return an attempt as it is told.

    Args:
        attempt: as far as it has got.
        started_at: of the request, monotonic seconds.
        ended_at: of the call or request that it was made for; None while that goes on.
    """
    end = ended_at if attempt.ended_at is None else attempt.ended_at
    return TryView(
        attempt.cluster,
        attempt.endpoint,
        _state_of(attempt, is_over=end is not None),
        ms_of(attempt.started_at, started_at),
        ms(attempt.head_at, started_at),
        ms(end, started_at),
        attempt.status,
        attempt.error,
        attempt.stage,
    )


def _state_of(attempt: Attempt, *, is_over: bool) -> State:
    if attempt.error:
        if attempt.error == DeadlineExceeded.code:
            return "timed_out"
        return "cancelled" if attempt.error == CANCELLED else "failed"
    if not is_over:
        return "running"
    if attempt.status is None:
        return "cancelled"
    return "succeeded" if attempt.status < _FIRST_ERROR else "failed"
