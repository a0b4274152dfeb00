"""Resource `tracing`: which requests are traced, and where their spans go; of the whole process."""

from enum import StrEnum

import msgspec


class SpanExporter(StrEnum):
    """How spans leave the process."""

    OTLP_GRPC = "otlp_grpc"
    OTLP_HTTP = "otlp_http"
    STDOUT = "stdout"
    """One JSON line per span, for looking at."""


class Tracing(msgspec.Struct, frozen=True):
    """Tracing that is switched on. It is read once, at the start: a change needs a restart."""

    exporter: SpanExporter
    endpoint: str = ""
    """`host:port` for gRPC, a whole URL for HTTP, else empty."""
    is_insecure: bool = True
    """Whether gRPC goes without TLS; a URL says so itself."""
    rate: float = 1.0
    """Part of the requests that is sampled, of those whose client does not say."""
    heeds_parent: bool = True
    """Whether a client that traces its request decides whether it is sampled."""
    service_name: str = "vllm-sr"
    service_version: str = ""
    deployment_environment: str = ""
