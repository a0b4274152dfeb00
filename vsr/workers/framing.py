"""Messages as frames on a byte stream, in which descriptors come along."""

import struct
from collections import deque
from collections.abc import Sequence
from typing import Generic, TypeVar

import attrs
import msgspec

MAX_DESCRIPTORS = 100
"""Of one frame; Linux takes up to 253 in one message."""
_HEAD = struct.Struct(">IB")
"""Length of the message, number of its descriptors."""
T = TypeVar("T")


class Received(msgspec.Struct, Generic[T], frozen=True):
    """A message, and the descriptors that came along; they are the receiver's to close."""

    message: T
    descriptors: tuple[int, ...] = ()


def encode(message: msgspec.Struct, descriptors: int = 0) -> bytes:
    """Return the frame of a message which so many descriptors go along with."""
    data = msgspec.msgpack.encode(message)
    return _HEAD.pack(len(data), descriptors) + data


@attrs.define
class FrameReader(Generic[T]):
    """Makes messages of what arrives, however it was split.

    Descriptors never arrive later than the first byte of their frame.
    """

    _decoder: "msgspec.msgpack.Decoder[T]"
    _held: bytearray = attrs.field(factory=bytearray, init=False)
    _descriptors: deque[int] = attrs.field(factory=deque, init=False)

    def feed(self, data: bytes, descriptors: Sequence[int] = ()) -> list[Received[T]]:
        """Take what arrived; return the messages that are whole by now."""
        self._held += data
        self._descriptors.extend(descriptors)
        found = []
        while (one := self._next()) is not None:
            found.append(one)
        return found

    def _next(self) -> Received[T] | None:
        if len(self._held) < _HEAD.size:
            return None
        length, count = _HEAD.unpack_from(self._held)
        end = _HEAD.size + length
        if len(self._held) < end:
            return None
        message = self._decoder.decode(bytes(self._held[_HEAD.size : end]))
        del self._held[:end]
        return Received(message, tuple(self._descriptors.popleft() for _ in range(count)))

    def abandoned(self) -> tuple[int, ...]:
        """Return the descriptors of a frame that never came whole."""
        left = tuple(self._descriptors)
        self._descriptors.clear()
        return left
