"""The protocols through which engine, graph and adapters reach the rest; open by default."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

from vsr.deadline import Deadline
from vsr.headers import Headers
from vsr.network.port import Connection
from vsr.resources.cluster import Endpoint
from vsr.resources.reliability import CallOverride
from vsr.routing.effect import ImmediateResponse
from vsr.routing.outcome import Attempt, Cause
from vsr.routing.plan import Alternatives, Call, Hop, Label, Plan
from vsr.routing.request import Request
from vsr.routing.trace import Trace

if TYPE_CHECKING:
    from vsr.codec.chat_body import ChatBody


class Tasks(Protocol):
    """The request's nursery, as far as a graph may use it."""

    @property
    def cause(self) -> Cause | None:
        """Return why the request was ended before its time, None while it goes on."""
        ...

    def start_soon(self, task: Callable[[], Awaitable[object]], /) -> None:
        """Start `task` in the request's nursery."""
        ...

    def end_at(self, at: float, /) -> None:
        """Let the request's work go on until `at`, monotonic seconds."""
        ...


class Admission(Protocol):
    """Decides whether a request may enter, from the process down to the single backend."""

    def admit(self, request: Request) -> bool:
        """Return whether `request` may go on; if so, `release` must follow."""
        ...

    def release(self, request: Request) -> None:
        """Give back what `admit` took."""
        ...


class AdmitAll(msgspec.Struct, frozen=True):
    """The default admission: everything enters, nothing is counted."""

    def admit(self, request: Request) -> bool:
        """Let `request` in."""
        del request
        return True

    def release(self, request: Request) -> None:
        """Do nothing."""


class Runtime(Protocol):
    """The model runtime: learned signals and verifiers, one bundle per phase."""

    async def evaluate(self, bundle: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Answer every ask of `bundle` under the same key; a missing key is unknown."""
        ...


class NoRuntime(msgspec.Struct, frozen=True):
    """The default runtime: knows nothing, so every learned ask is unknown."""

    async def evaluate(self, bundle: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """Answer nothing."""
        del bundle
        return {}


class Dialer(Protocol):
    """Opens connections of one security domain (TLS, server name, connect timeout, egress)."""

    async def dial(self, endpoint: Endpoint) -> Connection:
        """Connect to `endpoint`.

        Raises:
            UpstreamConnectFailure, NoHealthyEndpoint, EgressRefused: no connection, nothing was
                sent.
        """
        ...


class UpstreamResponse(Protocol):
    """A backend's response whose head has arrived."""

    status: int
    headers: Headers
    """Hop-by-hop lines are gone."""
    length: int | None
    """Declared body length, None when it is not known beforehand."""
    attempt: Attempt
    """The one that serves this response."""

    def take(self) -> bytes:
        """Return the body bytes that have arrived already, maybe none, without waiting."""
        ...

    @property
    def is_complete(self) -> bool:
        """Return whether the whole body has been taken."""
        ...

    async def receive(self) -> bytes:
        """Return the next body bytes, empty at the end.

        Raises:
            UpstreamReset, UpstreamProtocolError, DeadlineExceeded: the body ends here, broken.
        """
        ...

    async def relay(self, sink: Callable[[bytes], bool]) -> None:
        """Hand body bytes to `sink` as they arrive, until it returns False or the body ends.

        Raises:
            UpstreamProtocolError, DeadlineExceeded: the body ends here, broken.
        """
        ...

    def close(self) -> None:
        """Give the connection back if the response is complete, else drop it at once."""
        ...


class Journal(msgspec.Struct, gc=False):
    """The attempts of one call in order, or those of a whole request."""

    attempts: list[Attempt] = []
    trace: Trace | None = None
    """Whose spans the attempts are; None where nothing is traced."""
    plan: Plan | None = None
    """Of a request, from when its planning begins; whoever has the journal ends it."""


class UpstreamCluster(Protocol):
    """The backends of one model, and how they are called."""

    @property
    def replay_bytes(self) -> int:
        """Return up to which size a body is kept to be sent again; a longer one is passed on."""
        ...

    def timeouts(self, call: Call, listener_s: float | None) -> tuple[float | None, float | None]:
        """Return a call's total and idle timeout under a listener's default; None is no limit."""
        ...

    async def send(
        self,
        call: Call,
        *,
        now: float,
        deadline: Deadline,
        idle_s: float | None,
        journal: Journal,
    ) -> UpstreamResponse:
        """Send `call` as the cluster's policy allows.

        Args:
            call: one whose body is passed on as it comes is tried again only before it was begun.
            now: monotonic seconds.
            deadline: of the request; bounds every attempt and the streamed body together.
            idle_s: limit of one wait for more of the body; None means no limit.
            journal: gets one entry per attempt.

        Raises:
            NoHealthyEndpoint, UpstreamOverflow, UpstreamConnectFailure: nothing was sent.
            UpstreamReset, UpstreamProtocolError, DeadlineExceeded: no response head came.
        """
        ...


class Served(msgspec.Struct, frozen=True):
    """What serves a request that had alternatives."""

    response: UpstreamResponse
    total_at: float
    """End of its call, the streamed body included: monotonic seconds."""
    label: Label | None = None
    """What logs call the request now, where another model serves than the one chosen."""


class Upstream(Protocol):
    """The clusters of one configuration."""

    async def send_along(
        self,
        call: Call,
        alternatives: Alternatives,
        *,
        listener_s: float | None,
        started_at: float,
        journal: Journal,
    ) -> Served | ImmediateResponse:
        """Send `call` under its own timeouts, and go on to its alternatives when it fails.

        Args:
            call: to the model that was chosen.
            alternatives: the other ones.
            listener_s: default of the total and idle timeouts; None means no limit.
            started_at: when the request's processing began, monotonic seconds.
            journal: gets one entry per attempt of each call.

        Raises:
            UpstreamFailure: of the first call, if nothing was better; see `UpstreamCluster.send`.
        """
        ...

    async def run(self) -> None:
        """Do what has to be done beside the calls, until cancelled."""
        ...

    async def warm(self) -> None:
        """Wait until calls can be judged by more than luck; `run` is running."""
        ...

    def cluster_for(self, route_key: bytes) -> UpstreamCluster:
        """Return the named cluster, or the default one.

        Raises:
            NoHealthyEndpoint: there are no clusters at all.
        """
        ...


class CallAnswer(msgspec.Struct, frozen=True, gc=False):
    """A backend's whole answer, whatever its status."""

    status: int
    headers: Headers
    """Hop-by-hop lines are gone."""
    body: bytes
    attempts: tuple[Attempt, ...] = ()
    """Of the call, in order; the last one served."""
    first_byte_at: float | None = None
    """When the first byte of the body was there, monotonic seconds; None if it is empty."""


class Caller(Protocol):
    """Makes the calls of graph steps that are not tail calls."""

    async def call(
        self, call: Call, deadline: Deadline, *, limit_bytes: int, journal: Journal
    ) -> CallAnswer:
        """Return the answer of a backend once it is whole.

        Args:
            call: its own timeouts hold within the deadline.
            deadline: of the whole call, its body included; nothing is sent behind it.
            limit_bytes: of the body; one of exactly this size passes.
            journal: gets one entry per attempt, also where the call fails or is cancelled.

        Raises:
            UpstreamFailure: no answer, or none that is whole, as `UpstreamCluster.send` and
                `UpstreamResponse.receive` tell it.
            UpstreamAnswerTooLarge: the body is longer than the limit.
        """
        ...


class Hops(Protocol):
    """Makes calls to models of a decision out of chat completions that a graph has written."""

    def open(
        self, model: str, body: "ChatBody", *, reliability: CallOverride | None, is_bounded: bool
    ) -> Hop:
        """Return the call to `model`, with that hop's plugins, credentials and policy.

        Args:
            model: alias or adapter.
            body: what is to be asked; the model's name is put in here.
            reliability: what the step changes of the call's policy.
            is_bounded: whether a limit asks for token bounds; the output's is then written into
                the request.

        Raises:
            VsrError: there is no such model, or the request cannot be said to it.
        """
        ...


class Fetch(Protocol):
    """Asks a service over HTTP that is no model: its answers are not in any ledger."""

    async def __call__(
        self, url: str, body: bytes, deadline: Deadline, *, limit_bytes: int
    ) -> CallAnswer:
        """Return the whole answer to a POST of JSON.

        Args:
            url: absolute, http or https.
            body: JSON.
            deadline: of the whole exchange.
            limit_bytes: of the answer's body.

        Raises:
            UpstreamFailure: no answer, or none that is whole.
        """
        ...


class GraphPorts(msgspec.Struct, frozen=True, eq=False):
    """The ways of graphs to the world."""

    caller: Caller
    fetch: Fetch
