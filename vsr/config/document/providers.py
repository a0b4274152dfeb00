"""`providers`: models, their backends, prices and reliability. Defaults are the reference's."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from vsr.config.document.kinds import (
    Bounds,
    Count,
    Duration,
    NotNegative,
    Percent,
    Positive,
    PositiveDuration,
    Retries,
    StatusCode,
    Weight,
)
from vsr.config.document.objects import SECRET, DocumentObject


class BackendRefTls(DocumentObject, frozen=True):
    """`providers.models[].backend_refs[].tls`; a path is relative to the document."""

    server_name: str | None = None
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    min_version: Literal["TLSv1.2", "TLSv1.3"] = "TLSv1.2"


class BackendRef(DocumentObject, frozen=True):
    """`providers.models[].backend_refs[]`.

    Not in the canonical document: `api_format`, `http_version`, `health_check_path` and `tls`.
    """

    name: str | None = None
    endpoint: str | None = None
    protocol: str | None = None
    weight: Weight = 1
    base_url: str | None = None
    provider: str = "vllm"
    auth_header: str | None = None
    auth_prefix: str | None = None
    extra_headers: Annotated[Mapping[str, str], SECRET] = msgspec.field(default_factory=dict)
    api_version: str | None = None
    api_format: Literal["openai", "responses", "anthropic"] | None = None
    chat_path: str | None = None
    api_key: Annotated[str | None, SECRET] = None
    api_key_env: str | None = None
    http_version: Literal["1.1", "2", "auto"] = "1.1"
    health_check_path: str | None = None
    tls: BackendRefTls | None = None


class Pricing(DocumentObject, frozen=True):
    """`providers.models[].pricing`, per million tokens; no cache write price is not 0."""

    currency: str = "USD"
    prompt_per_1m: NotNegative = 0.0
    completion_per_1m: NotNegative = 0.0
    cached_input_per_1m: NotNegative = 0.0
    cache_write_per_1m: NotNegative | None = None


class Reasoning(DocumentObject, frozen=True):
    """`providers.models[].reasoning`: a family by name, or its behaviour written out."""

    family: str | None = None
    type: (
        Literal[
            "chat_template_kwargs",
            "reasoning_effort",
            "reasoning_mode",
            "top_level_reasoning_effort",
        ]
        | None
    ) = None
    parameter: str | None = None
    activation_parameter: str | None = None
    effort_flags: Mapping[str, str] = msgspec.field(default_factory=dict)
    levels: tuple[str, ...] = ()
    default: str | None = None
    modes: tuple[Literal["enabled", "disabled", "adaptive"], ...] = ()
    default_mode: Literal["enabled", "disabled", "adaptive"] | None = None
    disabled: str | None = None


class Reliability(DocumentObject, frozen=True):
    """`providers.models[].reliability`; a None timeout inherits the listener's or is off.

    Not in the canonical document: the word `p2c_ewma`, the keys from `retry_evidence` on, and their
    defaults apart from the limits, which are the reference's constants.
    """

    lb_policy: Literal["round_robin", "least_request", "p2c_ewma"] = "round_robin"
    retry_count: Retries = 0
    retry_on: str | None = None
    consecutive_5xx: Count = 0
    base_ejection_time: Duration = "30s"
    max_ejection_percent: Percent = 50
    health_check_path: str | None = None
    health_check_interval: PositiveDuration = "10s"
    health_check_timeout: PositiveDuration = "2s"
    connect_timeout: PositiveDuration = "10s"
    total_timeout: Duration | None = None
    idle_timeout: Duration | None = None
    per_try_timeout: PositiveDuration | None = None
    first_byte_timeout: PositiveDuration | None = None
    retriable_status_codes: tuple[StatusCode, ...] = ()
    retry_back_off_base: PositiveDuration | None = None
    retry_back_off_max: PositiveDuration | None = None
    retry_after_max: PositiveDuration | None = None
    retry_budget_percent: Annotated[float, Bounds(0, 100)] | None = None
    retry_budget_min_concurrency: Count | None = None
    retry_evidence: Literal["any", "known_zero"] = "any"
    replay_bytes: Count = 4_194_304
    max_connections: Positive = 1024
    max_pending: Positive = 1024
    max_requests: Positive | None = None
    max_retries: Count = 3


class ProviderModel(DocumentObject, frozen=True):
    """`providers.models[]`: one alias, one cluster."""

    name: str = ""
    catalog: str | None = None
    reasoning: Reasoning | None = None
    provider_model_id: str | None = None
    backend_refs: tuple[BackendRef, ...] = ()
    pricing: Pricing | None = None
    reliability: Reliability = Reliability()
    api_format: Literal["openai", "responses", "anthropic"] | None = None
    external_model_ids: Mapping[str, str] = msgspec.field(default_factory=dict)


class ProviderDefaults(DocumentObject, frozen=True):
    """`providers.defaults`."""

    model: str | None = None
    reasoning_effort: str | None = None


class Providers(DocumentObject, frozen=True):
    """`providers`."""

    defaults: ProviderDefaults = ProviderDefaults()
    models: tuple[ProviderModel, ...] = ()
