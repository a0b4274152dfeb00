"""One embedded model server: its connections, its calls, what it saw of them."""

from collections import deque
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Protocol

import attrs
import trio

from vsr.demo.faults import Fault
from vsr.demo.reply import Reply, Seen, answer, error_reply, refusal
from vsr.demo.script import Script
from vsr.demo.wire import Ending, Step, Wait, steps
from vsr.errors import InvalidRequest
from vsr.headers import Headers
from vsr.http.framing import FramingError, RequestHead
from vsr.http.h1_server import CONTINUE, End, ServerConnection
from vsr.network.port import Connection, ConnectionBroken, Network

_MAX_BODY_BYTES = 64 * 1024 * 1024
_SLICE_BYTES = 64 * 1024
_UNREAD_S = 5.0
"""How long a client may take to notice that its body is not read."""
_UNCOUNTED = frozenset({(b"GET", b"/health"), (b"GET", b"/v1/models")})


class CallEnd(StrEnum):
    """How a call ended."""

    COMPLETED = "completed"
    """Everything was sent that was to be sent."""
    PEER_GONE = "peer_gone"
    FAULT = "fault"
    """A fault broke the answer off."""
    STOPPED = "stopped"
    """The server itself was stopped, or dropped the connection."""


@attrs.define(eq=False)
class Call:
    """One request and what became of it."""

    seen: Seen
    bytes_sent: int = 0
    """What the connection took so far, head and framing included."""
    end: CallEnd | None = None
    """None while it is under way."""
    ended_at: float | None = None

    def finish(self, end: CallEnd) -> None:
        """Record the first end."""
        if self.end is None:
            self.end = end
            self.ended_at = trio.current_time()


class Scripted(Protocol):
    """What says how each call goes: a `Script`, or what makes one for each call."""

    def for_call(self, number: int | None, headers: Headers) -> Script:
        """Return the script of one call; see `Script.for_call`."""
        ...


class DemoModel:
    """A model server that does what its script says, and remembers its last calls."""

    def __init__(
        self,
        network: Network,
        script: Scripted | None = None,
        *,
        history: int = 2000,
        respond: Callable[[Seen, Script], Reply] = answer,
    ) -> None:
        self.script: Scripted = script or Script()
        """May be replaced at any time; calls under way keep theirs."""
        self.respond = respond
        """Writes the answers."""
        self.port = 0
        self.calls: deque[Call] = deque(maxlen=history)
        self.malformed: deque[str] = deque(maxlen=history)
        """What was wrong with requests that break HTTP; those are no calls."""
        self.accepted_connections = 0
        self._network = network
        self._requests = 0
        self._counted_calls = 0
        self._served: set[_ServedConnection] = set()
        self._stop_listening = trio.CancelScope()

    @property
    def seen(self) -> list[Seen]:
        """Return the remembered requests, oldest first."""
        return [call.seen for call in self.calls]

    @property
    def open_connections(self) -> int:
        """Return how many connections are open."""
        return len(self._served)

    async def run(
        self,
        address: str,
        port: int,
        *,
        task_status: "trio.TaskStatus[DemoModel]" = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Listen and serve until cancelled, or until no connection is left after a stop.

        Raises:
            OSError: the address cannot be bound.
        """
        listener = await self._network.listen(address, port)
        try:
            self.port = listener.port
            async with trio.open_nursery() as nursery:
                task_status.started(self)
                with self._stop_listening:
                    while True:
                        served = _ServedConnection(self, await listener.accept())
                        self.accepted_connections += 1
                        self._served.add(served)
                        nursery.start_soon(served.serve)
                listener.close()
        finally:
            listener.close()

    def stop_listening(self) -> None:
        """Refuse new connections and keep those there are."""
        self._stop_listening.cancel(reason="stop listening")

    def drop_connections(self) -> None:
        """Close every connection, whatever is under way on it."""
        for served in self._served:
            served.drop()

    def open_call(self, head: RequestHead) -> tuple[Call, int | None]:
        """Remember a new call; return it and its number among those that faults count."""
        seen = Seen(
            head.method,
            head.target,
            Headers(head.lines.copy()),
            b"",
            self._requests,
            is_complete=False,
        )
        self._requests += 1
        call = Call(seen)
        self.calls.append(call)
        if (seen.method, seen.path) in _UNCOUNTED:
            return call, None
        self._counted_calls += 1
        return call, self._counted_calls - 1

    def forget(self, served: "_ServedConnection") -> None:
        """Take note that a connection has ended."""
        self._served.discard(served)


class _ServedConnection:
    """Serves one connection, request after request."""

    def __init__(self, model: DemoModel, connection: Connection) -> None:
        self._model = model
        self._connection = connection
        self._http = ServerConnection()
        self._life = trio.CancelScope()

    async def serve(self) -> None:
        """Serve until either side is done, then close."""
        try:
            with self._life:
                while await self._serve_request():
                    pass
        except ConnectionBroken:
            pass  # the client is gone, and its call says so
        finally:
            self._connection.close()
            self._model.forget(self)

    def drop(self) -> None:
        """Close now."""
        self._life.cancel(reason="dropped")
        self._connection.close()

    async def _serve_request(self) -> bool:
        """Serve the next request; return whether another may follow."""
        head = await self._read_head()
        if head is None:
            return False
        call, number = self._model.open_call(head)
        try:
            return await self._answer(call, number, head)
        except ConnectionBroken:
            call.finish(CallEnd.PEER_GONE)
            raise
        finally:
            self._connection.on_gone = None
            call.finish(CallEnd.STOPPED)

    async def _read_head(self) -> RequestHead | None:
        while True:
            event = self._http.next_event()
            if isinstance(event, RequestHead):
                return event
            if isinstance(event, FramingError):
                await self._refuse(event)
                return None
            data = await self._connection.receive()
            if not data:
                return None
            self._http.feed(data)

    async def _refuse(self, fault: FramingError) -> None:
        self._model.malformed.append(str(fault))
        reply = attrs.evolve(error_reply(fault.status, str(fault)), is_last=True)
        await self._take(None, steps(reply, Script()))

    async def _answer(self, call: Call, number: int | None, head: RequestHead) -> bool:
        refused = None
        try:
            script = self._model.script.for_call(number, call.seen.headers)
        except InvalidRequest as error:
            script, refused = Script(), refusal(error)
        if script.fault is not Fault.REFUSE_BODY and not await self._read_body(call, head):
            await self._take(call, steps(_too_large(), Script()))
            return False
        reply = refused or self._model.respond(call.seen, script)
        if head.is_http_1_0:
            script = _for_http_1_0(script)
        elif not head.keep_alive:
            reply = attrs.evolve(reply, is_last=True)
        self._end_when_gone(call)
        return await self._take(call, steps(reply, script))

    def _end_when_gone(self, call: Call) -> None:
        """Let a client that leaves, or has left, end the call at once."""

        def end() -> None:
            call.finish(CallEnd.PEER_GONE)
            self._life.cancel(reason="client gone")

        self._connection.on_gone = end
        if self._connection.is_gone:
            end()

    async def _read_body(self, call: Call, head: RequestHead) -> bool:
        """Read the whole body; return False if it is too large."""
        parts: list[bytes] = []
        size = 0
        waits_for_continue = head.expects_continue
        while True:
            event = self._http.next_event()
            if isinstance(event, bytes):
                parts.append(event)
                size += len(event)
                if size > _MAX_BODY_BYTES:
                    return False
            elif event is End.REQUEST:
                call.seen = attrs.evolve(call.seen, body=b"".join(parts), is_complete=True)
                return True
            elif event is not None:
                self._model.malformed.append(str(event))
                raise ConnectionBroken
            else:
                if waits_for_continue:
                    waits_for_continue = False
                    await self._connection.send(CONTINUE)
                await self._fill_body()

    async def _fill_body(self) -> None:
        data = await self._connection.receive()
        if not data:
            raise ConnectionBroken
        self._http.feed(data)

    async def _take(self, call: Call | None, todo: Iterator[Step]) -> bool:
        """Take the steps; return whether another request may follow."""
        for step in todo:
            if isinstance(step, bytes):
                await self._send(call, step)
            elif isinstance(step, Wait):
                await trio.sleep(step.seconds)
            else:
                if call is not None:
                    is_cut = step in {Ending.CUT, Ending.RESET}
                    call.finish(CallEnd.FAULT if is_cut else CallEnd.COMPLETED)
                return await self._end(step)
        return False

    async def _send(self, call: Call | None, data: bytes) -> None:
        rest = memoryview(data)
        for at in range(0, len(data), _SLICE_BYTES):
            part = rest[at : at + _SLICE_BYTES]
            await self._connection.send(part)
            if call is not None:
                call.bytes_sent += len(part)

    async def _end(self, ending: Ending) -> bool:
        if ending is Ending.KEEP_ALIVE:
            return True
        if ending is Ending.RESET:
            self._connection.abort()
        elif ending is Ending.CLOSE_UNREAD:
            # Closing with unread data would reset the connection under the answer.
            self._connection.shutdown_send()
            await trio.sleep(_UNREAD_S)
        return False


def _too_large() -> Reply:
    return attrs.evolve(error_reply(413, "The request body is too large."), is_last=True)


def _for_http_1_0(script: Script) -> Script:
    """Return `script` with the one framing that HTTP/1.0 has, where it asks for no other."""
    return script if script.fault else attrs.evolve(script, fault=Fault.UNTIL_CLOSE)
