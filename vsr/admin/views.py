"""What operators are shown of processes, components and endpoints that workers see apart."""

import msgspec


class WorkerView(msgspec.Struct, frozen=True):
    """A process that serves: one of several workers, or the only one."""

    worker: int
    """From 1."""
    pid: int
    """Of its last process; 0: there was none."""
    phase: str
    """`starting`, `serving`, or `ended`: it is started again when its time has come."""
    version: int
    """That it serves, or served last."""
    restarts: int
    uptime_s: float
    """Since its process began."""


class ComponentView(msgspec.Struct, frozen=True):
    """A part of a process that runs beside its requests."""

    name: str
    worker: int
    """In whose process it runs; 0: the one that answers here."""
    on_failure: str
    """`fatal`, `restart` or `degrade`."""
    state: str
    """`running`, `waiting` to begin again, `degraded`: done without, or `stopped`."""
    failures: int
    last_failure: str
    """Its class; empty: there was none."""


class BreakerView(msgspec.Struct, frozen=True):
    """The circuit breaker of one cluster."""

    open: bool
    """Whether a further attempt would be refused now; of several workers: by one of them."""
    active: int
    waiting: int
    max_connections: int
    """As the document has it, as what follows: each worker has this limit to itself."""
    max_pending_requests: int
    max_requests: int


class WorkersBreaker(msgspec.Struct, frozen=True):
    """A cluster as one of several workers sees it."""

    worker: int
    panic: bool
    breaker: BreakerView


class WorkersEndpoint(msgspec.Struct, frozen=True):
    """An endpoint as one of several workers sees it. Members are those of `EndpointView`."""

    worker: int
    available: bool
    healthy: bool
    ejected: bool
    quarantined: bool
    ejection_reason: str | None
    ejected_for_s: float | None
    in_flight: int
    latency_ms: float | None


class EndpointView(msgspec.Struct, frozen=True):
    """An endpoint as it is doing; its address is not told."""

    name: str
    available: bool
    """Whether calls may go there; of several workers: those of one at least."""
    healthy: bool
    """By active health checks, true where there are none; of several workers: by those of all."""
    ejected: bool
    """By outlier detection; of several workers: by that of one at least."""
    quarantined: bool
    """By an operator."""
    ejection_reason: str | None
    """Of the last ejection."""
    ejected_for_s: float | None
    """How long it stays out yet; of several workers: the longest of all."""
    in_flight: int
    weight: int
    latency_ms: float | None
    """Moving average up to the response head, where the balancing policy measures it; of several
    workers each has its own."""
    attempts: dict[str, int]
    """That have ended, by outcome."""
    workers: tuple[WorkersEndpoint, ...] = ()
    """As each worker sees it, where there are several."""


class ClusterView(msgspec.Struct, frozen=True):
    """The endpoints of one model."""

    name: str
    lb_policy: str
    panic: bool
    """Whether endpoints are used that are not available, for want of others; of several workers: by
    one of them."""
    breaker: BreakerView
    endpoints: tuple[EndpointView, ...]
    workers: tuple[WorkersBreaker, ...] = ()
    """As each worker sees it, where there are several."""


class BackendsView(msgspec.Struct, frozen=True):
    """The clusters of what serves."""

    version: int
    """0: nothing serves."""
    clusters: tuple[ClusterView, ...]
    missing: tuple[int, ...] = ()
    """Workers that did not answer: what they do and see is not in here."""


class QuarantineView(msgspec.Struct, frozen=True):
    """An endpoint that an operator has taken out of rotation."""

    model: str
    endpoint: str
    since: float
    """Seconds since 1970."""
    served: bool
    """Whether the configuration that serves has it; else it is out should it come back."""
