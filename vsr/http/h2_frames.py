"""The frame layer of an HTTP/2 connection: bytes in, whole frames out, bounded at every byte.

Stands before the protocol library, which sees one whole frame at a time: so what came before a
fault is not lost with it, any split of the bytes gives the same events, and the size of a frame
or of a header block is known before it is held.
"""

import struct
from enum import IntEnum, IntFlag
from typing import Final

import msgspec

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What every client sends first. Source: RFC 9113 section 3.4."""
MAX_FRAME_BYTES = 16_384
"""The most that we accept in one frame: the least that a server may ask for."""
MAX_BLOCK_BYTES = 65_536
"""Encoded bytes of one header block; the fields in it are bounded once they are decoded."""
MAX_BLOCK_FRAMES = 16
"""Frames of one header block; full ones would be far over `MAX_BLOCK_BYTES`."""
HEADER_BYTES = 9

_HEADER = struct.Struct(">HBBBL")
_GOAWAY = struct.Struct(">LL")
_STREAM_MASK = 0x7FFF_FFFF


class Kind(IntEnum):
    """Frame types that are told apart here. Source: RFC 9113 section 6."""

    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class Flag(IntFlag):
    """Flags of frames, where a frame type knows them."""

    END_STREAM = 1
    ACK = 1
    END_HEADERS = 4


class ErrorCode(IntEnum):
    """Why a stream or connection is ended. Source: RFC 9113 section 7."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    ENHANCE_YOUR_CALM = 11


class ConnectionFault(Exception):
    """The peer broke the protocol or abuses it: the connection cannot go on."""

    def __init__(self, code: int) -> None:
        super().__init__(f"HTTP/2 connection error {code}")
        self.code = code


class Frame(msgspec.Struct):
    """One frame; of a header block only its last one comes out, with all before it."""

    kind: int
    flags: int
    stream_id: int
    whole: bytes
    """As it came, header included."""


class FrameSplitter:
    """Cuts what a client sends into frames; what a server sends too, which `has_preface` tells."""

    def __init__(self, *, has_preface: bool = True) -> None:
        self._buffer = bytearray()
        self._at = 0
        """Where the next frame begins in the buffer."""
        self._awaits_preface = has_preface
        self._awaits_settings = True
        self._block: list[bytes] = []
        """Frames of a header block that has not ended."""
        self._block_bytes = 0
        self._block_stream = 0

    @property
    def is_mid_head(self) -> bool:
        """Return whether the client owes us the rest of its preface or of a header block."""
        return self._awaits_settings or bool(self._block)

    def feed(self, data: bytes) -> None:
        """Take bytes from the client."""
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        self._buffer += data

    def next_frame(self) -> Frame | None:
        """Return the next frame, None when more bytes are needed.

        Raises:
            ConnectionFault: what came is no sound frame.
        """
        if self._awaits_preface and not self._take_preface():
            return None
        while (frame := self._cut()) is not None:
            if self._awaits_settings:
                if frame.kind != Kind.SETTINGS or frame.flags & Flag.ACK:
                    raise ConnectionFault(ErrorCode.PROTOCOL_ERROR)
                self._awaits_settings = False
            whole = self._joined(frame)
            if whole is not None:
                return whole
        return None

    def _take_preface(self) -> bool:
        start = bytes(self._buffer[: len(PREFACE)])
        if not PREFACE.startswith(start):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR)
        if len(start) < len(PREFACE):
            return False
        self._at = len(PREFACE)
        self._awaits_preface = False
        return True

    def _cut(self) -> Frame | None:
        buffer, at = self._buffer, self._at
        if len(buffer) - at < HEADER_BYTES:
            return None
        high, low, kind, flags, stream_id = _HEADER.unpack_from(buffer, at)
        length = (high << 8) | low
        if length > MAX_FRAME_BYTES:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR)
        end = at + HEADER_BYTES + length
        if len(buffer) < end:
            return None
        self._at = end
        return Frame(kind, flags, stream_id & _STREAM_MASK, bytes(buffer[at:end]))

    def _joined(self, frame: Frame) -> Frame | None:
        """Return `frame`; a header block as one, None while it has not ended.

        Source: RFC 9113 section 6.10, nothing may stand between the frames of a block; and
        CVE-2024-27316, a block without end.
        """
        if self._block:
            if frame.kind != Kind.CONTINUATION or frame.stream_id != self._block_stream:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR)
        elif frame.kind == Kind.CONTINUATION:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR)
        elif frame.kind != Kind.HEADERS or frame.flags & Flag.END_HEADERS:
            return frame
        self._block.append(frame.whole)
        self._block_bytes += len(frame.whole)
        self._block_stream = frame.stream_id
        if len(self._block) > MAX_BLOCK_FRAMES or self._block_bytes > MAX_BLOCK_BYTES:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM)
        if not frame.flags & Flag.END_HEADERS:
            return None
        first = self._block[0]
        whole = b"".join(self._block)
        self._block, self._block_bytes = [], 0
        return Frame(Kind.HEADERS, first[4], frame.stream_id, whole)


def encode_goaway(last_stream_id: int, code: int) -> bytes:
    """Return a GOAWAY frame.

    The library's own would end its connection there and then, streams under way included.
    """
    body = _GOAWAY.pack(last_stream_id, code)
    return _HEADER.pack(0, len(body), Kind.GOAWAY, 0, 0) + body


def read_goaway(frame: Frame) -> int:
    """Return the last stream that the sender of a GOAWAY may have worked on.

    Raises:
        ConnectionFault: it is no sound frame.
    """
    if frame.stream_id:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR)
    if len(frame.whole) < HEADER_BYTES + _GOAWAY.size:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR)
    last_stream_id: int = _GOAWAY.unpack_from(frame.whole, HEADER_BYTES)[0] & _STREAM_MASK
    return last_stream_id


def speaks_http2(start: bytes) -> bool | None:
    """Return whether a client that sends `start` first speaks HTTP/2; None: more bytes decide."""
    if start.startswith(PREFACE):
        return True
    return None if PREFACE.startswith(start) else False
