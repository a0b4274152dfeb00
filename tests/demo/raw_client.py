"""A strict HTTP/1.1 client on the port, which says how an answer ended."""

import json
from collections.abc import Sequence
from enum import StrEnum

import attrs
import trio

from vsr.headers import HeaderLine
from vsr.http.framing import FramingError, ResponseHead
from vsr.http.h1_client import ClientConnection, encode_request
from vsr.network.port import Connection, ConnectionBroken

CHAT = b"/v1/chat/completions"


class AnswerEnd(StrEnum):
    """How an answer ended for the client."""

    WHOLE = "whole"
    MALFORMED = "malformed"
    CUT = "cut"
    RESET = "reset"
    SILENT = "silent"


@attrs.define
class Got:
    """What the client got of one answer."""

    end: AnswerEnd
    head: ResponseHead | None
    body: bytes
    reads: int
    is_reusable: bool
    raw: bytes = b""
    """All that arrived, until it was whole or broken."""

    @property
    def status(self) -> int:
        """Return the status, 0 without a head."""
        return self.head.status if self.head else 0

    def line(self, name: bytes) -> bytes:
        """Return the value of one field as it was sent, hop-by-hop or not; empty if absent."""
        head = self.raw.partition(b"\r\n\r\n")[0]
        fields = [line.partition(b": ") for line in head.split(b"\r\n")[1:]]
        return next((value for key, _, value in fields if key == name), b"")

    def json(self) -> dict[str, object]:
        """Return the body's members."""
        members: dict[str, object] = json.loads(self.body)
        return members


def chat_body(text: str = "Hello there", **members: object) -> bytes:
    """Return a chat request's body."""
    messages = [{"role": "user", "content": text}]
    return json.dumps({"model": "any", "messages": messages, **members}).encode()


async def ask(
    connection: Connection,
    body: bytes = b"",
    *,
    target: bytes = CHAT,
    method: bytes = b"POST",
    lines: Sequence[HeaderLine] = (),
    patience_s: float = 1000,
) -> Got:
    """Send one request and read its answer to the end, whatever kind of end it is."""
    head = encode_request(method, target, b"demo", list(lines), len(body))
    await connection.send(head + body)
    return await read_answer(connection, patience_s=patience_s, is_head=method == b"HEAD")


async def read_answer(
    connection: Connection, *, patience_s: float = 1000, is_head: bool = False
) -> Got:
    """Read one answer."""
    http = ClientConnection()
    http.begin(is_head_request=is_head)
    got = Got(AnswerEnd.SILENT, None, b"", reads=0, is_reusable=False)
    with trio.move_on_after(patience_s):
        got.end = await _read(connection, http, got)
    got.head = http.head
    got.body += http.take()
    got.is_reusable = http.is_reusable
    return got


async def _read(connection: Connection, http: ClientConnection, got: Got) -> AnswerEnd:
    while not http.is_complete:
        try:
            data = await connection.receive()
        except ConnectionBroken:
            return AnswerEnd.RESET
        got.reads += 1
        got.raw += data
        try:
            http.feed(data) if data else http.feed_end()
        except FramingError:
            return AnswerEnd.MALFORMED if data else AnswerEnd.CUT
        got.body += http.take()
    return AnswerEnd.WHOLE
