"""`global.services`: the Router's own services. Defaults are the reference's."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from vsr.config.document.kinds import Bounds, Count, Fraction, Port, Positive
from vsr.config.document.listeners import ListenerTls
from vsr.config.document.objects import SECRET, DocumentObject
from vsr.config.document.observability import ObservabilityConfig, RouterReplayConfig


class BatchSizeRangeConfig(DocumentObject, frozen=True):
    """`batch_size_ranges[]`."""

    min: int | None = None
    max: int | None = None
    label: str | None = None


class BatchClassificationMetricsConfig(DocumentObject, frozen=True):
    """`batch_classification.metrics`."""

    sample_rate: Fraction | None = None
    batch_size_ranges: tuple[BatchSizeRangeConfig, ...] = ()
    duration_buckets: tuple[float, ...] = ()
    size_buckets: tuple[float, ...] = ()
    enabled: bool = False
    detailed_goroutine_tracking: bool = False
    high_resolution_timing: bool = False


class BatchClassificationConfig(DocumentObject, frozen=True):
    """`global.services.api.batch_classification`."""

    max_batch_size: Count | None = None
    concurrency_threshold: Count | None = None
    max_concurrency: Count | None = None
    metrics: BatchClassificationMetricsConfig | None = None


class EmbeddingAPIConfig(DocumentObject, frozen=True):
    """`global.services.api.embeddings`."""

    enabled: bool | None = None


class RoutingPreviewConfig(DocumentObject, frozen=True):
    """`global.services.api.routing_preview`."""

    request_timeout_seconds: Annotated[int, Bounds(1, 3_600)] = 120
    max_concurrency: Positive = 16


class APIConfig(DocumentObject, frozen=True):
    """`global.services.api`."""

    embeddings: EmbeddingAPIConfig | None = None
    batch_classification: BatchClassificationConfig | None = None
    routing_preview: RoutingPreviewConfig | None = None


class ResponseAPIRedisConfig(DocumentObject, frozen=True):
    """`global.services.response_api.redis`."""

    address: str | None = None
    password: Annotated[str | None, SECRET] = None
    db: int | None = None
    key_prefix: str | None = None
    cluster_mode: bool = False
    cluster_addresses: tuple[str, ...] = ()
    pool_size: int | None = None
    min_idle_conns: int | None = None
    max_retries: int | None = None
    dial_timeout: int | None = None
    read_timeout: int | None = None
    write_timeout: int | None = None
    tls_enabled: bool = False
    tls_cert_path: str | None = None
    tls_key_path: str | None = None
    tls_ca_path: str | None = None
    config_path: str | None = None


class ResponseAPIConfig(DocumentObject, frozen=True):
    """`global.services.response_api`."""

    enabled: bool = True
    store_backend: Literal["redis", "memory"] = "redis"
    ttl_seconds: Count = 86_400
    max_responses: Count = 1_000
    redis: ResponseAPIRedisConfig | None = None


class IdentityConfig(DocumentObject, frozen=True):
    """`global.services.authz.identity`."""

    user_id_header: str = "x-authz-user-id"
    user_groups_header: str = "x-authz-user-groups"


class AuthzProviderConfig(DocumentObject, frozen=True):
    """`global.services.authz.providers[]`."""

    type: Literal["header-injection", "static-config"] | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)


class AuthzConfig(DocumentObject, frozen=True):
    """`global.services.authz`."""

    fail_open: bool = False
    identity: IdentityConfig = IdentityConfig()
    providers: tuple[AuthzProviderConfig, ...] = ()


class RateLimitMatch(DocumentObject, frozen=True):
    """`match` of a rate limit; empty or `*` matches anything."""

    user: str | None = None
    group: str | None = None
    model: str | None = None


class RateLimitRule(DocumentObject, frozen=True):
    """`global.services.ratelimit.providers[].rules[]`."""

    name: str = ""
    match: RateLimitMatch | None = None
    requests_per_unit: Count | None = None
    tokens_per_unit: Count | None = None
    unit: Literal["second", "minute", "hour", "day"] = "minute"


class RateLimitProviderConfig(DocumentObject, frozen=True):
    """`global.services.ratelimit.providers[]`."""

    type: Literal["envoy-ratelimit", "local-limiter"] | None = None
    address: str | None = None
    domain: str = "semantic-router"
    rules: tuple[RateLimitRule, ...] = ()


class RateLimitConfig(DocumentObject, frozen=True):
    """`global.services.ratelimit`."""

    fail_open: bool = False
    providers: tuple[RateLimitProviderConfig, ...] = ()


class ManagementAPITokenRef(DocumentObject, frozen=True):
    """`global.services.management_api.auth.tokens[]`: the variable that holds the token."""

    env: str | None = None
    role: str | None = None


class ManagementAPIAuthConfig(DocumentObject, frozen=True):
    """`global.services.management_api.auth`."""

    mode: Literal["disabled", "bearer"] | None = None
    tokens: tuple[ManagementAPITokenRef, ...] = ()
    roles: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)


class ManagementAPIConfig(DocumentObject, frozen=True):
    """`global.services.management_api`."""

    bind_address: str = "127.0.0.1"
    port: Port = 8080
    remote_exposure: bool = False
    auth: ManagementAPIAuthConfig | None = None
    tls: ListenerTls | None = None


class StartupStatusRedisConfig(DocumentObject, frozen=True):
    """`global.services.startup_status.redis`."""

    address: str | None = None
    password: Annotated[str | None, SECRET] = None
    db: int | None = None


class StartupStatusConfig(DocumentObject, frozen=True):
    """`global.services.startup_status`."""

    store_backend: Literal["file", "redis"] = "file"
    redis: StartupStatusRedisConfig | None = None


class Services(DocumentObject, frozen=True):
    """`global.services`."""

    api: APIConfig | None = None
    response_api: ResponseAPIConfig | None = None
    observability: ObservabilityConfig | None = None
    authz: AuthzConfig | None = None
    ratelimit: RateLimitConfig | None = None
    management_api: ManagementAPIConfig | None = None
    router_replay: RouterReplayConfig | None = None
    startup_status: StartupStatusConfig | None = None
