"""The answer of a request graph as an event stream."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from vsr.codec.backend_json import first_choice, list_at, object_at, object_in
from vsr.codec.chat_reply import ToolCall
from vsr.codec.chat_stream import DONE, read_stream
from vsr.codec.reply_forms import Answer, read_completion
from vsr.codec.sse import encode_event
from vsr.errors import GraphFailed

PIECE_CHARACTERS = 50
"""Of a content chunk, in most graphs."""

_PIECE_BYTES = 50  # of one choice among several
_CONTINUATION = 0b10  # upper bits of a UTF-8 byte that begins no character

CallDelta = Mapping[str, object]
"""A tool call as an entry of a chunk's `tool_calls`."""


def stream_content(answer: Answer, *, piece_characters: int | None = PIECE_CHARACTERS) -> bytes:
    """Return the stream of the one content, cut into pieces; `None` sends it whole."""
    content = "".join(answer.contents[:1])
    size = piece_characters or max(len(content), 1)
    pieces = (content[at : at + size] for at in range(0, len(content), size))
    return _stream(answer, ({"content": piece} for piece in pieces), "stop")


def stream_calls(answer: Answer, calls: Sequence[CallDelta]) -> bytes:
    """Return the stream of tool calls, all of them in one chunk; contents are not sent."""
    return _stream(answer, [{"tool_calls": list(calls)}], "tool_calls")


def stream_choices(answer: Answer) -> bytes:
    """Return the stream of several contents side by side, one choice each.

    Each chunk has every choice, with at most 50 bytes of its text and never a part of a character;
    one that is through has an empty text.
    """
    columns = [_cut(content) for content in answer.contents]
    rows = max((len(column) for column in columns), default=0)
    events = [_chunk(answer, _choices([{"role": "assistant"}] * len(columns)), answer.extra)]
    for row in range(rows):
        texts = [column[row] if row < len(column) else "" for column in columns]
        events.append(_chunk(answer, _choices([{"content": text} for text in texts])))
    ends = [{**choice, "finish_reason": "stop"} for choice in _choices([{}] * len(columns))]
    return b"".join((*events, _chunk(answer, ends), *_ending(answer)))


def pass_stream(answer: Answer, body: bytes) -> bytes:
    """Return a backend's stream with its usage taken out and the answer's at its end, if shown.

    Chunks keep their id, model and time of creation. One that has a `usage` is written without
    it, or left out if it has no choices. What cannot be read is passed on. The usage chunk has the
    last id and time that were seen; the answer's stand in for what was not.

    Source: looper-algorithms 6.8.
    """
    pieces: list[bytes] = []
    last: dict[str, msgspec.Raw] = {}
    for event in read_stream(body):
        pieces += (line + b"\n" for line in event.other_lines)
        for payload in event.payloads:
            if payload.strip() == DONE:
                continue
            members = object_in(payload)
            last.update({name: members[name] for name in ("id", "created") if name in members})
            if "usage" not in members:
                pieces.append(encode_event(payload))
            elif list_at(members, "choices"):
                del members["usage"]
                pieces.append(encode_event(msgspec.json.encode(members)))
    return b"".join((*pieces, *_ending(answer, last)))


def received_calls(body: bytes) -> list[CallDelta]:
    """Return all tool calls of a completion's first choice, each as it came plus its index.

    Raises:
        GraphFailed: there is none, or only one in the older form, which has no chunk of this kind.
    """
    message = object_at(first_choice(read_completion(body)), "message")
    calls = list_at(message, "tool_calls")
    if not calls:
        raise GraphFailed("the reply has no tool calls that could be streamed")
    return [{**object_in(call), "index": index} for index, call in enumerate(calls)]


def first_call(call: ToolCall, *, fresh_id: str) -> list[CallDelta]:
    """Return one tool call; `fresh_id` replaces a blank id, `{}` blank arguments."""
    arguments = call.arguments if call.arguments.strip() else "{}"
    return [
        {
            "index": 0,
            "id": call.id if call.id.strip() else fresh_id,
            "type": "function",
            "function": {"name": call.name, "arguments": arguments},
        }
    ]


def _stream(answer: Answer, deltas: Iterator[object] | Sequence[object], reason: str) -> bytes:
    events = [_chunk(answer, [_choice({"role": "assistant"}, None)], answer.extra)]
    events += (_chunk(answer, [_choice(delta, None)]) for delta in deltas)
    return b"".join((*events, _chunk(answer, [_choice({}, reason)]), *_ending(answer)))


def _choice(delta: object, finish_reason: str | None) -> dict[str, object]:
    return {"index": 0, "delta": delta, "finish_reason": finish_reason}


def _choices(deltas: Sequence[object]) -> list[dict[str, object]]:
    return [{"index": index, "delta": delta} for index, delta in enumerate(deltas)]


def _ending(answer: Answer, last: Mapping[str, msgspec.Raw] | None = None) -> Iterator[bytes]:
    """Yield the usage chunk, if there is one, and what closes the stream."""
    if answer.shows_usage:
        yield _chunk(answer, [], {**(last or {}), "usage": answer.usage})
    yield encode_event(DONE)


def _chunk(
    answer: Answer, choices: Sequence[object], more: Mapping[str, object] | None = None
) -> bytes:
    members: dict[str, object] = {
        "id": answer.id,
        "object": "chat.completion.chunk",
        "created": answer.created,
        "model": answer.model,
        "choices": choices,
    }
    return encode_event(msgspec.json.encode({**members, **(more or {})}))


def _cut(text: str) -> list[str]:
    """Cut a text into pieces of at most 50 bytes."""
    data = text.encode()
    pieces = []
    start = 0
    while start < len(data):
        end = start + _PIECE_BYTES
        while end < len(data) and data[end] >> 6 == _CONTINUATION:
            end -= 1
        pieces.append(data[start:end].decode())
        start = end
    return pieces
