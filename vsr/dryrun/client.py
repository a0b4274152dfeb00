"""The client of a dry run: one request, its answer, or the moment at which it leaves."""

import json
from collections.abc import Mapping

import attrs
import trio

from vsr.codec.chat_reply import read_reply
from vsr.codec.sse import SseDecoder
from vsr.dryrun.record import AnswerRecord
from vsr.dryrun.scenario import RequestScript
from vsr.errors import GraphFailed
from vsr.http.framing import FramingError, ResponseHead
from vsr.http.h1_client import ClientConnection, encode_request
from vsr.network.port import Connection, ConnectionBroken

PATH = b"/v1/chat/completions"
_OK = 200


@attrs.define(eq=False)
class Exchange:
    """One request on a connection of its own."""

    connection: Connection
    http: ClientConnection = attrs.field(factory=ClientConnection)
    body: bytes = b""
    head: ResponseHead | None = None
    first_byte_at: float | None = None
    end: str = "never"

    async def run(self, request: RequestScript, model: str, leaves_at: float, until: float) -> None:
        """Ask, and read the answer until its end, or until the client leaves or gives up."""
        body = json.dumps({"model": model, **request.body}, ensure_ascii=False).encode()
        headers = {"content-type": "application/json", **request.headers}
        lines = [(name.encode(), value.encode()) for name, value in headers.items()]
        self.http.begin(is_head_request=False)
        with trio.CancelScope(deadline=min(leaves_at, until)) as scope:
            await self.connection.send(encode_request(b"POST", PATH, b"dry-run", lines, len(body)))
            await self.connection.send(body)
            await self._read()
        if scope.cancelled_caught:
            self.end = "left" if leaves_at < until else "never"
        self.connection.close()

    async def _read(self) -> None:
        while not self.http.is_complete:
            try:
                data = await self.connection.receive()
                self.http.feed(data) if data else self.http.feed_end()
            except (ConnectionBroken, FramingError):
                self.end = "cut"
                return
            finally:
                self._take()
        self.end = "whole"

    def _take(self) -> None:
        self.head = self.http.head
        piece = self.http.take()
        if piece and self.first_byte_at is None:
            self.first_byte_at = trio.current_time()
        self.body += piece

    def record(self, start: float, end: float) -> AnswerRecord:
        """Return what came of it; times are monotonic seconds."""
        head = self.head
        status = None if head is None else head.status
        lines = () if head is None else tuple((n.decode(), v.decode()) for n, v in head.lines)
        is_stream = any(n == "content-type" and "event-stream" in v for n, v in lines)
        text, calls = _said(self.body, status, is_stream=is_stream)
        first = self.first_byte_at
        return AnswerRecord(
            status,
            lines,
            text,
            self.body.decode("utf-8", "replace"),
            calls,
            None if first is None else first - start,
            end - start,
            self.end,
        )


def _said(
    body: bytes, status: int | None, *, is_stream: bool
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the text of an answer or of an error, and the tool calls."""
    if status is None or not body:
        return "", ()
    if status != _OK:
        return _error_text(body), ()
    try:
        reply = read_reply("", body, is_stream=is_stream)
    except GraphFailed:
        return "", ()
    text = reply.content or (_stream_error(body) if is_stream else "")
    return text, tuple((call.name, call.arguments) for call in reply.tool_calls)


def _stream_error(body: bytes) -> str:
    """Return the text of the error event that a stream has instead of an answer, if it has."""
    events = SseDecoder().feed(body)
    told = [event.data for event in events if event.data is not None]
    return _error_text(told[-1]) if told and told[-1].startswith(b'{"error"') else ""


def _error_text(body: bytes) -> str:
    try:
        members = json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")
    error = members.get("error") if isinstance(members, Mapping) else None
    message = error.get("message") if isinstance(error, Mapping) else None
    return str(message) if message is not None else body.decode("utf-8", "replace")
