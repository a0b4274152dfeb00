"""The resource of `global.services.observability.tracing`."""

from vsr.config.address import parse_address
from vsr.config.document.observability import (
    TracingConfig,
    TracingExporterConfig,
    TracingResourceConfig,
    TracingSamplingConfig,
)
from vsr.config.document.root import Document
from vsr.resources.tracing import SpanExporter, Tracing

_TRACES_PATH = "/v1/traces"
"""Where collectors take spans over HTTP. Source: OTLP specification, OTLP/HTTP request."""


def compile_tracing(document: Document) -> Tracing | None:
    """Return how `document` wants requests traced; None if it does not.

    A document that says nothing of it does not, though the reference's default is to trace:
    without the collector that the default means nobody would gain by it.
    """
    config = tracing_of(document)
    if config is None:
        return None
    exporter = config.exporter or TracingExporterConfig()
    sampling = config.sampling or TracingSamplingConfig()
    resource = config.resource or TracingResourceConfig()
    kind = span_exporter_of(config)
    rates = {"always_on": 1.0, "always_off": 0.0, "probabilistic": sampling.rate}
    return Tracing(
        exporter=kind,
        endpoint=_endpoint(exporter.endpoint, kind),
        is_insecure=exporter.insecure,
        rate=rates[sampling.type],
        heeds_parent=sampling.type != "always_off",
        service_name=resource.service_name,
        service_version=resource.service_version,
        deployment_environment=resource.deployment_environment,
    )


def tracing_of(document: Document) -> TracingConfig | None:
    """Return the block of a document that switches tracing on, None if none does."""
    observability = document.global_.services.observability
    config = None if observability is None else observability.tracing
    return config if config is not None and config.enabled else None


def span_exporter_of(config: TracingConfig) -> SpanExporter:
    """Return which exporter a block asks for: an endpoint without a scheme is one of gRPC.

    Source: the reference, whose endpoints are `host:port` of a collector's gRPC port.
    """
    exporter = config.exporter or TracingExporterConfig()
    if exporter.type == "stdout":
        return SpanExporter.STDOUT
    return SpanExporter.OTLP_HTTP if "://" in exporter.endpoint else SpanExporter.OTLP_GRPC


def _endpoint(text: str, kind: SpanExporter) -> str:
    if kind is SpanExporter.STDOUT:
        return ""
    if kind is SpanExporter.OTLP_GRPC:
        return text
    return text if parse_address(text).base_path else text.rstrip("/") + _TRACES_PATH
