"""A raw HTTP/1.1 client: sends any bytes, reads answers by their framing, and trusts nothing."""

import json
import socket
import struct
from typing import Self

import attrs
import trio
import trio.testing

from tests.fakes.backend import BACKEND_HOST

_WITHOUT_BODY = (204, 304)
_READ_BYTES = 65_536
_ARRIVAL_S = 0.001
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class BrokenAnswer(Exception):
    """The connection ended, or the framing went wrong, within an answer."""


@attrs.frozen
class Answer:
    """One response as it arrived."""

    status: int
    fields: dict[str, str]
    """By lower-case name; of a repeated one, the last value."""
    body: bytes = b""

    @property
    def code(self) -> str | None:
        """Return the error code of an OpenAI error body, None of any other body."""
        try:
            code: str | None = json.loads(self.body)["error"]["code"]
        except (ValueError, KeyError, TypeError):
            return None
        return code


class RawClient:
    """One client connection; `reset` and `close` leave at once, whatever is under way."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._held = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def send(self, *pieces: bytes) -> None:
        """Send `pieces` so that each arrives on its own, or until the server has closed."""
        for at, piece in enumerate(pieces):
            if at:
                # The event loop is the server's too: once idle, it has taken the last piece.
                await trio.testing.wait_all_tasks_blocked(_ARRIVAL_S)
            try:
                await self.stream.send_all(piece)
            except trio.BrokenResourceError:
                return

    async def answer(self, *, is_head: bool = False) -> Answer | None:
        """Read one answer; None if the connection was closed before it.

        Raises:
            BrokenAnswer: it was closed or reset within the answer, or the framing is wrong.
        """
        if not self._held and not await self._fill():
            return None
        start, *lines = (await self._until(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        version, status, _ = start.split(" ", 2)
        if version != "HTTP/1.1":
            raise BrokenAnswer(start)
        named = [line.partition(": ") for line in lines]
        fields = {name.lower(): value for name, _, value in named}
        has_body = not is_head and int(status) >= 200 and int(status) not in _WITHOUT_BODY
        return Answer(int(status), fields, await self._body(fields) if has_body else b"")

    async def first_byte(self) -> None:
        """Wait until something of an answer is there.

        Raises:
            BrokenAnswer: the connection was closed or reset before.
        """
        await self._more()

    async def rest(self) -> bytes:
        """Read to the end of the stream.

        Raises:
            BrokenAnswer: the connection was reset.
        """
        while await self._fill():
            pass
        held, self._held = self._held, b""
        return held

    def close(self) -> None:
        """Close at once."""
        self.stream.socket.close()

    def reset(self) -> None:
        """Close with a reset."""
        self.stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.stream.socket.close()

    async def _body(self, fields: dict[str, str]) -> bytes:
        if "transfer-encoding" in fields:
            if fields["transfer-encoding"] != "chunked" or "content-length" in fields:
                raise BrokenAnswer(f"framing: {fields}")
            return await self._chunks()
        if "content-length" in fields:
            return await self._exactly(int(fields["content-length"]))
        return await self.rest()

    async def _chunks(self) -> bytes:
        parts = []
        while size := int(await self._until(b"\r\n"), 16):
            parts.append(await self._exactly(size))
            await self._line_end()
        await self._line_end()
        return b"".join(parts)

    async def _line_end(self) -> None:
        if await self._exactly(2) != b"\r\n":
            raise BrokenAnswer("no line end behind a chunk")

    async def _exactly(self, size: int) -> bytes:
        parts, missing = [self._held], size - len(self._held)
        self._held = b""
        while missing > 0:
            await self._more()
            parts.append(self._held)
            missing -= len(self._held)
            self._held = b""
        data = b"".join(parts)
        self._held = data[size:]
        return data[:size]

    async def _until(self, mark: bytes) -> bytes:
        while mark not in self._held:
            await self._more()
        data, _, self._held = self._held.partition(mark)
        return data

    async def _more(self) -> None:
        if not await self._fill():
            raise BrokenAnswer("closed within an answer")

    async def _fill(self) -> bool:
        try:
            data = await self.stream.receive_some(_READ_BYTES)
        except trio.BrokenResourceError:
            raise BrokenAnswer("reset") from None
        self._held += data
        return bool(data)


async def connect(port: int, *, receive_buffer_bytes: int = 0) -> RawClient:
    """Open a connection to a loopback port."""
    sock = trio.socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if receive_buffer_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        await sock.connect((BACKEND_HOST, port))
    except BaseException:
        sock.close()
        raise
    return RawClient(trio.SocketStream(sock))


def chat(text: str = "Hello", *, model: str = "auto", **members: object) -> bytes:
    """Return the body of a chat request."""
    messages = [{"role": "user", "content": text}]
    return json.dumps({"model": model, "messages": messages, **members}).encode()


def post(
    body: bytes, *lines: bytes, target: bytes = b"/v1/chat/completions", host: bytes = b"h"
) -> bytes:
    """Return a whole POST request."""
    length = b"Content-Length: %d" % len(body)
    start = b"POST %b HTTP/1.1" % target
    return b"\r\n".join([start, b"Host: " + host, length, *lines, b"", body])
