"""Answers in the forms of the OpenAI API, held against the official client's types."""

import base64
import hashlib
import json
import struct

import attrs
import pytest
from openai.pagination import SyncPage
from openai.types import Completion, CreateEmbeddingResponse, Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from vsr.demo.faults import Fault
from vsr.demo.reply import Reply, Seen, answer
from vsr.demo.script import Script
from vsr.headers import Headers

SCRIPT = Script(model="m1")
CHAT = b"/v1/chat/completions"


def _post(target: bytes, body: dict[str, object], script: Script = SCRIPT) -> Reply:
    return answer(Seen(b"POST", target, Headers(), json.dumps(body).encode(), index=0), script)


def _ask_chat(content: object, **members: object) -> Reply:
    return _post(CHAT, {"model": "x", "messages": [{"role": "user", "content": content}]} | members)


def _events(reply: Reply) -> list[str]:
    assert reply.events is not None
    text = b"".join(reply.events).decode()
    assert text.endswith("\n\n")
    events = text[:-2].split("\n\n")
    assert all(event.startswith("data: ") for event in events)
    return [event.removeprefix("data: ") for event in events]


def test_chat_is_a_whole_completion() -> None:
    """The official type accepts it, with text, usage and finish reason."""
    reply = _ask_chat("Hello there")

    completion = ChatCompletion.model_validate_json(reply.body)
    assert reply.status == 200
    assert reply.lines == ((b"content-type", b"application/json"), (b"x-demo-model", b"m1"))
    assert completion.model == "m1"
    assert completion.choices[0].message.content == "m1 says: Hello there"
    assert completion.choices[0].finish_reason == "stop"
    assert completion.usage is not None
    assert attrs.astuple(_Usage.of(completion.usage)) == (3, 4, 7)


@attrs.frozen
class _Usage:
    prompt: int
    completion: int
    total: int

    @classmethod
    def of(cls, usage: object) -> "_Usage":
        names = ("prompt_tokens", "completion_tokens", "total_tokens")
        return cls(*(getattr(usage, name) for name in names))


def test_chat_answers_the_same_request_alike() -> None:
    """Byte for byte, and another request gets another id."""
    first, again, other = _ask_chat("one"), _ask_chat("one"), _ask_chat("two")

    assert first == again
    assert json.loads(first.body)["id"] != json.loads(other.body)["id"]


def test_chat_echoes_the_last_user_message() -> None:
    """Parts are joined; what follows from other roles does not matter."""
    parts = [
        {"type": "text", "text": "second"},
        {"type": "image_url", "image_url": {"url": "data:"}},
        {"type": "text", "text": "part"},
    ]
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "first"},
        {"role": "user", "content": parts},
        {"role": "assistant", "content": None, "tool_calls": []},
    ]

    reply = _post(CHAT, {"messages": messages})

    assert "m1 says: second part" in reply.body.decode()


def test_chat_stream_carries_the_same_text_in_pieces() -> None:
    """Role first, one piece per event, the finish reason last, then the end mark."""
    reply = _ask_chat("Hello there", stream=True)

    *events, done = _events(reply)
    chunks = [ChatCompletionChunk.model_validate_json(event) for event in events]
    assert reply.lines[0] == (b"content-type", b"text/event-stream; charset=utf-8")
    assert done == "[DONE]"
    assert chunks[0].choices[0].delta.role == "assistant"
    texts = [chunk.choices[0].delta.content for chunk in chunks[1:-1]]
    assert texts == ["m1", " says:", " Hello", " there"]
    assert [chunk.choices[0].finish_reason for chunk in chunks[-2:]] == [None, "stop"]
    assert len({chunk.id for chunk in chunks}) == 1
    assert '"usage"' not in "".join(events)


def test_chat_stream_ends_in_usage_when_asked_to() -> None:
    """The usage chunk has no choices, and those before say null."""
    reply = _ask_chat("Hello there", stream=True, stream_options={"include_usage": True})

    *events, last, _ = _events(reply)
    usage = ChatCompletionChunk.model_validate_json(last)
    assert usage.choices == []
    assert attrs.astuple(_Usage.of(usage.usage)) == (3, 4, 7)
    assert all(json.loads(event)["usage"] is None for event in events)


def test_completion_takes_texts_and_tokens() -> None:
    """The legacy endpoint's prompt has four forms."""
    bodies = [_post(b"/v1/completions", {"prompt": p}).body for p in ("a b", ["x", "a b"])]
    tokens = [_post(b"/v1/completions", {"prompt": p}).body for p in ([1, 2], [[3], [1, 2]])]

    texts = [Completion.model_validate_json(body).choices[0].text for body in bodies + tokens]
    assert texts == ["m1 says: a b", "m1 says: a b", "m1 says: 1 2", "m1 says: [1, 2]"]


def test_completion_streams() -> None:
    """Same text, in pieces, with a finish reason at the end."""
    reply = _post(b"/v1/completions", {"prompt": "a b", "stream": True})

    *events, done = _events(reply)
    choices = [json.loads(event)["choices"][0] for event in events]
    assert done == "[DONE]"
    assert "".join(choice["text"] for choice in choices) == "m1 says: a b"
    assert [choice["finish_reason"] for choice in choices] == [None, None, None, None, "stop"]


def test_embeddings_are_alike_in_both_encodings() -> None:
    """The official client asks for base64 and must get the same numbers."""
    plain = _post(b"/v1/embeddings", {"input": ["one", "two"]})
    packed = _post(b"/v1/embeddings", {"input": ["one", "two"], "encoding_format": "base64"})

    vectors = [
        row.embedding for row in CreateEmbeddingResponse.model_validate_json(plain.body).data
    ]
    encoded = [row["embedding"] for row in json.loads(packed.body)["data"]]
    assert vectors[0] != vectors[1]
    assert len(vectors[0]) == 8
    assert [list(struct.unpack("<8f", base64.b64decode(each))) for each in encoded] == vectors


def test_models_lists_the_one_model() -> None:
    """The official page type accepts it."""
    reply = answer(Seen(b"GET", b"/v1/models", Headers(), b"", index=0), SCRIPT)

    page = SyncPage[Model].model_validate_json(reply.body)
    assert [model.id for model in page.data] == ["m1"]


def test_other_requests_are_echoed() -> None:
    """A client sees what the backend got: method, target with query, fields in order, body."""
    headers = Headers([(b"x-one", b"1"), (b"x-one", b"\xe9"), (b"host", b"h")])

    reply = answer(Seen(b"PUT", b"/any?q=1", headers, b"abc", index=0), SCRIPT)

    assert json.loads(reply.body) == {
        "model": "m1",
        "method": "PUT",
        "path": "/any?q=1",
        "headers": [["x-one", "1"], ["x-one", "é"], ["host", "h"]],
        "body_bytes": 3,
        "body_sha256": hashlib.sha256(b"abc").hexdigest(),
    }


@pytest.mark.parametrize(
    ("status", "kind", "retry_after"),
    [
        (400, "invalid_request_error", None),
        (429, "rate_limit_exceeded", b"7"),
        (503, "server_error", None),
    ],
)
def test_status_fault_has_an_openai_error_body(
    status: int, kind: str, retry_after: bytes | None
) -> None:
    """All four members; only 429 says when to come back."""
    script = attrs.evolve(SCRIPT, fault=Fault.STATUS, status=status, retry_after_s=7)

    reply = _post(CHAT, {}, script)

    error = json.loads(reply.body)["error"]
    assert reply.status == status
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == kind
    assert dict(reply.lines).get(b"retry-after") == retry_after


@pytest.mark.parametrize("target", [CHAT, b"/v1/completions", b"/v1/embeddings"])
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"messages": 1, "prompt": 1, "input": 1}'])
def test_unreadable_bodies_are_refused(target: bytes, body: bytes) -> None:
    """A body that is not what the endpoint takes is the client's fault, in OpenAI's form."""
    reply = answer(Seen(b"POST", target, Headers(), body, index=0), SCRIPT)

    assert reply.status == 400
    assert json.loads(reply.body)["error"]["type"] == "invalid_request_error"
