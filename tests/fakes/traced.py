"""A Router that is traced, and its backends."""

import attrs
import trio
import trio.testing

from tests.demo.raw_client import Got, chat_body
from tests.fakes.router import RunningRouter, document_of, model_of, start_router
from tests.fakes.spans import SpanRecorder, context_of
from tests.upstream.raw_backend import Answer, RawBackend, reply
from vsr.headers import HeaderLine
from vsr.network.memory import MemoryNetwork

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN_ID = "00f067aa0ba902b7"
CLIENT: list[HeaderLine] = [
    (b"traceparent", f"00-{TRACE_ID}-{SPAN_ID}-01".encode()),
    (b"tracestate", b"vendor=x"),
    (b"baggage", b"k=v"),
]
FINE = reply(200, b'{"usage":{"prompt_tokens":3,"completion_tokens":4}}')
BUSY = reply(503, b"{}")
HUNG = b""
BEGUN = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    b"transfer-encoding: chunked\r\n\r\n6\r\n: hi\n\n\r\n"
)
"""A stream that does not go on."""


@attrs.define(eq=False)
class Bench:
    """A traced Router whose models have a backend each."""

    router: RunningRouter
    recorder: SpanRecorder
    backends: list[RawBackend]

    async def ask(self, model: str = "alpha", *lines: HeaderLine, patience_s: float = 1000) -> Got:
        """Ask a model, and let the request end."""
        got = await self.router.ask(chat_body(model=model), lines=lines, patience_s=patience_s)
        await trio.testing.wait_all_tasks_blocked()
        return got

    def parents(self) -> list[str]:
        """Return the `traceparent` of every request that backends have seen, in order."""
        seen = [head for backend in self.backends for head, _ in backend.seen]
        return [head.fields[b"traceparent"].decode() for head in seen]

    def attempt_ids(self) -> list[str]:
        """Return the id of every attempt's span, in order."""
        spans = [span for span in self.recorder.spans if span.name.endswith(".attempt")]
        return [f"{context_of(span).span_id:016x}" for span in spans]


async def start_traced(
    nursery: trio.Nursery,
    *answers: Answer | bytes,
    reliability: str = "",
    routing: str = "",
    tracing: str = "{exporter: {type: stdout}}",
    listener: str = "",
) -> Bench:
    """Start one with a model per answer: alpha, beta, gamma."""
    network, recorder = MemoryNetwork(), SpanRecorder()
    backends = [await RawBackend(network, each).start(nursery) for each in answers]
    more = {"reliability": reliability} if reliability else {}
    names = ("alpha", "beta", "gamma")
    models = [
        model_of(backend.port, name, **more) for name, backend in zip(names, backends, strict=False)
    ]
    document = document_of(*models, routing=routing, listener=listener)
    block = f"global: {{services: {{observability: {{tracing: {tracing}}}}}}}"
    router = await start_router(nursery, network, f"{document}\n{block}", open_spans=recorder.open)
    return Bench(router, recorder, backends)
