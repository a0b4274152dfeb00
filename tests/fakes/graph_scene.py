"""A Router in memory whose decision is answered by a graph, with a playing backend per model."""

from collections.abc import Sequence
from typing import Any

import attrs
import trio
import trio.testing

from tests.demo.raw_client import Got, chat_body
from tests.fakes.h2_client import H2Client
from tests.fakes.router import RunningRouter, start_router
from tests.fakes.spans import TRACED, SpanRecorder
from tests.faults.moments import request_of
from tests.upstream.raw_backend import reply
from tests.upstream.scenes import Play, PlayingBackend, start_backends
from vsr.headers import HeaderLine
from vsr.network.memory import MemoryConnection, MemoryNetwork

MODELS = ("alpha", "beta", "gamma")
BODY = chat_body(model="auto")
_ANSWER = (
    b'{"id":"c","model":"m","choices":[{"index":0,'
    b'"message":{"role":"assistant","content":"%b"}}]%b}'
)
_USAGE = b',"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}'
_DOCUMENT = """\
version: v0.3
listeners: [{{name: http, address: 127.0.0.1, port: 8899}}]
providers:
  defaults: {{model: alpha}}
  models: [{models}]
routing:
  graphs:
    tested: {{{limits}, steps: [{steps}]}}
  decisions:
    - {{name: hard, modelRefs: [{refs}], algorithm: {algorithm}}}
{more}
"""


def said(text: str = "fine", *, has_usage: bool = True) -> bytes:
    """Return a backend's answer; it has used 3 and 4 tokens, or does not say."""
    return reply(200, _ANSWER % (text.encode(), _USAGE if has_usage else b""))


@attrs.define(eq=False)
class GraphScene:
    """The Router, its backends by model, and its spans."""

    router: RunningRouter
    backends: list[PlayingBackend]
    recorder: SpanRecorder

    async def begin(self) -> MemoryConnection:
        """Send one request; return the client's connection."""
        client = await self.router.connect()
        await client.send(request_of(BODY))
        return client

    async def begin_h2(self, nursery: trio.Nursery) -> H2Client:
        """Do the same over HTTP/2."""
        client = await H2Client(await self.router.connect()).start(nursery)
        await client.request(BODY)
        return client

    async def ask(self, *lines: HeaderLine, body: bytes = BODY) -> Got:
        """Send one request and read its answer to the end."""
        got = await self.router.ask(body, lines=lines)
        await trio.testing.wait_all_tasks_blocked()
        return got

    async def line(self) -> dict[str, Any]:
        """Return the one line of the access log; by then nothing may be held."""
        assert await self.router.held() == (0, 0)
        [line] = await self.router.log()
        return line


async def start_graph(
    nursery: trio.Nursery,
    steps: str,
    *plays: Sequence[Play],
    limits: str = "limits: {}",
    reliability: str = "{}",
    is_traced: bool = False,
    algorithm: str = "{type: graph, graph: tested}",
) -> GraphScene:
    """Start one.

    Args:
        nursery: everything lives in it.
        steps: of the graph, in YAML's flow style.
        plays: of each model's backend, call by call.
        limits: of the graph, as a member in YAML's flow style.
        reliability: of each model.
        is_traced: whether every request is sampled.
        algorithm: of the decision, in place of the graph.
    """
    network = MemoryNetwork()
    backends = await start_backends(nursery, network, plays)
    models = ", ".join(
        f"{{name: {name}, reliability: {reliability},"
        f" pricing: {{currency: EUR, prompt_per_1m: 1, completion_per_1m: 2}},"
        f" backend_refs: [{{endpoint: '{name}.test:{backend.port}'}}]}}"
        for name, backend in zip(MODELS, backends, strict=False)
    )
    more = TRACED if is_traced else ""
    refs = ", ".join(f"{{model: {name}}}" for name, _ in zip(MODELS, backends, strict=False))
    document = _DOCUMENT.format(
        models=models, steps=steps, limits=limits, more=more, refs=refs, algorithm=algorithm
    )
    recorder = SpanRecorder()
    router = await start_router(nursery, network, document, open_spans=recorder.open)
    return GraphScene(router, backends, recorder)


def calls_of(line: dict[str, Any], *names: str) -> list[tuple[Any, ...]]:
    """Return these members of each call in a line of the access log."""
    return [tuple(call[name] for name in names) for call in line["calls"]]
