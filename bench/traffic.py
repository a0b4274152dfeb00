"""The traffic of the benchmark: one chat request, its buffered reply, the events of a stream."""

import re

CHAT_PATH = "/v1/chat/completions"
REQUEST_BYTES = 200
REPLY_BYTES = 600
CHUNK_INTERVAL_MS = 20

# "refactor" is what the Router's keyword signal looks for (peers.py), so a decision matches.
_QUESTION = "Please refactor this for me: "
_ANSWER = "Certainly, here is what it could look like. "
_CREATED = 1_700_000_000

_STREAM_FIELDS = re.compile(rb'"stream":\s*true')
_MAX_TOKENS = re.compile(rb'"max_tokens":\s*(\d+)')
_SENT_AT = re.compile(rb'"content":\s*"(\d{20})"')


def chat_request(chunks: int = 0) -> bytes:
    """Return a request of `REQUEST_BYTES` for `chunks` streamed events, or one reply if 0."""
    options = f'"max_tokens":{chunks},"stream":true' if chunks else '"max_tokens":64'
    head = f'{{"model":"auto",{options},"messages":[{{"role":"user","content":"'
    return _padded(head, _QUESTION, '"}]}', REQUEST_BYTES)


def chat_reply() -> bytes:
    """Return a chat completion of `REPLY_BYTES`."""
    head = (
        f'{{"id":"chatcmpl-bench","object":"chat.completion","created":{_CREATED},'
        '"model":"bench/small","choices":[{"index":0,"message":{"role":"assistant","content":"'
    )
    tail = (
        '"},"finish_reason":"stop"}],'
        '"usage":{"prompt_tokens":20,"completion_tokens":64,"total_tokens":84}}'
    )
    return _padded(head, _ANSWER, tail, REPLY_BYTES)


def requested_chunks(body: bytes) -> int:
    """Return how many events the request in `body` asks for; 0 means a buffered reply."""
    if not _STREAM_FIELDS.search(body):
        return 0
    match = _MAX_TOKENS.search(body)
    return int(match[1]) if match else 1


def stream_event(sent_at_ns: int) -> bytes:
    """Return a chat completion chunk whose content is its own monotonic time of departure."""
    return (
        b'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":%d,'
        b'"model":"bench/small","choices":[{"index":0,"delta":{"content":"%020d"},'
        b'"finish_reason":null}]}\n\n' % (_CREATED, sent_at_ns)
    )


def event_sent_at_ns(event: bytes) -> int | None:
    """Return the time of departure inside `event`, or None for any other event."""
    match = _SENT_AT.search(event)
    return int(match[1]) if match else None


def _padded(head: str, filler: str, tail: str, size_bytes: int) -> bytes:
    room = size_bytes - len(head) - len(tail)
    return f"{head}{(filler * size_bytes)[:room]}{tail}".encode("ascii")
