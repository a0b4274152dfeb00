"""The protocols through which engine, graph and adapters reach the rest; open by default."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import attrs
import msgspec

from vsr.deadline import Deadline
from vsr.headers import Headers
from vsr.network.port import Connection
from vsr.resources.cluster import Endpoint
from vsr.routing.outcome import Attempt, Cause, TransportFact
from vsr.routing.plan import Call
from vsr.routing.request import Request


class Tasks(Protocol):
    """The request's nursery, as far as a graph may use it."""

    @property
    def cause(self) -> Cause | None:
        """Return why the request was ended before its time, None while it goes on."""
        ...

    def start_soon(self, task: Callable[[], Awaitable[object]], /) -> None:
        """Start `task` in the request's nursery."""
        ...


class Admission(Protocol):
    """Decides whether a request may enter, from the process down to the single backend."""

    def admit(self, request: Request) -> bool:
        """Return whether `request` may go on; if so, `release` must follow."""
        ...

    def release(self, request: Request) -> None:
        """Give back what `admit` took."""
        ...


@attrs.frozen
class AdmitAll:
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


@attrs.frozen
class NoRuntime:
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
            UpstreamConnectFailure, NoHealthyEndpoint: no connection, nothing was sent.
        """
        ...


class UpstreamResponse(Protocol):
    """A backend's response whose head has arrived."""

    status: int
    headers: Headers
    """Hop-by-hop lines are gone."""
    length: int | None
    """Declared body length, None when it is not known beforehand."""

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

    @property
    def fact(self) -> TransportFact:
        """Return the last transport fact of the attempt that serves this response."""
        ...

    def close(self) -> None:
        """Give the connection back if the response is complete, else drop it at once."""
        ...


class Journal(msgspec.Struct, gc=False):
    """The attempts of one call, in order."""

    attempts: list[Attempt] = []
    upstream_host: str = ""
    """`host:port` of the endpoint that answered, as configured."""


class UpstreamCluster(Protocol):
    """The backends of one model, and how they are called."""

    def timeouts(self, listener_s: float | None) -> tuple[float | None, float | None]:
        """Return total and idle timeout under a listener's default; None means no limit."""
        ...

    async def send(
        self, call: Call, *, deadline: Deadline, idle_s: float | None, journal: Journal
    ) -> UpstreamResponse:
        """Send `call` as the cluster's policy allows.

        Args:
            call: its body is whole bytes, since a retry must be able to repeat it.
            deadline: of the request; bounds every attempt and the streamed body together.
            idle_s: limit of one wait for more of the body; None means no limit.
            journal: gets one entry per attempt.

        Raises:
            NoHealthyEndpoint, UpstreamConnectFailure: nothing was sent.
            UpstreamReset, UpstreamProtocolError, DeadlineExceeded: no response head came.
        """
        ...


class Upstream(Protocol):
    """The clusters of one configuration."""

    def cluster_for(self, route_key: bytes) -> UpstreamCluster:
        """Return the named cluster, or the default one.

        Raises:
            NoHealthyEndpoint: there are no clusters at all.
        """
        ...


class Caller(Protocol):
    """Makes the calls of graph steps that are not tail calls."""

    async def call(self, call: Call, deadline: Deadline) -> tuple[int, Headers, bytes]:
        """Return status, headers and whole body of the answer.

        Raises:
            UpstreamFailure: no answer.
        """
        ...
