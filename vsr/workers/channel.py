"""Messages and descriptors over one end of a socket pair."""

import array
import os
import socket
from collections import deque
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import msgspec
import trio

from vsr.workers.framing import MAX_DESCRIPTORS, FrameReader, Received, encode

_READ_BYTES = 65_536
_ANCILLARY_BYTES = socket.CMSG_SPACE(MAX_DESCRIPTORS * array.array("i").itemsize)
T = TypeVar("T")


class ChannelBroken(Exception):
    """The other process has ended."""


class Channel(Protocol[T]):
    """One task sends and one receives at a time."""

    async def send(self, message: msgspec.Struct, descriptors: Sequence[int] = ()) -> None:
        """Send a message; the descriptors stay the caller's.

        Raises:
            ChannelBroken: nobody will receive it.
        """
        ...

    async def receive(self) -> Received[T] | None:
        """Return the next message; None when the other process has ended."""
        ...

    def close(self) -> None:
        """Close this end."""
        ...


class SocketChannel(Generic[T]):
    """Implements `Channel`."""

    def __init__(self, sock: socket.socket, decoder: "msgspec.msgpack.Decoder[T]") -> None:
        """Take a stream socket of the family AF_UNIX."""
        self._sock = trio.socket.from_stdlib_socket(sock)
        self._reader = FrameReader(decoder)
        self._waiting: deque[Received[T]] = deque()

    async def send(self, message: msgspec.Struct, descriptors: Sequence[int] = ()) -> None:
        """Send a message; a send that is cancelled breaks the channel."""
        frame = memoryview(encode(message, len(descriptors)))
        rights = array.array("i", descriptors)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if descriptors else []
        try:
            sent = await self._sock.sendmsg([frame], ancillary)
            while sent < len(frame):
                sent += await self._sock.send(frame[sent:])
        except OSError:
            raise ChannelBroken from None

    async def receive(self) -> Received[T] | None:
        """Return the next message."""
        while not self._waiting:
            try:
                data, ancillary, _, _ = await self._sock.recvmsg(
                    _READ_BYTES, _ANCILLARY_BYTES, socket.MSG_CMSG_CLOEXEC
                )
            except OSError:
                return None
            if not data:
                return None
            descriptors = array.array("i")
            for level, kind, content in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                    descriptors.frombytes(content[: len(content) // 4 * 4])
            self._waiting.extend(self._reader.feed(data, descriptors))
        return self._waiting.popleft()

    def close(self) -> None:
        """Close this end, and the descriptors that nobody took."""
        self._sock.close()
        left = [each for received in self._waiting for each in received.descriptors]
        self._waiting.clear()
        for descriptor in (*left, *self._reader.abandoned()):
            os.close(descriptor)
