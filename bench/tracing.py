"""What tracing costs: CPU per request off, and on at several rates; exporting left out and in.

`python -m bench.tracing [--times 40] [--requests 200]` prints what tracing adds in the round that
was least disturbed. Client, Router and backend share a process and a network in memory, so only
differences mean anything.
"""

import argparse
import gc
import random
import time
from collections.abc import Awaitable, Callable, Sequence

import attrs
import msgspec
import trio
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from bench.traffic import CHAT_PATH, chat_reply, chat_request
from vsr.compose.generation import Parts
from vsr.compose.router import Router
from vsr.config.report import Report
from vsr.config.source import check_bytes
from vsr.http.h1_client import ClientConnection, encode_request
from vsr.network.memory import MemoryNetwork
from vsr.network.port import Listener
from vsr.telemetry.access_log import AccessLog
from vsr.telemetry.otel import OtelSink

_PORT = 8899
_WARM_UP = 300
_RATES = {"off": None, "rate 0": 0, "rate 0.1": 0.1, "rate 1": 1, "rate 1, encoded": 1}
_DOCUMENT = """
listeners: [{{name: http, address: 127.0.0.1, port: 8899}}]
providers:
  defaults: {{model: bench}}
  models: [{{name: bench, backend_refs: [{{endpoint: "127.0.0.1:{port}"}}]}}]
global: {{services: {{observability: {{tracing: {tracing}}}}}}}
"""

_Ask = Callable[[int], Awaitable[float]]


@attrs.define
class _Nowhere(SpanExporter):
    """Drops spans, encoded before if the cost of that is wanted."""

    encodes: bool

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self.encodes:
            encode_spans(spans).SerializeToString()
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        pass


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.tracing", description=__doc__)
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--requests", type=int, default=200)
    arguments = parser.parse_args()
    costs = trio.run(_measure, arguments.times, arguments.requests)
    for name, added in costs.items():
        print(f"{name:16} {added * 1e6:+7.1f} us per request")


async def _measure(times: int, requests: int) -> dict[str, float]:
    """Return by variant the least that it costs, less that of `off`."""
    rounds: dict[str, list[float]] = {name: [] for name in _RATES}
    async with trio.open_nursery() as tasks:
        asks = {name: await _start(tasks, name) for name in _RATES}
        for ask in asks.values():
            await ask(_WARM_UP)
        for _ in range(times):
            order = list(asks)
            random.shuffle(order)
            seconds = {name: await asks[name](requests) for name in order}
            for name, each in seconds.items():
                rounds[name].append(each)
        tasks.cancel_scope.cancel(reason="measured")
    off = min(rounds["off"])
    return {name: min(each) - off for name, each in rounds.items()}


async def _start(tasks: trio.Nursery, name: str) -> _Ask:
    """Start a Router; return what asks it so many times, and says how much CPU each took."""
    network, rate = MemoryNetwork(), _RATES[name]
    await tasks.start(network.run)
    backend = await network.listen("127.0.0.1", 0)
    tasks.start_soon(_answer_all, backend)
    tracing = "{enabled: false}"
    if rate is not None:
        sampling = f"{{type: probabilistic, rate: {rate}}}"
        tracing = f"{{exporter: {{type: stdout}}, sampling: {sampling}}}"
    text = _DOCUMENT.format(port=backend.port, tracing=tracing)
    snapshot = check_bytes(text.encode(), {}, Report("benchmark")).snapshot
    # Nothing leaves but at the end of a round, so that no round pays for another.
    spans = BatchSpanProcessor(_Nowhere("encoded" in name), 10**6, 10**9)
    parts = msgspec.structs.replace(
        Parts.default(network), open_spans=lambda tracing: OtelSink(spans, tracing)
    )
    log = AccessLog(_drop)
    router = await Router.bind(parts, snapshot, log)
    await tasks.start(router.run)
    connection = await network.connect("router", _PORT)
    body = chat_request()
    request = encode_request(b"POST", CHAT_PATH.encode(), b"bench", [], len(body)) + body

    async def ask(requests: int) -> float:
        gc.collect()
        begun = time.process_time()
        for _ in range(requests):
            http = ClientConnection()
            http.begin(is_head_request=False)
            await connection.send(request)
            while not http.is_complete:
                http.feed(await connection.receive())
        await log.flush()
        spans.force_flush()
        return (time.process_time() - begun) / requests

    return ask


async def _answer_all(listener: Listener) -> None:
    """Answer whatever comes without reading it, so that a longer request costs nothing here."""
    body = chat_reply()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    connection = await listener.accept()
    while await connection.receive():
        await connection.send(head % len(body) + body)


async def _drop(data: bytes) -> None:
    del data
    await trio.lowlevel.checkpoint()


if __name__ == "__main__":
    main()
