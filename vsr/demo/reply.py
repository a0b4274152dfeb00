"""The answers of a demo model, in the forms that OpenAI clients read.

Source: OpenAI API reference, "Chat Completions", "Completions", "Embeddings", "Models", "Errors".
"""

import base64
import hashlib
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

import attrs
import msgspec

from vsr.codec.error_body import openai_error
from vsr.demo.faults import Fault
from vsr.demo.script import Answer, Script
from vsr.errors import InvalidRequest
from vsr.headers import HeaderLine, Headers

_CREATED: Final = 1_700_000_000
_DIMENSIONS: Final = 8
_TOO_MANY: Final = 429
_TOO_LARGE: Final = 413
_FIRST_SERVER_ERROR: Final = 500
_JSON: Final = (b"content-type", b"application/json")
_EVENT_STREAM: Final = (b"content-type", b"text/event-stream; charset=utf-8")


@attrs.frozen
class Seen:
    """One request as the server got it."""

    method: bytes
    target: bytes
    headers: Headers = attrs.field(repr=False)
    """Framing fields included."""
    body: bytes = attrs.field(repr=False)
    index: int
    """Position among all requests of this server, from 0."""
    is_complete: bool = True
    """False if the body was never read, or the client left within it."""

    @property
    def path(self) -> bytes:
        """Return the target without its query."""
        return self.target.partition(b"?")[0]


@attrs.frozen
class Reply:
    """One answer; `lines` holds no framing fields."""

    status: int
    lines: tuple[HeaderLine, ...]
    body: bytes = attrs.field(default=b"", repr=False)
    events: Iterator[bytes] | None = attrs.field(default=None, repr=False)
    """The pieces of a streamed body, read once; None for a buffered one."""
    shows_body: bool = True
    """False for HEAD: the fields describe a body that is not sent."""
    is_last: bool = False
    """Whether the connection ends with it, and says so."""

    def whole_body(self) -> bytes:
        """Return the body, its events taken together."""
        return self.body if self.events is None else b"".join(self.events)


class _Part(msgspec.Struct):
    text: str | None = None


class _Message(msgspec.Struct):
    role: str = ""
    content: str | list[_Part] | None = None

    def text(self) -> str:
        if isinstance(self.content, list):
            return " ".join(part.text for part in self.content if part.text)
        return self.content or ""


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class _Streamable(msgspec.Struct):
    stream: bool | None = None
    stream_options: _StreamOptions | None = None


class _ChatRequest(_Streamable):
    messages: list[_Message] = msgspec.field(default_factory=list)


_Input = str | list[str | int | list[int]]
"""One text, several, or the tokens of one or several."""


class _CompletionRequest(_Streamable):
    prompt: _Input = ""


class _EmbeddingRequest(msgspec.Struct):
    input: _Input = ""
    encoding_format: str | None = None


_Body = TypeVar("_Body")

_CHAT = msgspec.json.Decoder(_ChatRequest)
_COMPLETION = msgspec.json.Decoder(_CompletionRequest)
_EMBEDDING = msgspec.json.Decoder(_EmbeddingRequest)


def answer(seen: Seen, script: Script) -> Reply:
    """Return the answer to a request.

    Args:
        seen: the request.
        script: as `Script.for_call` settled it.
    """
    if script.fault is Fault.STATUS:
        reply = _error_status(script)
    elif script.fault is Fault.REFUSE_BODY:
        reply = error_reply(_TOO_LARGE, "The request body is too large.")
    else:
        try:
            reply = _route(seen)(seen, script)
        except InvalidRequest as error:
            reply = refusal(error)
    lines = (*reply.lines, (b"x-demo-model", script.model.encode()))
    return attrs.evolve(reply, lines=lines, shows_body=seen.method != b"HEAD")


def refusal(error: InvalidRequest) -> Reply:
    """Return the answer to a request that the server can't read."""
    return Reply(error.status, (_JSON,), openai_error(error))


def error_reply(status: int, message: str) -> Reply:
    """Return an answer in OpenAI's error form."""
    kind, code = "invalid_request_error", None
    if status == _TOO_MANY:
        kind = code = "rate_limit_exceeded"
    elif status >= _FIRST_SERVER_ERROR:
        kind = "server_error"
    error = {"message": message, "type": kind, "param": None, "code": code}
    return _json_reply({"error": error}, status)


def _error_status(script: Script) -> Reply:
    reply = error_reply(script.status, f"{script.model} was told to answer {script.status}.")
    if script.status != _TOO_MANY:
        return reply
    after_s = script.retry_after_s
    retry_after = () if after_s is None else ((b"retry-after", b"%d" % after_s),)
    return attrs.evolve(reply, lines=(*reply.lines, *retry_after))


def _chat(seen: Seen, script: Script) -> Reply:
    request = _decode(_CHAT, seen.body)
    texts = [message.text() for message in request.messages]
    asked = [message.text() for message in request.messages if message.role == "user"]
    written = script.answer(asked[-1] if asked else "")
    frame = _Frame(_id("chatcmpl", seen.body), "chat.completion", script.model)
    usage = _usage(texts, written)
    if request.stream:
        choices = _chat_deltas(written)
        return _stream(
            msgspec.structs.replace(frame, kind="chat.completion.chunk"), choices, usage, request
        )
    message = {"role": "assistant", "content": written.text(), "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return _json_reply({**frame.members(), "choices": [choice], "usage": usage})


def _chat_deltas(written: Answer) -> Iterator[dict[str, object]]:
    def choice(delta: dict[str, str], finish_reason: str | None = None) -> dict[str, object]:
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}

    yield choice({"role": "assistant", "content": ""})
    for piece in written.pieces():
        yield choice({"content": piece})
    yield choice({}, "stop")


def _completion(seen: Seen, script: Script) -> Reply:
    request = _decode(_COMPLETION, seen.body)
    prompts = _texts(request.prompt)
    written = script.answer(prompts[-1] if prompts else "")
    frame = _Frame(_id("cmpl", seen.body), "text_completion", script.model)
    usage = _usage(prompts, written)
    if request.stream:
        return _stream(frame, _text_choices(written), usage, request)
    choice = _text_choice(written.text(), "stop")
    return _json_reply({**frame.members(), "choices": [choice], "usage": usage})


def _text_choices(written: Answer) -> Iterator[dict[str, object]]:
    for piece in written.pieces():
        yield _text_choice(piece)
    yield _text_choice("", "stop")


def _text_choice(text: str, finish_reason: str | None = None) -> dict[str, object]:
    return {"index": 0, "text": text, "logprobs": None, "finish_reason": finish_reason}


def _embeddings(seen: Seen, script: Script) -> Reply:
    request = _decode(_EMBEDDING, seen.body)
    texts = _texts(request.input)
    vectors = [_vector(text) for text in texts]
    as_base64 = request.encoding_format == "base64"
    rows = [
        {"object": "embedding", "index": at, "embedding": _packed(each) if as_base64 else each}
        for at, each in enumerate(vectors)
    ]
    tokens = _count_tokens(texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return _json_reply({"object": "list", "data": rows, "model": script.model, "usage": usage})


def _models(_seen: Seen, script: Script) -> Reply:
    card = {"id": script.model, "object": "model", "created": _CREATED, "owned_by": "demo"}
    return _json_reply({"object": "list", "data": [card]})


def _health(_seen: Seen, _script: Script) -> Reply:
    return _json_reply({"status": "ok"})


def _echo(seen: Seen, script: Script) -> Reply:
    """Return what arrived, so that a client sees what a backend gets."""
    echo: dict[str, object] = {
        "model": script.model,
        "method": seen.method.decode("latin-1"),
        "path": seen.target.decode("latin-1"),
        "headers": [(n.decode("latin-1"), v.decode("latin-1")) for n, v in seen.headers],
        "body_bytes": len(seen.body),
        "body_sha256": hashlib.sha256(seen.body).hexdigest(),
    }
    return _json_reply(echo)


_ROUTES: Mapping[tuple[bytes, bytes], Callable[[Seen, Script], Reply]] = {
    (b"POST", b"/v1/chat/completions"): _chat,
    (b"POST", b"/v1/completions"): _completion,
    (b"POST", b"/v1/embeddings"): _embeddings,
    (b"GET", b"/v1/models"): _models,
    (b"GET", b"/health"): _health,
}


def _route(seen: Seen) -> Callable[[Seen, Script], Reply]:
    """Return what answers; completions are there under any base path, as at a provider's."""
    if seen.method == b"POST" and seen.path.endswith(b"/chat/completions"):
        return _chat
    return _ROUTES.get((seen.method, seen.path), _echo)


class _Frame(msgspec.Struct, frozen=True):
    """The members that all objects of one answer share."""

    id: str
    kind: str
    model: str

    def members(self) -> dict[str, object]:
        return {"id": self.id, "object": self.kind, "created": _CREATED, "model": self.model}


def _stream(
    frame: _Frame,
    choices: Iterator[dict[str, object]],
    usage: dict[str, int],
    request: _Streamable,
) -> Reply:
    tells_usage = bool(request.stream_options and request.stream_options.include_usage)

    def events() -> Iterator[bytes]:
        # A stream that ends in usage says null before. Source: OpenAI, "stream_options".
        shared = {**frame.members(), **({"usage": None} if tells_usage else {})}
        for choice in choices:
            yield _event({**shared, "choices": [choice]})
        if tells_usage:
            yield _event({**shared, "choices": [], "usage": usage})
        yield b"data: [DONE]\n\n"

    lines = (_EVENT_STREAM, (b"cache-control", b"no-cache"))
    return Reply(200, lines, events=events())


def _event(members: dict[str, object]) -> bytes:
    return b"data: %b\n\n" % msgspec.json.encode(members)


def _json_reply(members: Mapping[str, object], status: int = 200) -> Reply:
    return Reply(status, (_JSON,), msgspec.json.encode(members))


def _decode(decoder: "msgspec.json.Decoder[_Body]", body: bytes) -> _Body:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidRequest("the request body is not what this endpoint takes") from error


def _texts(given: _Input) -> list[str]:
    if isinstance(given, str):
        return [given]
    if given and all(isinstance(item, int) for item in given):
        return [" ".join(str(item) for item in given)]
    return [item if isinstance(item, str) else str(item) for item in given]


def _usage(texts: list[str], written: Answer) -> dict[str, int]:
    prompt = _count_tokens(texts)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written.tokens,
        "total_tokens": prompt + written.tokens,
    }


def _count_tokens(texts: list[str]) -> int:
    """Return one token per word, plus one per text for what models put around it."""
    return sum(len(text.split()) + 1 for text in texts)


def _id(prefix: str, body: bytes) -> str:
    return f"{prefix}-{hashlib.sha256(body).hexdigest()[:24]}"


def _vector(text: str) -> list[float]:
    """Return a vector with members from -1 to 1 that a float32 holds exactly."""
    digest = hashlib.sha256(text.encode()).digest()
    return [(byte - 128) / 128 for byte in digest[:_DIMENSIONS]]


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
