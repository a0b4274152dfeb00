"""A Router whose decision is answered by an author's graph, and clients that bring tools."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import trio
import trio.testing

from tests.conformance.looper_reply import Response, reply_of
from tests.conformance.looper_server import ScriptedServer, SeenCall
from tests.demo.raw_client import CHAT
from tests.fakes.router import RunningRouter, start_router
from vsr.graph.suspend.memory import MemoryStore
from vsr.graph.suspend.run import SuspendedRun
from vsr.graph.suspend.settings import open_memory
from vsr.graph.suspend.store import SuspendStore
from vsr.http.h1_client import encode_request
from vsr.network.memory import MemoryNetwork
from vsr.resources.looper import StateStore

MODELS = ("a", "b", "c")
TOOLS = [{"type": "function", "function": {"name": "look"}}]
QUESTION = {"role": "user", "content": "the question"}
Message = dict[str, Any]
ONE_CALL = """
steps:
  - {id: answer, type: call, model: a, on_tool_calls: suspend}
  - {type: respond, from: $answer}
"""
DRAFTED = """
steps:
  - {id: draft, type: call, model: b}
  - {id: brief, type: transform, transformer: prompt, template: "Draft: {{ draft.content }}"}
  - {id: answer, type: call, model: a, request: $brief, on_tool_calls: suspend}
  - {type: respond, from: $answer}
"""


def asks(*ids: str, **more: object) -> dict[str, Any]:
    """Return a scripted reply that calls tools by these ids."""
    calls = [{"id": each, "name": "look", "arguments": "{}"} for each in ids]
    return {"content": None, "tool_calls": calls, "usage": [1, 1, 2], **more}


def says(content: str, **more: object) -> dict[str, Any]:
    """Return a scripted reply with a text."""
    return {"content": content, "usage": [1, 1, 2], **more}


@attrs.define(eq=False)
class Reply:
    """What a client got."""

    status: int
    body: Any
    content_type: bytes = b""

    @property
    def text(self) -> str:
        """Return the answer's text, or the error's."""
        if self.status != 200:
            return str(self.body["error"]["message"])
        return str(self.body["choices"][0]["message"]["content"])

    @property
    def tool_ids(self) -> list[str]:
        """Return the ids of the tool calls."""
        return [call["id"] for call in self.body["choices"][0]["message"]["tool_calls"]]


@attrs.define(eq=False)
class Scene:
    """The Router, its backend, and what the backend saw."""

    router: RunningRouter
    backend: ScriptedServer
    calls: list[SeenCall] = attrs.field(factory=list)

    async def ask(self, messages: Sequence[Message], **members: object) -> Reply:
        """Send one request and read its answer."""
        body = {"model": "auto", "tools": TOOLS, "messages": list(messages), **members}
        got = await self.router.ask(json.dumps(body).encode())
        self.calls += self.backend.take_calls()
        assert got.head is not None
        kind = dict(got.head.lines).get(b"content-type", b"")
        text = got.body.decode()
        return Reply(got.status, json.loads(text) if b"json" in kind else text, kind)

    async def resume(self, answered: Reply, content: str = "seen", **members: object) -> Reply:
        """Answer all tool calls of a reply."""
        return await self.ask(answered_by(answered, content), **members)

    async def leave(self, messages: Sequence[Message], after_s: float) -> None:
        """Send one request, and close the connection before it is answered."""
        body = json.dumps({"model": "auto", "tools": TOOLS, "messages": list(messages)}).encode()
        lines = [(b"content-type", b"application/json")]
        connection = await self.router.connect()
        await connection.send(encode_request(b"POST", CHAT, b"router", lines, len(body)) + body)
        await trio.sleep(after_s)
        connection.close()
        await trio.testing.wait_all_tasks_blocked()

    def document(self, graph: str) -> str:
        """Return a document with another graph and the same backend."""
        return document(graph, self.backend.port)

    def called(self) -> list[str]:
        """Return the models that were called since the last time."""
        self.calls += self.backend.take_calls()
        calls, self.calls = self.calls, []
        return [call.body["model"] for call in calls]


def answered_by(reply: Reply, content: str = "seen") -> list[Message]:
    """Return the conversation that goes on behind a reply with tool calls."""
    tools = [
        {"role": "tool", "tool_call_id": call_id, "content": content} for call_id in reply.tool_ids
    ]
    return [QUESTION, reply.body["choices"][0]["message"], *tools]


def store_of(scene: Scene) -> MemoryStore:
    """Return where the Router keeps its runs."""
    store = scene.router.parts.stores.store(StateStore())
    assert isinstance(store, MemoryStore)
    return store


def state_of(reply: Reply) -> str:
    """Return the id of the state that a reply's tool calls belong to."""
    return reply.tool_ids[0].split("_")[1]


async def kept_run(scene: Scene, reply: Reply) -> SuspendedRun:
    """Take the run that waits for the answers to a reply's tool calls."""
    run = await store_of(scene).take(state_of(reply), now_unix_s=0)
    assert run is not None
    return run


def tool(call_id: str, content: str = "seen") -> Message:
    """Return a tool's answer."""
    return {"role": "tool", "tool_call_id": call_id, "content": content}


async def start(
    nursery: trio.Nursery,
    graph: str,
    replies: dict[str, list[dict[str, Any]]],
    inner: str = "",
) -> Scene:
    """Start a Router that answers everything by `graph`, and a backend with scripted replies.

    Args:
        nursery: they live in it.
        graph: a mapping in YAML, without indentation.
        replies: by model, consumed in the order of the calls.
        inner: a graph of that name.
    """

    def answer(call: SeenCall) -> Response:
        model = call.body["model"]
        return reply_of(replies[model].pop(0), model)

    return await start_answering(nursery, graph, answer, inner)


async def start_answering(
    nursery: trio.Nursery,
    graph: str,
    answer: Callable[[SeenCall], Response],
    inner: str = "",
    open_states: Callable[[StateStore], SuspendStore] = open_memory,
) -> Scene:
    """Do the same with a backend that answers by a function, and with other stores."""
    network = MemoryNetwork()
    backend = ScriptedServer(network, answer)
    await backend.start(nursery)
    text = document(graph, backend.port, inner)
    router = await start_router(nursery, network, text, open_states=open_states)
    return Scene(router, backend)


def document(graph: str, port: int, inner: str = "") -> str:
    """Return the document of `start`; `inner` is a second graph of that name."""
    graphs = ""
    for name, text in {"own": graph, "inner": inner}.items():
        lines = "".join(f"      {line}\n" for line in text.strip("\n").splitlines())
        graphs += f"    {name}:\n{lines}" if text else ""
    models = "".join(
        f"    - name: {name}\n"
        f"      backend_refs: [{{name: of-{name}, endpoint: '127.0.0.1:{port}', protocol: http}}]\n"
        for name in MODELS
    )
    return (
        "version: v0.3\n"
        "listeners: [{name: http, address: 127.0.0.1, port: 8899, timeout: 600s}]\n"
        f"providers:\n  defaults: {{model: a}}\n  models:\n{models}"
        "routing:\n"
        "  decisions:\n"
        "    - {name: all, algorithm: {type: graph, graph: own}, modelRefs: [{model: a}]}\n"
        f"  graphs:\n{graphs}"
    )
