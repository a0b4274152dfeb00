"""The frame layer of HTTP/2 connections."""

import pytest
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    SettingsFrame,
)

from vsr.http import h2_frames
from vsr.http.h2_frames import (
    MAX_BLOCK_BYTES,
    MAX_BLOCK_FRAMES,
    MAX_FRAME_BYTES,
    PREFACE,
    ConnectionFault,
    ErrorCode,
    FrameSplitter,
    Kind,
    encode_goaway,
    speaks_http2,
)

SETTINGS = SettingsFrame(0).serialize()
BEGINNING = PREFACE + SETTINGS


def cut_frames(*data: bytes) -> list[h2_frames.Frame]:
    """Return the frames of some reads, the first settings not included."""
    splitter = FrameSplitter()
    frames = []
    for piece in (BEGINNING, *data):
        splitter.feed(piece)
        while (frame := splitter.next_frame()) is not None:
            frames.append(frame)
    return frames[1:]


def head(*, ends: bool, data: bytes = b"abc", stream_id: int = 1) -> bytes:
    """Return the first frame of a header block."""
    flags = ["END_HEADERS"] if ends else []
    return HeadersFrame(stream_id, data, flags=flags).serialize()


def more(*, ends: bool, data: bytes = b"def", stream_id: int = 1) -> bytes:
    """Return a further frame of a header block."""
    flags = ["END_HEADERS"] if ends else []
    return ContinuationFrame(stream_id, data, flags=flags).serialize()


def test_frames_come_out_as_they_came() -> None:
    """One by one, header included, however many stand in a read."""
    frames: list[Frame] = [DataFrame(3, b"abc"), PingFrame(0, b"12345678"), DataFrame(5, b"")]
    raw = [frame.serialize() for frame in frames]

    got = cut_frames(b"".join(raw))

    assert [frame.whole for frame in got] == raw
    assert [(frame.kind, frame.stream_id) for frame in got] == [
        (Kind.DATA, 3),
        (Kind.PING, 0),
        (Kind.DATA, 5),
    ]


def test_any_split_gives_the_same_frames() -> None:
    """Byte by byte too."""
    raw = head(ends=False) + more(ends=True) + DataFrame(1, bytes(300)).serialize()

    assert cut_frames(*[raw[at : at + 1] for at in range(len(raw))]) == cut_frames(raw)


def test_header_block_comes_out_as_one() -> None:
    """Not before its end."""
    pieces = [head(ends=False), more(ends=False), more(ends=True)]

    assert cut_frames(*pieces[:2]) == []
    (frame,) = cut_frames(*pieces)

    assert frame.whole == b"".join(pieces)
    assert frame.kind == Kind.HEADERS


def test_end_of_stream_stands_in_the_first_frame_of_a_block() -> None:
    """The flag has no meaning in the others. Source: RFC 9113 section 6.2."""
    first = HeadersFrame(1, b"a", flags=["END_STREAM"]).serialize()

    (frame,) = cut_frames(first, more(ends=True))

    assert frame.flags & h2_frames.Flag.END_STREAM


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x00\x40\x01\x00\x00\x00\x00\x00\x01", ErrorCode.FRAME_SIZE_ERROR),
        (b"\xff\xff\xff\x01\x00\x00\x00\x00\x01", ErrorCode.FRAME_SIZE_ERROR),
        (more(ends=True), ErrorCode.PROTOCOL_ERROR),
        (head(ends=False) + more(ends=True, stream_id=3), ErrorCode.PROTOCOL_ERROR),
        (head(ends=False) + head(ends=True, stream_id=3), ErrorCode.PROTOCOL_ERROR),
        (head(ends=False) + DataFrame(1, b"").serialize(), ErrorCode.PROTOCOL_ERROR),
        (head(ends=False) + b"\x00\x00\x00\x42" + bytes(5), ErrorCode.PROTOCOL_ERROR),
        (head(ends=False) + more(ends=False) * MAX_BLOCK_FRAMES, ErrorCode.ENHANCE_YOUR_CALM),
        (
            head(ends=False, data=bytes(MAX_FRAME_BYTES))
            + more(ends=False, data=bytes(MAX_FRAME_BYTES)) * (MAX_BLOCK_BYTES // MAX_FRAME_BYTES),
            ErrorCode.ENHANCE_YOUR_CALM,
        ),
    ],
)
def test_broken_framing_ends_the_connection(data: bytes, code: ErrorCode) -> None:
    """As soon as it shows: a frame that is too long is not waited for."""
    with pytest.raises(ConnectionFault) as caught:
        cut_frames(data)

    assert caught.value.code == code


@pytest.mark.parametrize(
    "start",
    [
        b"GET / HTTP/1.1\r\n",
        PREFACE[:-1] + b"x",
        PREFACE + DataFrame(1, b"").serialize(),
        PREFACE + SettingsFrame(0, flags=["ACK"]).serialize(),
    ],
)
def test_preface_is_told_from_anything_else(start: bytes) -> None:
    """Its settings included. Source: RFC 9113 section 3.4."""
    splitter = FrameSplitter()
    splitter.feed(start)

    with pytest.raises(ConnectionFault) as caught:
        splitter.next_frame()

    assert caught.value.code == ErrorCode.PROTOCOL_ERROR


def test_client_owes_its_preface_and_the_rest_of_a_block() -> None:
    """What has begun must go on in time."""
    splitter = FrameSplitter()
    owed = []

    for data in (b"", PREFACE, SETTINGS, head(ends=False), more(ends=True)):
        splitter.feed(data)
        splitter.next_frame()
        owed.append(splitter.is_mid_head)

    assert owed == [True, True, False, True, False]


def test_goaway_is_one() -> None:
    """Another implementation reads it."""
    raw = encode_goaway(7, ErrorCode.ENHANCE_YOUR_CALM)

    frame, length = Frame.parse_frame_header(memoryview(raw[:9]))
    frame.parse_body(memoryview(raw[9:]))

    assert length == len(raw) - 9
    assert isinstance(frame, GoAwayFrame)
    assert (frame.last_stream_id, frame.error_code) == (7, 11)


@pytest.mark.parametrize(
    ("start", "speaks"),
    [
        (b"", None),
        (b"P", None),
        (PREFACE[:-1], None),
        (PREFACE, True),
        (PREFACE + b"x", True),
        (b"PO", False),
        (b"GET", False),
        (b"PRI * HTTP/2.0\r\n\r\nSX", False),
    ],
)
def test_first_bytes_tell_the_version(start: bytes, *, speaks: bool | None) -> None:
    """None as long as both are possible."""
    assert speaks_http2(start) is speaks
