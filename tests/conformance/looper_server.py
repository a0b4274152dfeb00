"""Scripted servers on a network in memory, which remember each call from its start to its end."""

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import attrs
import trio

from tests.conformance.looper_reply import Response
from vsr.headers import HeaderLine
from vsr.http.framing import RequestHead
from vsr.http.h1_server import LAST_CHUNK, End, ServerConnection, encode_chunk, encode_head
from vsr.network.memory import MemoryConnection, MemoryListener, MemoryNetwork
from vsr.network.port import ConnectionBroken

_LEAST_DELAY_S = 0.001
"""Before every answer: virtual time passes only once all calls that can start have started."""
_APART_S = 0.000_001
"""Between the answers to calls that came at the same instant: in the order in which they came."""


@attrs.define(eq=False)
class SeenCall:
    """One request that a server got, and when it was under way."""

    target: str
    headers: dict[str, str]
    """The first value of every name."""
    body: Any
    """The JSON value, or the text where it is none."""
    started: int
    """Number of the event; events of all servers of a case are counted together."""
    started_at: float
    """Virtual seconds."""
    ended: int | None = None
    ended_at: float | None = None
    was_left: bool = False
    """Whether the client went before it had the answer."""


@attrs.define(eq=False)
class ScriptedServer:
    """Answers what `answer` says; `start` it in a nursery."""

    network: MemoryNetwork
    answer: Callable[[SeenCall], Response]
    """Called once per call, in the order in which they come."""
    events: Iterator[int] = attrs.field(factory=itertools.count)
    calls: list[SeenCall] = attrs.field(factory=list)
    """Since the last `take_calls`, in the order in which they came."""
    port: int = 0

    async def start(self, nursery: trio.Nursery) -> None:
        """Listen, and serve until `nursery` is cancelled."""
        listener = await self.network.listen("127.0.0.1", 0)
        self.port = listener.port
        nursery.start_soon(self._accept, nursery, listener)

    def take_calls(self) -> list[SeenCall]:
        """Return the calls since the last time."""
        calls, self.calls = self.calls, []
        return calls

    async def _accept(self, nursery: trio.Nursery, listener: MemoryListener) -> None:
        while True:
            nursery.start_soon(self._serve, await listener.accept())

    async def _serve(self, connection: MemoryConnection) -> None:
        http = ServerConnection()
        with trio.CancelScope() as life, suppress(ConnectionBroken):
            while True:
                received = await read_request(connection, http)
                if received is None or not await self._serve_call(connection, life, *received):
                    break
        connection.close()

    async def _serve_call(
        self, connection: MemoryConnection, life: trio.CancelScope, head: RequestHead, body: bytes
    ) -> bool:
        """Return whether another request may follow."""
        call = self._open(head, body)
        response = self.answer(call)
        connection.on_gone = partial(self._note_gone, call, life)
        if connection.is_gone:
            self._note_gone(call, life)
        apart_s = len(self.calls) * _APART_S
        await trio.sleep(max(response.delay_s, 0) + _LEAST_DELAY_S + apart_s)
        connection.on_gone = None
        if response.is_reset:
            self._end(call)
            connection.abort()
            return False
        *first, last = _wire(response)
        for piece in first:
            await connection.send(piece)
        # Before the last byte: what the answer sets off comes behind the call.
        self._end(call)
        await connection.send(last)
        return True

    def _open(self, head: RequestHead, body: bytes) -> SeenCall:
        try:
            value = json.loads(body)
        except ValueError:
            value = body.decode("utf-8", "replace")
        headers = {
            name.decode("latin-1"): text.decode("latin-1") for name, text in reversed(head.lines)
        }
        target = head.target.decode("latin-1")
        call = SeenCall(target, headers, value, next(self.events), trio.current_time())
        self.calls.append(call)
        return call

    def _end(self, call: SeenCall) -> None:
        call.ended, call.ended_at = next(self.events), trio.current_time()

    def _note_gone(self, call: SeenCall, life: trio.CancelScope) -> None:
        if call.ended is None:
            call.was_left = True
            self._end(call)
        life.cancel(reason="client gone")


def most_at_once(calls: list[SeenCall]) -> int:
    """Return how many of `calls` were under way at the same instant, at most."""
    changes = [(call.started, 1) for call in calls]
    changes += [(call.ended, -1) for call in calls if call.ended is not None]
    return max(itertools.accumulate(change for _, change in sorted(changes)), default=0)


def _wire(response: Response) -> list[bytes]:
    lines: list[HeaderLine] = [(b"content-type", response.content_type.encode())]
    if len(response.pieces) == 1:
        body = response.pieces[0]
        lines.append((b"content-length", b"%d" % len(body)))
        return [encode_head(response.status, lines) + body]
    lines.append((b"transfer-encoding", b"chunked"))
    chunks = [encode_chunk(piece) for piece in response.pieces]
    return [encode_head(response.status, lines), *chunks, LAST_CHUNK]


async def read_request(
    connection: MemoryConnection, http: ServerConnection
) -> tuple[RequestHead, bytes] | None:
    """Return the next request with its body; None if the client has no more.

    Raises:
        ConnectionBroken: it left within one, or sent what is no request.
    """
    head: RequestHead | None = None
    parts: list[bytes] = []
    while True:
        event = http.next_event()
        if event is None:
            data = await connection.receive()
            if not data:
                return None
            http.feed(data)
        elif isinstance(event, RequestHead):
            head = event
        elif isinstance(event, bytes):
            parts.append(event)
        elif event is End.REQUEST and head is not None:
            return head, b"".join(parts)
        else:
            raise ConnectionBroken
