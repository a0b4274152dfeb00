"""Spans to an OpenTelemetry exporter; imported only where tracing is on."""

import logging
import os
import sys
from collections.abc import Sequence

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export import SpanExporter as OtelExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
)

from vsr.resources.tracing import SpanExporter, Tracing
from vsr.telemetry import spans
from vsr.telemetry.losses import Losses
from vsr.telemetry.spans import Span, SpanTree

_SCOPE = InstrumentationScope("vllm-sr")
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_OK, _ERROR = Status(), Status(StatusCode.ERROR)
_KINDS = {
    spans.SpanKind.SERVER: SpanKind.SERVER,
    spans.SpanKind.CLIENT: SpanKind.CLIENT,
    spans.SpanKind.INTERNAL: SpanKind.INTERNAL,
}
_SWITCH_S = 0.0005
_log = logging.getLogger("vsr.telemetry")


class OtelSink:
    """Hands spans to a processor of the OpenTelemetry SDK; see `vsr.telemetry.spans.SpanSink`.

    The spans are made here whole, as values: the tracers of the SDK are for spans that go on, and
    cost several times as much.
    """

    def __init__(
        self,
        processor: SpanProcessor,
        tracing: Tracing,
        exporter: "WatchedExporter | None" = None,
    ) -> None:
        """Take what spans go to, how this process is called in them, and what is behind that."""
        self._processor = processor
        self._exporter = exporter
        made = Resource.create(
            {
                "service.name": tracing.service_name,
                "service.version": tracing.service_version,
                "deployment.environment": tracing.deployment_environment,
            }
        )
        self._resource = _OneResource(made.attributes, made.schema_url)

    @property
    def losses(self) -> Losses:
        """Return how the export goes."""
        return Losses() if self._exporter is None else self._exporter.losses

    def add(self, tree: SpanTree) -> None:
        """Take the spans of one request; never waits."""
        trace_id = int(tree.trace_id, 16)
        state = TraceState.from_header([tree.state.decode()]) if tree.state else None
        contexts: dict[bytes, SpanContext] = {}
        for span in tree.spans:
            # A parent that is none of ours stands before its children, and is the client's.
            parent = contexts.get(span.parent_id)
            if parent is None and span.parent_id:
                parent_id = int(span.parent_id, 16)
                parent = SpanContext(trace_id, parent_id, True, _SAMPLED, state)  # noqa: FBT003
            own_id = int(span.span_id, 16)
            context = SpanContext(trace_id, own_id, False, _SAMPLED, state)  # noqa: FBT003
            contexts[span.span_id] = context
            self._processor.on_end(self._readable(span, context, parent))

    def close(self) -> None:
        """Export what is held, and end the exporter; waits for it."""
        self._processor.shutdown()

    def _readable(
        self, span: Span, context: SpanContext, parent: SpanContext | None
    ) -> ReadableSpan:
        events: Sequence[Event] = ()
        if span.failure:
            events = (Event("error", {"error.reason": span.failure}, span.ended_ns),)
        return ReadableSpan(
            span.name,
            context,
            parent,
            self._resource,
            span.attributes,
            events,
            kind=_KINDS[span.kind],
            status=_ERROR if span.failure else _OK,
            start_time=span.started_ns,
            end_time=span.ended_ns,
            instrumentation_scope=_SCOPE,
        )


class _OneResource(Resource):
    """The resource of all spans here: the library takes its hash, a JSON text, for every span."""

    def __hash__(self) -> int:
        return id(self)


class WatchedExporter(OtelExporter):
    """Says once when spans cannot be exported, and when they can again, naming no address."""

    def __init__(self, exporter: OtelExporter) -> None:
        """Take what exports."""
        self._exporter = exporter
        self.losses = Losses()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export a batch, in the library's thread; what fails is dropped."""
        failure = "ExportFailed"
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # noqa: BLE001  # whatever it is, spans are lost and nothing else
            result, failure = SpanExportResult.FAILURE, type(error).__name__
        before = self.losses
        if result is SpanExportResult.SUCCESS:
            self.losses = before.went_well()
        else:
            self.losses = before.failed(failure)
        if self.losses.is_losing and not before.is_losing:
            _log.warning("spans are lost: the collector does not take them")
        elif before.is_losing and not self.losses.is_losing:
            _log.info("the collector takes spans again")
        return result

    def shutdown(self) -> None:
        """End the exporter."""
        self._exporter.shutdown()


def open_otel_sink(tracing: Tracing) -> OtelSink:
    """Return a sink with the exporter that `tracing` names; see `vsr.telemetry.spans.open_sink`.

    Raises:
        ImportError: a package is not installed.
    """
    # Encoding a batch takes the library's thread tens of milliseconds, in which the serving thread
    # would get the interpreter back every 5 ms only.
    sys.setswitchinterval(_SWITCH_S)
    # The libraries' own messages hold addresses and what collectors say.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    exporter = WatchedExporter(_exporter(tracing))
    return OtelSink(BatchSpanProcessor(exporter), tracing, exporter)


def _exporter(tracing: Tracing) -> OtelExporter:
    # Each is loaded alone: that of gRPC costs twice as much time, and three times the memory.
    if tracing.exporter is SpanExporter.OTLP_HTTP:
        from opentelemetry.exporter.otlp.proto.http import trace_exporter as http  # noqa: PLC0415

        return http.OTLPSpanExporter(endpoint=tracing.endpoint)
    if tracing.exporter is SpanExporter.OTLP_GRPC:
        from opentelemetry.exporter.otlp.proto.grpc import trace_exporter as grpc  # noqa: PLC0415

        return grpc.OTLPSpanExporter(endpoint=tracing.endpoint, insecure=tracing.is_insecure)
    return ConsoleSpanExporter(
        out=sys.stdout, formatter=lambda span: span.to_json(indent=None) + os.linesep
    )
