"""One stream of a shared HTTP/2 connection, in the place of an HTTP/1.1 connection of its own."""

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Protocol

import trio

from vsr.errors import UpstreamFailure
from vsr.headers import HeaderLine
from vsr.http.framing import FramingError, ResponseHead
from vsr.network.inbox import Inbox
from vsr.network.port import ConnectionBroken
from vsr.network.timers import LazyTimers

_NEWS = b"*"
"""What reading gives: that something has come. The connection has taken in by then what it was."""
_NOTHING = memoryview(b"")


class StreamOwner(Protocol):
    """The connection of a stream."""

    def open(self, stream: "H2Stream", fields: list[HeaderLine], *, has_ended: bool) -> bool:
        """Begin the stream's request; return whether all of it went out.

        If not, `went_out` follows.
        """
        ...

    def push(self, stream: "H2Stream") -> bool:
        """Send what the stream holds; return whether all of it went out.

        If not, `went_out` follows.
        """
        ...

    def send_frame(self, stream: "H2Stream", data: memoryview, *, is_last: bool) -> int | None:
        """Put out a frame of the body; return how many bytes that was, None if it was the last."""
        ...

    def give_credit(self, stream: "H2Stream", size: int) -> None:
        """Let the server send so many more bytes."""
        ...

    def leave(self, stream: "H2Stream") -> None:
        """Take the stream back; if it is not closed yet, reset it."""
        ...


class H2Stream:
    """Plays both parts of `pool.PooledConnection`: the connection, and the HTTP state on it.

    The owner calls what begins with `on_`. What has come is in `head`, `body` and `is_complete`
    at once; reading waits for it, and means that `body` was taken: its window is given back then.
    """

    __slots__ = (
        "_fault",
        "_inbox",
        "_owner",
        "_taken",
        "_to_end",
        "_uncredited",
        "_unsent",
        "body",
        "head",
        "is_closed",
        "is_complete",
        "is_head_request",
        "is_reusable",
        "is_written",
        "opened_at",
        "stream_id",
    )

    def __init__(self, owner: StreamOwner, timers: LazyTimers) -> None:
        self._owner = owner
        self._inbox = Inbox(timers, _do_nothing)
        self._fault: Exception | None = None
        self._unsent = _NOTHING
        self._to_end = False
        """Whether the request ends behind what is unsent, and that was not put out."""
        self._taken: trio.Event | None = None
        """Set when the network has taken a piece."""
        self._uncredited = 0
        self.stream_id = 0
        """0 until the request is begun."""
        self.opened_at = inf
        self.head: ResponseHead | None = None
        self.body: deque[bytes] = deque()
        """Pieces of the body that have arrived and nobody has taken."""
        self.is_closed = False
        """Whether the stream was given back."""
        self.is_complete = False
        self.is_head_request = False
        self.is_written = False
        """Whether the network has taken the whole request."""
        self.is_reusable = True

    # The request.

    def begin(self, *, is_head_request: bool) -> None:
        """Expect the response to a new request, the stream's only one."""
        self.is_head_request = is_head_request

    def ask(self, fields: list[HeaderLine], body: bytes) -> bool:
        """Send a request as far as it goes without waiting; return whether that was all."""
        if body:
            self._unsent, self._to_end = memoryview(body), True
        self.is_written = self._owner.open(self, fields, has_ended=not body)
        return self.is_written

    def start(self, fields: list[HeaderLine]) -> None:
        """Begin a request whose body follows by `put`."""
        self._owner.open(self, fields, has_ended=False)

    async def put(self, data: bytes) -> None:
        """Send a piece of the body, an empty one as its end; wait until the network has taken it.

        Waits for ever on a stream that is closed: whoever reads the response knows.
        """
        self._unsent, self._to_end = memoryview(data), not data
        self._taken = trio.Event()
        if not self._owner.push(self):
            await self._taken.wait()

    async def wait_written(self) -> bool:
        """Wait until the request is written, or no more of it is wanted; return whether it is.

        Raises:
            UpstreamFailure: the stream is closed.
        """
        while not (self.is_written or self.head is not None or self._fault is not None):
            await self.receive()
        return self.is_written

    @property
    def has_unsent(self) -> bool:
        """Return whether some of the body is not put out."""
        return self._to_end or len(self._unsent) > 0

    def send_frame(self) -> int:
        """Put out one frame; return what it took, 0 when no window is open."""
        unsent = self._unsent
        sent = self._owner.send_frame(self, unsent, is_last=self._to_end)
        if sent is None:
            self._stop_sending()
            return len(unsent) or 1
        self._unsent = unsent[sent:]
        return sent

    def went_out(self) -> None:
        """Note that the network has taken all that was put out."""
        if self.has_unsent:
            return  # told of what stood before a piece that is still waiting
        self.is_written = True
        if self._taken is not None:
            self._taken.set()
        self._tell()

    # The response, as it comes.

    def on_head(self, head: ResponseHead, *, has_ended: bool) -> None:
        """Take in the head."""
        self.head = head
        self._tell()
        if has_ended:
            self.on_end()

    def on_body(self, data: bytes) -> None:
        """Take in a piece of the body."""
        self.body.append(data)
        self._uncredited += len(data)
        self._tell()

    def on_end(self) -> None:
        """Take in the end; what is unsent of the request stays so."""
        self.is_complete = True
        self._stop_sending()
        self._inbox.finish()

    def on_fault(self, fault: FramingError | UpstreamFailure) -> None:
        """Take in that the response ends here; one that is complete is no worse for it."""
        self._stop_sending()
        if self.is_complete or self._fault is not None:
            return
        self._fault = fault
        self._inbox.finish(broken=not isinstance(fault, FramingError))

    # The part of the HTTP state.

    def feed(self, data: bytes) -> None:
        """Do nothing: what came has been taken in.

        Raises:
            FramingError: the response breaks HTTP.
        """
        del data
        if isinstance(self._fault, FramingError):
            raise self._fault

    def feed_end(self) -> None:
        """Do the same at the end."""
        self.feed(_NEWS)

    def take(self) -> bytes:
        """Return the body bytes that have arrived, maybe none."""
        body = self.body
        if len(body) == 1:
            return body.popleft()
        data = b"".join(body)
        body.clear()
        return data

    # The part of the connection.

    @property
    def on_gone(self) -> Callable[[], None] | None:
        """Return the hang-up callback."""
        return self._inbox.on_gone

    @on_gone.setter
    def on_gone(self, callback: Callable[[], None] | None) -> None:
        self._inbox.on_gone = callback

    @property
    def peer(self) -> str:
        """Return nothing: who is asked knows."""
        return ""

    @property
    def is_gone(self) -> bool:
        """Return whether nothing more comes."""
        return self._inbox.has_peer_left

    def is_idle(self) -> bool:
        """Return whether no request was begun."""
        return not self.stream_id and not self._inbox.ended

    async def receive(self, *, until: float = inf) -> bytes:
        """Wait for anything to come, the end included.

        Raises:
            ReceiveTimedOut: nothing came until then.
            ConnectionBroken: the stream was closed inside the response's body.
            UpstreamFailure: it was closed before the head.
        """
        self._give_credit()
        try:
            await self._inbox.receive(until)
        except ConnectionBroken:
            raise self._broken() from None
        return _NEWS

    def wait_until(self, until: float) -> None:
        """Let the `receive` that is under way give up at another time."""
        self._inbox.wait_until(until)

    async def pump(self, sink: Callable[[bytes], bool], idle_s: float | None) -> bool:
        """Tell `sink` of all that comes, in the task that takes it from the network."""

        def tell(news: bytes) -> bool:
            if not sink(news):
                return False
            self._give_credit()
            return True

        self._give_credit()
        try:
            return await self._inbox.pump(tell, idle_s)
        except ConnectionBroken:
            raise self._broken() from None

    def try_send(self, data: bytes) -> int:
        """Send nothing: see `ask`."""
        del data
        return 0

    async def send(self, data: bytes | memoryview) -> None:
        """Refuse: see `ask`."""
        del data
        raise ConnectionBroken

    def shutdown_send(self) -> None:
        """Do nothing: a request says itself where it ends."""

    def close(self) -> None:
        """Give the stream back; a response that is not complete is reset at once."""
        if self.is_closed:
            return
        self.is_closed = True
        self._inbox.discard()
        self._stop_sending()
        self._owner.leave(self)

    def abort(self) -> None:
        """Do the same."""
        self.close()

    def _stop_sending(self) -> None:
        self._unsent, self._to_end = _NOTHING, False

    def _tell(self) -> None:
        if not self._inbox.held_bytes:
            self._inbox.deliver(_NEWS)

    def _give_credit(self) -> None:
        if self._uncredited:
            size, self._uncredited = self._uncredited, 0
            self._owner.give_credit(self, size)

    def _broken(self) -> Exception:
        """Return what to raise, of a closed stream."""
        if self.head is not None or self._fault is None:
            return ConnectionBroken()
        return self._fault


def _do_nothing() -> None:
    """Do nothing."""
