"""`global.integrations`: the looper and the tool database. Defaults are the reference's."""

from collections.abc import Mapping
from typing import Literal

import attrs

from vsr.config.document.kinds import SECRET, Count
from vsr.config.document.plugins_tools import AdvancedToolFilteringConfig


@attrs.frozen(repr=False, unsafe_hash=False)
class ReMoMRuntimeConfig:
    """`global.integrations.looper.remom`."""

    model_names: tuple[str, ...] | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class FusionRuntimeConfig:
    """`global.integrations.looper.fusion`."""

    model_names: tuple[str, ...] | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class WorkflowStateFileConfig:
    """`flow.state.file`."""

    directory: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class WorkflowStateRedisConfig:
    """`flow.state.redis`."""

    address: str | None = None
    db: int | None = None
    password: str | None = attrs.field(default=None, repr=False, metadata=SECRET)
    use_tls: bool = False
    tls_skip_verify: bool = False
    max_retries: int | None = None
    pool_size: int | None = None
    key_prefix: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class WorkflowStateRuntimeConfig:
    """`global.integrations.looper.flow.state`."""

    store_backend: Literal["file", "memory", "redis"] = "file"
    ttl_seconds: Count = 1_800
    file: WorkflowStateFileConfig | None = None
    redis: WorkflowStateRedisConfig | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class FlowRuntimeConfig:
    """`global.integrations.looper.flow`."""

    model_names: tuple[str, ...] | None = None
    state: WorkflowStateRuntimeConfig | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class LooperConfig:
    """`global.integrations.looper`."""

    endpoint: str | None = None
    grpc_max_msg_size_mb: Count | None = None
    max_response_bytes_mb: Count | None = None
    timeout_seconds: int = 1_200
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False, metadata=SECRET)
    remom: ReMoMRuntimeConfig | None = None
    fusion: FusionRuntimeConfig | None = None
    flow: FlowRuntimeConfig | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class ToolsConfig:
    """`global.integrations.tools`."""

    enabled: bool = False
    top_k: Count = 3
    similarity_threshold: float | None = None
    tools_db_path: str = "config/tools_db.json"
    fallback_to_empty: bool = True
    advanced_filtering: AdvancedToolFilteringConfig | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class Integrations:
    """`global.integrations`."""

    tools: ToolsConfig | None = None
    looper: LooperConfig | None = None
