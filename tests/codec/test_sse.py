"""Server-sent events: blocks, events and their bytes."""

from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vsr.codec.sse import (
    SseDecoder,
    SseEvent,
    SseEventTooLarge,
    SseSplitter,
    encode_event,
    leading_breaks,
    parse_event,
    replace_data,
)

STREAMS = st.lists(
    st.sampled_from(
        [
            b"data: x",
            b"data:",
            b"data",
            b"event: e",
            b"id: 1",
            b"retry: 5",
            b": c",
            b"oops",
            "data: é😀".encode(),
            b"\n",
            b"\r",
            b"\r\n",
            b"\n\n",
            b"\r\n\r\n",
            b"\xef\xbb\xbf",
        ]
    ),
    max_size=14,
).map(b"".join)


def split_at(stream: bytes, cuts: list[int]) -> list[bytes]:
    """Return the stream in pieces cut at those places."""
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    return [stream[start:end] for start, end in pairwise(places)]


def decode(pieces: list[bytes]) -> tuple[list[SseEvent], bytes]:
    """Return the events of a stream and what its end cut off."""
    decoder = SseDecoder()
    events = [event for piece in pieces for event in decoder.feed(piece)]
    return events, decoder.close()


def shown(events: list[SseEvent]) -> list[tuple[str, bytes]]:
    """Return type and data of those that are events."""
    return [(event.event, event.data) for event in events if event.data is not None]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: YHOO\ndata: +2\ndata: 10\n\n", [("", b"YHOO\n+2\n10")]),
        (
            b"data: first\nid: 1\n\ndata:second\nid\n\ndata:  third",
            [("", b"first"), ("", b"second")],
        ),
        (b"data\n\ndata\ndata\n\ndata:", [("", b""), ("", b"\n")]),
        (b"data:test\n\ndata: test\n\n", [("", b"test"), ("", b"test")]),
        (b": comment\n\ndata: x\n\n", [("", b"x")]),
        (b"event: add\ndata: 1\n\n", [("add", b"1")]),
        (b"event: add\n\ndata: 1\n\n", [("", b"1")]),
        (b"data: x\r\n\r\ndata: y\r\n\r\n", [("", b"x"), ("", b"y")]),
        (b"data: x\r\rdata: y\r\r", [("", b"x"), ("", b"y")]),
        (b"data: x\r\n\ndata: y\n\r\n", [("", b"x"), ("", b"y")]),
        (b"data: x\n\rdata: y\r\r\n", [("", b"x"), ("", b"y")]),
        (b"\xef\xbb\xbfdata: x\n\n\xef\xbb\xbfdata: y\n\n", [("", b"x")]),
        (b"\n\n\ndata: x\n\n", [("", b"x")]),
        (b"Data: x\n data: y\n\n", []),
        (b"data: a:b\n\n", [("", b"a:b")]),
        (b"data: x\n", []),
    ],
)
def test_events_are_those_of_the_standard(stream: bytes, expected: list[tuple[str, bytes]]) -> None:
    """The first four are the standard's own examples."""
    events, rest = decode([stream])

    assert shown(events) == expected
    assert b"".join(event.raw for event in events) + rest == stream


def test_other_fields_are_read() -> None:
    """An id with a NUL and a retry that is no number are ignored."""
    event = parse_event(b"id: 7\nid: a\0b\nretry: 300\nretry: -1\nretry: 1s\n: x\n\n")

    assert (event.event_id, event.retry_ms, event.data) == ("7", 300, None)


@given(stream=STREAMS, cuts=st.lists(st.integers(0, 200), max_size=8))
@example(stream=b"data: x\n\rdata: y\r\n\r\n", cuts=[9])
@example(stream=b"data: x\r\n\r\ndata: y\r\r\n", cuts=[10, 11])
def test_any_split_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    """Where the bytes are cut changes no event, and no byte is lost."""
    whole = decode([stream])

    split = decode(split_at(stream, cuts))

    assert split == whole
    assert b"".join(event.raw for event in split[0]) + split[1] == stream


def test_event_ended_by_two_cr_does_not_wait() -> None:
    """A stream that only uses CR gets each event at once."""
    assert shown(SseDecoder().feed(b"data: x\r\r")) == [("", b"x")]


@given(
    data=st.lists(st.sampled_from([b"a", b" ", b":", "é".encode(), b"\n"]), max_size=6),
    event=st.sampled_from(["", "message_start"]),
)
def test_encoded_event_is_read_back(data: list[bytes], event: str) -> None:
    """Data with line breaks takes a line for each."""
    text = b"".join(data)

    events, rest = decode([encode_event(text, event=event)])

    assert shown(events) == [(event, text)]
    assert rest == b""


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_replaced_data_leaves_other_lines(end: bytes) -> None:
    """Comments, names and line ends stay; the new data stands where the old began."""
    raw = end.join([b"\xef\xbb\xbf: c", b"data: 1", b"event: e", b"data: 2", b"", b""])

    replaced = replace_data(raw, b"x\ny", is_first=True)

    assert replaced == end.join([b"\xef\xbb\xbf: c", b"data: x", b"data: y", b"event: e", b"", b""])


def test_leading_breaks_are_the_empty_lines_in_front() -> None:
    """They belong to no event."""
    assert leading_breaks(b"\r\n\ndata: x\n\n") == b"\r\n\n"
    assert leading_breaks(b"data: x\n\n") == b""


def test_decoder_refuses_an_event_over_the_bound() -> None:
    """Also before its end has come; an event of just the bound is read."""
    assert shown(SseDecoder(10).feed(b"data: 12\n\n")) == [("", b"12")]
    with pytest.raises(SseEventTooLarge):
        SseDecoder(10).feed(b"data: 123\n\n")
    with pytest.raises(SseEventTooLarge):
        SseDecoder(10).feed(b"data: 123456789")


@given(
    sizes=st.lists(st.integers(0, 30), max_size=5),
    end=st.sampled_from([b"\n\n", b"\r\n\r\n"]),
    cuts=st.lists(st.integers(0, 300), max_size=8),
)
def test_splitter_lets_an_event_over_the_bound_through_in_pieces(
    sizes: list[int], end: bytes, cuts: list[int]
) -> None:
    """The same blocks are whole in any split, little is held, and every byte comes out."""
    blocks = [b"data: " + b"x" * size + end for size in sizes]
    stream = b"".join(blocks)
    splitter = SseSplitter(20)
    found = []

    for piece in split_at(stream, cuts):
        found += splitter.feed(piece)
        assert len(splitter._pending) <= 20

    assert b"".join(block.raw for block in found) + splitter.close() == stream
    whole = [block.raw for block in found if block.is_whole]
    assert whole == [block for block in blocks if len(block) <= 20]
    assert splitter.is_between_blocks
