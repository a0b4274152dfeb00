"""Spans as the Router makes them, and where they go; knows no tracing library."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from importlib.util import find_spec
from typing import Protocol

import msgspec

from vsr.errors import ConfigRejected, Problem
from vsr.resources.tracing import SpanExporter, Tracing
from vsr.telemetry.losses import Losses

MEND_MISSING_EXTRA = "install vllm-sr[otel], or set tracing.enabled to false"
_MODULES: Mapping[SpanExporter, tuple[str, ...]] = {
    SpanExporter.OTLP_GRPC: ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.grpc"),
    SpanExporter.OTLP_HTTP: ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
    SpanExporter.STDOUT: ("opentelemetry.sdk",),
}


AttributeValue = str | int | float | bool


class SpanKind(StrEnum):
    """Whose work a span is."""

    SERVER = "server"
    """It serves somebody's request."""
    CLIENT = "client"
    """It makes a request."""
    INTERNAL = "internal"


class Span(msgspec.Struct, frozen=True, gc=False):
    """One span that has ended. No prompt, key, header value or body is ever an attribute."""

    name: str
    span_id: bytes
    """16 hexadecimal digits."""
    parent_id: bytes
    """Likewise; empty for the first span of a trace."""
    started_ns: int
    """Since 1970, as is `ended_ns`."""
    ended_ns: int
    attributes: dict[str, AttributeValue]
    kind: SpanKind = SpanKind.CLIENT
    failure: str = ""
    """A word of a closed set, never text; empty for a span that did not fail."""


class SpanTree(msgspec.Struct, frozen=True, gc=False):
    """The spans of one sampled request, the request's own first."""

    trace_id: bytes
    """32 hexadecimal digits."""
    state: bytes
    """The `tracestate` of all."""
    spans: Sequence[Span]


class SpanSink(Protocol):
    """Takes spans out of the process."""

    @property
    def losses(self) -> Losses:
        """Return how that goes, batch by batch."""
        ...

    def add(self, tree: SpanTree) -> None:
        """Take the spans of one request; never waits, and drops some rather than hold too many."""
        ...

    def close(self) -> None:
        """Take out what is held, and end; waits, so not for the serving task."""
        ...


def open_sink(tracing: Tracing) -> SpanSink:
    """Return a sink with the exporter that `tracing` names.

    It has a thread, which is the library's own: it sends a batch every few seconds, and at most
    2,048 spans are held meanwhile. Settings beyond ours (headers, certificates, batches) are those
    of the library, by its environment variables.

    Raises:
        ConfigRejected: the packages for it are not installed.
    """
    try:
        from vsr.telemetry.otel import open_otel_sink  # noqa: PLC0415  # nobody else pays for it

        return open_otel_sink(tracing)
    except ImportError as error:
        path = "global.services.observability.tracing"
        what = "can't be served here: spans can't be exported"
        raise ConfigRejected([Problem(path, what, mend=MEND_MISSING_EXTRA)]) from error


def is_exporter_installed(exporter: SpanExporter) -> bool:
    """Return whether the packages of an exporter are there, without importing them."""
    return all(map(_is_installed, _MODULES[exporter]))


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of a package around it
        return False
