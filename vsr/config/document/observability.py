"""`global.services.observability` and `router_replay`. Defaults are the reference's."""

from typing import Annotated, Literal

from vsr.config.document.kinds import Count, Fraction, Port
from vsr.config.document.objects import SECRET, DocumentObject


class WindowedMetricsConfig(DocumentObject, frozen=True):
    """`metrics.windowed_metrics`."""

    enabled: bool = False
    time_windows: tuple[str, ...] = ()
    update_interval: str | None = None
    max_models: Count | None = None


class MetricsConfig(DocumentObject, frozen=True):
    """`global.services.observability.metrics`."""

    enabled: bool | None = None
    windowed_metrics: WindowedMetricsConfig | None = None


class TracingExporterConfig(DocumentObject, frozen=True):
    """`tracing.exporter`."""

    type: Literal["otlp", "stdout"] = "otlp"
    endpoint: str = "vllm-sr-jaeger:4317"
    insecure: bool = True


class TracingSamplingConfig(DocumentObject, frozen=True):
    """`tracing.sampling`."""

    type: Literal["always_on", "always_off", "probabilistic"] = "always_on"
    rate: Fraction = 1.0


class TracingResourceConfig(DocumentObject, frozen=True):
    """`tracing.resource`."""

    service_name: str = "vllm-sr"
    service_version: str = "v0.3.0"
    deployment_environment: str = "development"


class TracingConfig(DocumentObject, frozen=True):
    """`global.services.observability.tracing`."""

    enabled: bool = True
    provider: Literal["opentelemetry"] = "opentelemetry"
    exporter: TracingExporterConfig | None = None
    sampling: TracingSamplingConfig | None = None
    resource: TracingResourceConfig | None = None


class ProfilingConfig(DocumentObject, frozen=True):
    """`global.services.observability.profiling`."""

    enabled: bool = False
    port: Port | None = None
    bind: str | None = None


class ObservabilityConfig(DocumentObject, frozen=True):
    """`global.services.observability`."""

    tracing: TracingConfig | None = None
    metrics: MetricsConfig | None = None
    profiling: ProfilingConfig | None = None


class RouterReplayRedisConfig(DocumentObject, frozen=True):
    """`router_replay.redis`."""

    address: str | None = None
    db: int | None = None
    password: Annotated[str | None, SECRET] = None
    use_tls: bool = False
    tls_skip_verify: bool = False
    max_retries: int | None = None
    pool_size: int | None = None
    key_prefix: str | None = None


class RouterReplayPostgresConfig(DocumentObject, frozen=True):
    """`router_replay.postgres`."""

    host: str | None = None
    port: int | None = None
    database: str | None = None
    user: str | None = None
    password: Annotated[str | None, SECRET] = None
    ssl_mode: str | None = None
    max_open_conns: int | None = None
    max_idle_conns: int | None = None
    conn_max_lifetime: int | None = None
    table_name: str | None = None


class RouterReplayMilvusConfig(DocumentObject, frozen=True):
    """`router_replay.milvus`."""

    address: str | None = None
    username: str | None = None
    password: Annotated[str | None, SECRET] = None
    collection_name: str | None = None
    consistency_level: str | None = None
    shard_num: int | None = None


class RouterReplayQdrantConfig(DocumentObject, frozen=True):
    """`router_replay.qdrant`."""

    host: str | None = None
    port: int | None = None
    api_key: Annotated[str | None, SECRET] = None
    use_tls: bool = False
    collection_name: str | None = None


class RouterReplayConfig(DocumentObject, frozen=True):
    """`global.services.router_replay`."""

    enabled: bool = False
    store_backend: Literal["memory", "redis", "postgres", "milvus", "qdrant"] = "memory"
    ttl_seconds: Count = 2_592_000
    async_writes: bool = False
    redis: RouterReplayRedisConfig | None = None
    postgres: RouterReplayPostgresConfig | None = None
    milvus: RouterReplayMilvusConfig | None = None
    qdrant: RouterReplayQdrantConfig | None = None
