"""A Router between two clients' protocols and two backends', one of each protocol."""

import json
from collections.abc import Sequence
from typing import Any, cast

import attrs
import msgspec
import trio

from tests.codec.stream_folding import anthropic_stream, chat_stream
from tests.demo.raw_client import CHAT, Got, chat_body
from tests.engine.stepped_backend import LAST_CHUNK, SteppedBackend, chunk
from tests.fakes.router import RunningRouter, as_snapshot, document_of, model_of, start_router
from vsr.engine.extensions import Extensions
from vsr.headers import HeaderLine
from vsr.network.memory import MemoryNetwork
from vsr.resources.plugin import Plugin
from vsr.resources.snapshot import Snapshot
from vsr.routing.ports import Runtime

MESSAGES = b"/v1/messages"
RELIABILITY = "{idle_timeout: 5s, total_timeout: 30s}"
MATCH_ALL = "{decisions: [{name: all, modelRefs: [{model: alpha}]}]}"

COMPLETION = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "alpha-real",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello you"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }
).encode()
MESSAGE = json.dumps(
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-real",
        "content": [{"type": "text", "text": "Hello you"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 7, "output_tokens": 3},
    }
).encode()


def _chat_chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "alpha-real",
        "choices": [choice],
    }


USAGE_CHUNK = _chat_chunk({}) | {
    "choices": [],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}
CHAT_PIECES = [
    chat_stream(_chat_chunk({"role": "assistant", "content": "Hello"})),
    chat_stream(_chat_chunk({"content": " y\u00f6u \u6f22 \U0001f600"})),
    chat_stream(_chat_chunk({}, "stop")),
    chat_stream(USAGE_CHUNK),
    chat_stream("[DONE]"),
]
"""A streamed completion, one event each; the usage is what the backend was made to report."""
MESSAGE_PIECES = [
    anthropic_stream(event)
    for event in (
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "claude-real",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {"input_tokens": 7, "output_tokens": 1},
            },
        },
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "text", "text": ""},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "text_delta", "text": "Hello y\u00f6u \u6f22 \U0001f600"},
        },
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 3},
        },
        {"type": "message_stop"},
    )
]


@attrs.frozen
class Pair:
    """A client's protocol and a backend's."""

    target: bytes
    model: str

    @property
    def is_anthropic_client(self) -> bool:
        """Return whether the client speaks Anthropic's protocol."""
        return self.target == MESSAGES

    @property
    def is_translated(self) -> bool:
        """Return whether the two differ."""
        return self.is_anthropic_client != (self.model == "claude")

    @property
    def answer(self) -> bytes:
        """Return a whole answer as the backend gives it."""
        return MESSAGE if self.model == "claude" else COMPLETION

    @property
    def pieces(self) -> list[bytes]:
        """Return a streamed answer as the backend gives it."""
        return MESSAGE_PIECES if self.model == "claude" else CHAT_PIECES

    @property
    def begun(self) -> list[bytes]:
        """Return the beginning of a streamed answer, up to its text."""
        return self.pieces[: 3 if self.model == "claude" else 2]

    def body(self, text: str = "Hello there", **members: object) -> bytes:
        """Return a request as the client makes it."""
        request: dict[str, object] = {"model": self.model}
        if self.is_anthropic_client:
            request["max_tokens"] = 50
        return chat_body(text, **(request | members))


OPENAI = Pair(CHAT, "alpha")
ANTHROPIC = Pair(MESSAGES, "claude")
ANTHROPIC_TO_OPENAI = Pair(MESSAGES, "alpha")
OPENAI_TO_ANTHROPIC = Pair(CHAT, "claude")
PAIRS = [OPENAI, ANTHROPIC, ANTHROPIC_TO_OPENAI, OPENAI_TO_ANTHROPIC]


@attrs.define(eq=False)
class Wired:
    """The Router with its models `alpha`, which speaks OpenAI's protocol, and `claude`."""

    router: RunningRouter
    alpha: SteppedBackend
    claude: SteppedBackend

    def backend(self, pair: Pair) -> SteppedBackend:
        """Return the backend of a pair's model."""
        return self.claude if pair.model == "claude" else self.alpha

    async def ask(
        self, pair: Pair, body: bytes | None = None, *, lines: Sequence[HeaderLine] = ()
    ) -> Got:
        """Send one request as the pair's client."""
        sent = pair.body() if body is None else body
        return await self.router.ask(sent, target=pair.target, lines=lines)

    async def last_log(self) -> dict[str, Any]:
        """Return the last line of the access log."""
        return (await self.router.log())[-1]


def whole(status: int, body: bytes, *lines: HeaderLine) -> list[bytes]:
    """Return the steps of a whole answer, JSON unless a line says otherwise."""
    named = {name for name, _ in lines}
    fields = (
        [*lines] if b"content-type" in named else [(b"content-type", b"application/json"), *lines]
    )
    shown = b"".join(b"%b: %b\r\n" % line for line in fields)
    head = b"HTTP/1.1 %d Whatever\r\n%bcontent-length: %d\r\n\r\n" % (status, shown, len(body))
    return [head + body]


def chunked(status: int, *pieces: bytes, content_type: bytes = b"text/event-stream") -> list[bytes]:
    """Return the steps of a chunked answer, one per piece."""
    head = b"HTTP/1.1 %d Whatever\r\ncontent-type: %b\r\ntransfer-encoding: chunked\r\n\r\n"
    return [head % (status, content_type), *map(chunk, pieces), LAST_CHUNK]


def document(
    alpha_port: int,
    claude_port: int,
    *,
    routing: str = MATCH_ALL,
    more: str = "",
    listener: str = "",
) -> str:
    """Return the document of both models; `more` stands behind it, as YAML."""
    models = (
        model_of(alpha_port, "alpha", provider_model_id="alpha-real", reliability=RELIABILITY),
        model_of(
            claude_port,
            "claude",
            provider="anthropic-compatible",
            provider_model_id="claude-real",
            reliability=RELIABILITY,
        ),
    )
    return document_of(*models, routing=routing, listener=listener) + f"\n{more}\n"


async def wire(
    nursery: trio.Nursery,
    *,
    routing: str = MATCH_ALL,
    more: str = "",
    listener: str = "",
    plugins: Sequence[object] = (),
    extensions: Extensions | None = None,
    runtime: Runtime | None = None,
) -> Wired:
    """Start a Router whose backends answer `COMPLETION` and `MESSAGE`.

    Args:
        nursery: all of it lives there.
        routing: the document's block, in YAML's flow style.
        more: further blocks of the document.
        listener: further members of the listener, in YAML's flow style.
        plugins: resources that every decision gets besides its own.
        extensions: in place of what ships with the Router.
        runtime: answers learned signals.
    """
    network = MemoryNetwork()
    alpha = await SteppedBackend(network, whole(200, COMPLETION)).start(nursery)
    claude = await SteppedBackend(network, whole(200, MESSAGE)).start(nursery)
    text = document(alpha.port, claude.port, routing=routing, more=more, listener=listener)
    snapshot = with_plugins(as_snapshot(text), *plugins)
    router = await start_router(nursery, network, snapshot, extensions=extensions, runtime=runtime)
    return Wired(router, alpha, claude)


def with_plugins(snapshot: Snapshot, *resources: object) -> Snapshot:
    """Return `snapshot` with further plugins in every decision."""
    programs = tuple(
        msgspec.structs.replace(
            program,
            decisions=tuple(
                msgspec.structs.replace(
                    decision, plugins=cast("tuple[Plugin, ...]", (*decision.plugins, *resources))
                )
                for decision in program.decisions
            ),
        )
        for program in snapshot.programs
    )
    return msgspec.structs.replace(snapshot, programs=programs)
