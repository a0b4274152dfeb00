"""The events of a streamed chat completion that is held whole."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vsr.codec.chat_stream import read_payloads, read_stream


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_payloads_of_every_way_to_end_lines(line_end: bytes) -> None:
    """A space behind the colon may be missing, and nothing need end the last event."""
    body = line_end.join([b": hi", b"data:{}", b"", b"event: x", b"data: [DONE]"])

    events = list(read_stream(body))

    assert [payload for event in events for payload in event.payloads] == [b"{}", b"[DONE]"]
    assert [line for event in events for line in event.other_lines] == [b": hi", b"event: x"]


def test_lines_of_one_block_are_one_payload_only_if_that_is_json() -> None:
    """Some backends part events by one line break; others spread one event over lines."""
    assert read_payloads(b'data: {"a":1}\ndata: {"b":2}\ndata: [DONE]\n\n') == [
        b'{"a":1}',
        b'{"b":2}',
        b"[DONE]",
    ]
    assert read_payloads(b'data: {\ndata: "a":1}\n\n') == [b'{\n"a":1}']


def test_an_event_may_be_as_long_as_the_body() -> None:
    """The body is bounded where it is read, so no event of it is too long."""
    payload = b'"' + b"x" * (2 << 20) + b'"'

    assert read_payloads(b"data: " + payload) == [payload]


@settings(max_examples=50)
@given(
    st.lists(st.sampled_from([b"data: {}", b"data:", b"\r", b"\n", b": c", b"\xff"]), max_size=9)
)
@example([b"data: {}", b"\n", b"data:"])
def test_any_bytes_give_their_data_lines(pieces: list[bytes]) -> None:
    """No stream is refused, and no payload has a line break of the stream around it."""
    for payload in read_payloads(b"".join(pieces)):
        assert payload.strip(b"\r\n") == payload
