"""Spans on their way out: as OTLP on real sockets, as lines, and not at all."""

import json
import logging
import sys
from collections.abc import Sequence
from concurrent import futures

import grpc
import msgspec
import pytest
import trio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter as OtelExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from tests.fakes.collector import Collector
from vsr.errors import ConfigRejected
from vsr.resources.tracing import SpanExporter, Tracing
from vsr.telemetry.otel import WatchedExporter
from vsr.telemetry.spans import (
    Span,
    SpanKind,
    SpanSink,
    SpanTree,
    is_exporter_installed,
    open_sink,
)

TREE = SpanTree(
    b"4bf92f3577b34da6a3ce929d0e0e4736",
    b"vendor=x",
    [
        Span("root", b"00f067aa0ba902b7", b"00f067aa0ba902b6", 10, 20, {"a": "b"}, SpanKind.SERVER),
        Span("child", b"00f067aa0ba902b8", b"00f067aa0ba902b7", 11, 19, {"n": 7}, failure="status"),
    ],
)
HTTP = Tracing(SpanExporter.OTLP_HTTP, service_name="mine", deployment_environment="test")
PATIENCE_S = 20


async def close(sink: SpanSink) -> None:
    """Let a sink flush, as the Router does it."""
    with trio.fail_after(PATIENCE_S):
        await trio.to_thread.run_sync(sink.close)


async def test_spans_reach_a_collector_over_http(nursery: trio.Nursery) -> None:
    """With ids, parents, kinds, times, attributes, the failure, and who we are."""
    collector = await Collector().start(nursery)
    sink = open_sink(
        msgspec.structs.replace(HTTP, endpoint=f"http://127.0.0.1:{collector.port}/v1/traces")
    )

    sink.add(TREE)
    await close(sink)

    assert collector.paths == ["/v1/traces"]
    root, child = collector.spans
    assert {root.trace_id, child.trace_id} == {bytes.fromhex(TREE.trace_id.decode())}
    assert (root.span_id.hex(), child.parent_span_id.hex()) == ("00f067aa0ba902b7",) * 2
    assert (root.parent_span_id.hex(), child.span_id.hex()) == (
        "00f067aa0ba902b6",
        "00f067aa0ba902b8",
    )
    assert (root.kind, child.kind) == (root.SPAN_KIND_SERVER, root.SPAN_KIND_CLIENT)
    assert (root.start_time_unix_nano, root.end_time_unix_nano) == (10, 20)
    assert {root.trace_state, child.trace_state} == {"vendor=x"}
    assert (root.attributes[0].value.string_value, child.attributes[0].value.int_value) == ("b", 7)
    assert (root.status.code, child.status.code) == (0, child.status.STATUS_CODE_ERROR)
    assert (child.status.message, len(root.events)) == ("", 0)
    [event] = child.events
    assert (event.name, event.time_unix_nano) == ("error", 19)
    assert (event.attributes[0].key, event.attributes[0].value.string_value) == (
        "error.reason",
        "status",
    )
    [resource] = collector.resources
    about = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert about["service.name"] == "mine"
    assert about["deployment.environment"] == "test"
    assert resource.scope_spans[0].scope.name == "vllm-sr"


async def test_spans_reach_a_collector_over_grpc() -> None:
    """What an endpoint without a scheme means."""
    got: list[ExportTraceServiceRequest] = []

    def export(request: bytes, _: object) -> bytes:
        got.append(ExportTraceServiceRequest.FromString(request))
        return bytes(ExportTraceServiceResponse().SerializeToString())

    server = grpc.server(futures.ThreadPoolExecutor(1))
    service = "opentelemetry.proto.collector.trace.v1.TraceService"
    handlers = {"Export": grpc.unary_unary_rpc_method_handler(export)}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service, handlers)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sink = open_sink(Tracing(SpanExporter.OTLP_GRPC, f"127.0.0.1:{port}"))

    sink.add(TREE)
    await close(sink)

    server.stop(0).wait()
    [request] = got
    names = [span.name for span in request.resource_spans[0].scope_spans[0].spans]
    assert names == ["root", "child"]


async def test_spans_stand_on_standard_output_one_per_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Beside the access log, whose lines are JSON, too."""
    sink = open_sink(Tracing(SpanExporter.STDOUT))

    sink.add(TREE)
    await close(sink)

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["name"] for line in lines] == ["root", "child"]


async def test_collector_that_refuses_is_told_of_once(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    """Without its address and what it says; the spans are lost."""
    collector = await Collector(status=400).start(nursery)
    sink = open_sink(
        msgspec.structs.replace(HTTP, endpoint=f"http://127.0.0.1:{collector.port}/v1/traces")
    )

    sink.add(TREE)
    await close(sink)
    sink.add(TREE)

    assert len(collector.paths) == 1
    assert [record.message for record in caplog.records] == [
        "spans are lost: the collector does not take them"
    ]


class MoodyExporter(OtelExporter):
    """Fails as a script says."""

    def __init__(self, moods: Sequence[SpanExportResult | Exception]) -> None:
        self.moods = list(moods)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Do the next thing of the script."""
        del spans
        mood = self.moods.pop(0)
        if isinstance(mood, Exception):
            raise mood
        return mood


def test_lost_spans_are_told_of_when_that_begins_and_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Not for every batch; what the exporter raises goes no further."""
    caplog.set_level(logging.INFO)
    good, bad = SpanExportResult.SUCCESS, SpanExportResult.FAILURE
    watched = WatchedExporter(MoodyExporter([good, bad, OSError("canary"), good, good]))

    results, seen = [], []
    for _ in range(5):
        results.append(watched.export(()))
        seen.append((watched.losses.is_losing, watched.losses.times))

    assert results == [good, bad, bad, good, good]
    assert seen == [(False, 0), (True, 1), (True, 2), (False, 2), (False, 2)]
    assert watched.losses.last == "OSError"
    assert [record.message for record in caplog.records] == [
        "spans are lost: the collector does not take them",
        "the collector takes spans again",
    ]


@pytest.mark.parametrize(
    ("exporter", "missing"),
    [
        (SpanExporter.STDOUT, "opentelemetry.sdk"),
        (SpanExporter.OTLP_HTTP, "opentelemetry.sdk"),
        (SpanExporter.OTLP_HTTP, "opentelemetry.exporter.otlp.proto.http"),
        (SpanExporter.OTLP_GRPC, "opentelemetry.exporter.otlp.proto.grpc"),
    ],
)
def test_missing_package_is_named_by_its_extra(
    monkeypatch: pytest.MonkeyPatch, exporter: SpanExporter, missing: str
) -> None:
    """When the document is checked, and again when the sink is opened."""
    assert is_exporter_installed(exporter)
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{missing}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "vsr.telemetry.otel")
    monkeypatch.setitem(sys.modules, missing, None)

    assert not is_exporter_installed(exporter)
    with pytest.raises(ConfigRejected) as caught:
        open_sink(Tracing(exporter, "http://127.0.0.1:1"))

    [problem] = caught.value.problems
    assert "install vllm-sr[otel]" in str(problem)


async def test_router_without_tracing_loads_none_of_it() -> None:
    """It costs a tenth of a second and 5 MB, for gRPC twice and thrice as much."""
    code = (
        "import sys, vsr.compose.process; print([m for m in sys.modules if 'opentelemetry' in m])"
    )

    found = await trio.run_process([sys.executable, "-c", code], capture_stdout=True)

    assert found.stdout == b"[]\n"
