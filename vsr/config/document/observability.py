"""`global.services.observability` and `router_replay`. Defaults are the reference's."""

from typing import Literal

import attrs

from vsr.config.document.kinds import SECRET, Count, Fraction, Port


@attrs.frozen(repr=False, unsafe_hash=False)
class WindowedMetricsConfig:
    """`metrics.windowed_metrics`."""

    enabled: bool = False
    time_windows: tuple[str, ...] = ()
    update_interval: str | None = None
    max_models: Count | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class MetricsConfig:
    """`global.services.observability.metrics`."""

    enabled: bool | None = None
    windowed_metrics: WindowedMetricsConfig | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class TracingExporterConfig:
    """`tracing.exporter`."""

    type: Literal["otlp", "stdout"] = "otlp"
    endpoint: str = "vllm-sr-jaeger:4317"
    insecure: bool = True


@attrs.frozen(repr=False, unsafe_hash=False)
class TracingSamplingConfig:
    """`tracing.sampling`."""

    type: Literal["always_on", "always_off", "probabilistic"] = "always_on"
    rate: Fraction = 1.0


@attrs.frozen(repr=False, unsafe_hash=False)
class TracingResourceConfig:
    """`tracing.resource`."""

    service_name: str = "vllm-sr"
    service_version: str = "v0.3.0"
    deployment_environment: str = "development"


@attrs.frozen(repr=False, unsafe_hash=False)
class TracingConfig:
    """`global.services.observability.tracing`."""

    enabled: bool = True
    provider: Literal["opentelemetry"] = "opentelemetry"
    exporter: TracingExporterConfig | None = None
    sampling: TracingSamplingConfig | None = None
    resource: TracingResourceConfig | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class ProfilingConfig:
    """`global.services.observability.profiling`."""

    enabled: bool = False
    port: Port | None = None
    bind: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class ObservabilityConfig:
    """`global.services.observability`."""

    tracing: TracingConfig | None = None
    metrics: MetricsConfig | None = None
    profiling: ProfilingConfig | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class RouterReplayRedisConfig:
    """`router_replay.redis`."""

    address: str | None = None
    db: int | None = None
    password: str | None = attrs.field(default=None, repr=False, metadata=SECRET)
    use_tls: bool = False
    tls_skip_verify: bool = False
    max_retries: int | None = None
    pool_size: int | None = None
    key_prefix: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class RouterReplayPostgresConfig:
    """`router_replay.postgres`."""

    host: str | None = None
    port: int | None = None
    database: str | None = None
    user: str | None = None
    password: str | None = attrs.field(default=None, repr=False, metadata=SECRET)
    ssl_mode: str | None = None
    max_open_conns: int | None = None
    max_idle_conns: int | None = None
    conn_max_lifetime: int | None = None
    table_name: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class RouterReplayMilvusConfig:
    """`router_replay.milvus`."""

    address: str | None = None
    username: str | None = None
    password: str | None = attrs.field(default=None, repr=False, metadata=SECRET)
    collection_name: str | None = None
    consistency_level: str | None = None
    shard_num: int | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class RouterReplayQdrantConfig:
    """`router_replay.qdrant`."""

    host: str | None = None
    port: int | None = None
    api_key: str | None = attrs.field(default=None, repr=False, metadata=SECRET)
    use_tls: bool = False
    collection_name: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class RouterReplayConfig:
    """`global.services.router_replay`."""

    enabled: bool = False
    store_backend: Literal["memory", "redis", "postgres", "milvus", "qdrant"] = "memory"
    ttl_seconds: Count = 2_592_000
    async_writes: bool = False
    redis: RouterReplayRedisConfig | None = None
    postgres: RouterReplayPostgresConfig | None = None
    milvus: RouterReplayMilvusConfig | None = None
    qdrant: RouterReplayQdrantConfig | None = None
