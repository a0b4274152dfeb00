"""`global.integrations`: the looper and the tool database. Defaults are the reference's."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from vsr.config.document.kinds import Count
from vsr.config.document.objects import SECRET, DocumentObject
from vsr.config.document.plugins_tools import AdvancedToolFilteringConfig


class ReMoMRuntimeConfig(DocumentObject, frozen=True):
    """`global.integrations.looper.remom`."""

    model_names: tuple[str, ...] | None = None


class FusionRuntimeConfig(DocumentObject, frozen=True):
    """`global.integrations.looper.fusion`."""

    model_names: tuple[str, ...] | None = None


class WorkflowStateFileConfig(DocumentObject, frozen=True):
    """`flow.state.file`."""

    directory: str | None = None


class WorkflowStateRedisConfig(DocumentObject, frozen=True):
    """`flow.state.redis`."""

    address: str | None = None
    db: int | None = None
    password: Annotated[str | None, SECRET] = None
    use_tls: bool = False
    tls_skip_verify: bool = False
    max_retries: int | None = None
    pool_size: int | None = None
    key_prefix: str | None = None


class WorkflowStateRuntimeConfig(DocumentObject, frozen=True):
    """`global.integrations.looper.flow.state`."""

    store_backend: Literal["file", "memory", "redis"] = "file"
    ttl_seconds: Count = 1_800
    file: WorkflowStateFileConfig | None = None
    redis: WorkflowStateRedisConfig | None = None


class FlowRuntimeConfig(DocumentObject, frozen=True):
    """`global.integrations.looper.flow`."""

    model_names: tuple[str, ...] | None = None
    state: WorkflowStateRuntimeConfig | None = None


class LooperConfig(DocumentObject, frozen=True):
    """`global.integrations.looper`."""

    endpoint: str | None = None
    grpc_max_msg_size_mb: Count | None = None
    max_response_bytes_mb: Count | None = None
    timeout_seconds: int = 1_200
    headers: Annotated[Mapping[str, str], SECRET] = msgspec.field(default_factory=dict)
    remom: ReMoMRuntimeConfig | None = None
    fusion: FusionRuntimeConfig | None = None
    flow: FlowRuntimeConfig | None = None


class ToolsConfig(DocumentObject, frozen=True):
    """`global.integrations.tools`."""

    enabled: bool = False
    top_k: Count = 3
    similarity_threshold: float | None = None
    tools_db_path: str = "config/tools_db.json"
    fallback_to_empty: bool = True
    advanced_filtering: AdvancedToolFilteringConfig | None = None


class Integrations(DocumentObject, frozen=True):
    """`global.integrations`."""

    tools: ToolsConfig | None = None
    looper: LooperConfig | None = None
