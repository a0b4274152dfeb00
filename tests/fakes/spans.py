"""Keeps the spans of a Router in memory, and shows them as a tree."""

from collections.abc import Iterator

import attrs
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from vsr.resources.tracing import Tracing
from vsr.telemetry.otel import OtelSink

TRACED = "global: {services: {observability: {tracing: {exporter: {type: stdout}}}}}"
"""Of a document: every request is sampled; a test opens the sink itself."""
_SHOWN = (
    "looper.attempt.stage",
    "looper.attempt.model",
    "looper.attempt.status",
    "upstream.cluster",
    "upstream.attempt",
    "upstream.endpoint",
    "upstream.outcome",
    "http.status_code",
)


@attrs.define(eq=False)
class SpanRecorder:
    """An exporter of the SDK; `open` is what a Router's parts want."""

    exporter: InMemorySpanExporter = attrs.field(factory=InMemorySpanExporter)
    opened: list[Tracing] = attrs.field(factory=list)

    def open(self, tracing: Tracing) -> OtelSink:
        """Return a sink that keeps all spans here."""
        self.opened.append(tracing)
        return OtelSink(SimpleSpanProcessor(self.exporter), tracing)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """Return all spans so far."""
        return self.exporter.get_finished_spans()

    def tree(self) -> list[str]:
        """Return a line per span, indented by its depth: name, what it is about, its failure."""
        own = {context_of(span).span_id for span in self.spans}
        roots = [span for span in self.spans if span.parent is None or is_foreign(span, own)]
        return [line for root in roots for line in self._lines(root, 0)]

    def _lines(self, span: ReadableSpan, depth: int) -> Iterator[str]:
        yield "  " * depth + show(span)
        own = context_of(span).span_id
        for child in self.spans:
            if child.parent is not None and child.parent.span_id == own:
                yield from self._lines(child, depth + 1)


def context_of(span: ReadableSpan):  # type: ignore[no-untyped-def]  # noqa: ANN201  # the SDK's
    """Return a span's context."""
    context = span.get_span_context()
    assert context is not None
    return context


def is_foreign(span: ReadableSpan, own: set[int]) -> bool:
    """Return whether a span's parent is none of ours."""
    return span.parent is not None and span.parent.span_id not in own


def show(span: ReadableSpan) -> str:
    """Return a span on one line; a failure shows only if status and event agree on it."""
    fields = dict(span.attributes or {})
    words = [span.name.removeprefix("semantic_router."), *(fields.get(key) for key in _SHOWN)]
    reasons = [event.attributes or {} for event in span.events if event.name == "error"]
    has_failed = span.status.status_code is StatusCode.ERROR
    assert has_failed == bool(reasons)
    assert span.status.description is None
    words += ["!" + str(each["error.reason"]) for each in reasons]
    return " ".join(str(word) for word in words if word is not None)
