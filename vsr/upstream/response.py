"""A backend's response whose head has arrived, and who is told of its end."""

from collections.abc import Callable
from math import inf
from typing import Protocol

import attrs
import msgspec
import trio

from vsr.errors import DeadlineExceeded, UpstreamFailure, UpstreamProtocolError
from vsr.headers import Headers
from vsr.http.framing import FramingError
from vsr.network.port import NetworkError, ReceiveTimedOut
from vsr.routing.outcome import Attempt, TransportFact
from vsr.upstream.policy.host import Host
from vsr.upstream.policy.outcome import TimeoutStage
from vsr.upstream.pool import ClientHttp, PooledConnection


class AttemptOwner(Protocol):
    """The cluster that an attempt is one of; told of its end exactly once."""

    @property
    def now(self) -> Callable[[], float]:
        """Return what returns monotonic seconds."""
        ...

    def head_arrived(self, host: Host, attempt: Attempt, status: int) -> None:
        """Take in a response head, and say so in `attempt`."""
        ...

    def attempt_failed(self, host: Host, attempt: Attempt, pooled: PooledConnection | None) -> None:
        """Take in the end of an attempt that got no response head, and drop its connection."""
        ...

    def body_failed(self, host: Host, attempt: Attempt) -> None:
        """Take in that a response broke off; `attempt_ended` follows."""
        ...

    def body_ended(self, host: Host, *, is_complete: bool) -> None:
        """Take in that nothing more is read of a response, which did not break off."""
        ...

    def attempt_ended(self, host: Host) -> None:
        """Take in that nothing more is read of a response that broke off."""
        ...


class Response(msgspec.Struct, eq=False, gc=False):
    """A backend's response whose head has arrived; see `routing.ports.UpstreamResponse`."""

    _owner: AttemptOwner
    _host: Host
    attempt: Attempt
    _pooled: PooledConnection
    _idle_s: float | None
    _total_at: float
    status: int
    headers: Headers
    length: int | None
    _is_closed: bool = False

    @property
    def is_complete(self) -> bool:
        """Return whether the whole body has been taken."""
        http = self._pooled.http
        return http.is_complete and not http.body

    def take(self) -> bytes:
        """Return the body bytes that have arrived already, maybe none, without waiting."""
        return self._pooled.http.take()

    async def receive(self) -> bytes:
        """Return the next body bytes, empty at the end."""
        pooled = self._pooled
        http = pooled.http
        while not http.body and not http.is_complete:
            until = inf if self._idle_s is None else trio.current_time() + self._idle_s
            try:
                data = await pooled.connection.receive(until=until)
                if data:
                    http.feed(data)
                else:
                    http.feed_end()
            except (NetworkError, FramingError) as error:
                raise self._broken_body(error) from None
            except trio.Cancelled:
                self._note_cut()
                raise
        return http.take()

    async def preview(self, limit_bytes: int) -> bytes:
        """Return the body, all of it up to the limit, and leave it to be taken.

        Raises:
            UpstreamFailure: the body ends here, broken.
        """
        body = self._pooled.http.body
        while not self._pooled.http.is_complete and sum(map(len, body)) <= limit_bytes:
            begun = list(body)
            body.clear()
            piece = await self.receive()
            body.extend([*begun, piece] if piece else begun)
        return b"".join(body)

    async def relay(self, sink: Callable[[bytes], bool]) -> None:
        """Hand body bytes to `sink` as they arrive, until it returns False or the body ends."""
        http = self._pooled.http
        if (http.body and not sink(http.take())) or http.is_complete:
            return
        feed = _Feed(http, sink)
        try:
            has_ended = await self._pooled.connection.pump(feed, self._idle_s)
            if feed.fault is not None:
                raise feed.fault
            if has_ended:
                http.feed_end()
        except (NetworkError, FramingError) as error:
            raise self._broken_body(error) from None
        except trio.Cancelled:
            self._note_cut()
            raise

    def close(self) -> None:
        """Give the connection back if the response is complete, else drop it at once."""
        if self._is_closed:
            return
        self._is_closed = True
        owner, host, pooled = self._owner, self._host, self._pooled
        attempt = self.attempt
        if pooled.http.is_complete:
            attempt.fact = TransportFact.BODY_RECEIVED
        attempt.ended_at = owner.now()
        if pooled.is_reusable:
            host.pool.release(pooled)
        else:
            host.pool.drop(pooled)
        if attempt.error:
            owner.attempt_ended(host)
        else:
            owner.body_ended(host, is_complete=pooled.http.is_complete)

    def _broken_body(self, error: NetworkError | FramingError) -> UpstreamFailure:
        """Say in the attempt, and to the cluster, that the body broke; return what to raise."""
        failure = _broken_body(error)
        self._note_broken(failure)
        return failure

    def _note_cut(self) -> None:
        """Say so too if the call's time is over while the body kept us waiting.

        Source: the reference, which counts that against the endpoint, but not an idle timeout.
        """
        if trio.current_time() >= self._total_at:
            self._note_broken(DeadlineExceeded(TimeoutStage.TOTAL))

    def _note_broken(self, failure: UpstreamFailure) -> None:
        attempt = self.attempt
        attempt.error = failure.code
        attempt.stage = failure.stage if isinstance(failure, DeadlineExceeded) else ""
        self._owner.body_failed(self._host, attempt)


@attrs.define
class _Feed:
    """Takes bytes of a body from the network and hands on what they hold.

    It runs in the task that serves every socket, so whatever goes wrong is kept for the request's.
    """

    http: ClientHttp
    sink: Callable[[bytes], bool]
    fault: Exception | None = None

    def __call__(self, data: bytes) -> bool:
        """Return whether more is wanted."""
        http = self.http
        try:
            http.feed(data)
            body = http.body
            if body and not self.sink(body.popleft() if len(body) == 1 else http.take()):
                return False
        except Exception as fault:  # noqa: BLE001  # raised again by `Response.relay`
            self.fault = fault
            return False
        return not http.is_complete


def _broken_body(error: NetworkError | FramingError) -> UpstreamFailure:
    if isinstance(error, ReceiveTimedOut):
        return DeadlineExceeded(TimeoutStage.IDLE)
    if isinstance(error, FramingError):
        return UpstreamProtocolError(str(error))
    return UpstreamProtocolError("connection reset inside the response body")
