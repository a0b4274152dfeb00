"""The events of a streamed chat completion that is held whole."""

import re
from collections.abc import Iterator, Sequence

import msgspec

from vsr.codec.sse import SseDecoder, SseEvent

DONE = b"[DONE]"
_BREAK = re.compile(rb"\r\n|\n|\r")
_ANY = msgspec.json.Decoder(object)


class StreamEvent(msgspec.Struct, gc=False):
    """One block of a stream."""

    other_lines: Sequence[bytes]
    """Those that are no data, as received."""
    payloads: Sequence[bytes]


def read_stream(body: bytes) -> Iterator[StreamEvent]:
    """Yield the blocks of a stream, the last one also if nothing ends it.

    Some backends part events by a single line break. So several data lines are one payload only
    if that is JSON, else one payload each.

    Source: looper-algorithms 3.3; WHATWG HTML, 9.2.6 "Interpreting an event stream".
    """
    decoder = SseDecoder(max_event_bytes=len(body) + 2)
    for event in (*decoder.feed(body), *decoder.feed(b"\n\n")):
        yield StreamEvent(_other_lines(event), _split(event.data))


def read_payloads(body: bytes) -> list[bytes]:
    """Return the data of a stream's events, the closing `[DONE]` included."""
    return [payload for event in read_stream(body) for payload in event.payloads]


def _other_lines(event: SseEvent) -> list[bytes]:
    lines = _BREAK.split(event.raw)
    return [line for line in lines if line and line.partition(b":")[0] != b"data"]


def _split(data: bytes | None) -> list[bytes]:
    if data is None:
        return []
    if b"\n" not in data:
        return [data]
    try:
        _ANY.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return data.split(b"\n")
    return [data.strip(b"\n")]
