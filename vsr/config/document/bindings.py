"""Which model serves a task: deployments and bindings. Defaults are the reference's."""

from typing import Literal

import attrs

from vsr.config.document.kinds import REQUIRED, Count


@attrs.frozen(repr=False, unsafe_hash=False)
class PairScorerSelection:
    """`pair_scorer`."""

    layer: int | None = None
    dimension: int | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class OperatingPointReference:
    """`operating_point`."""

    path: str = attrs.field(default="", metadata=REQUIRED)
    sha256: str = attrs.field(default="", metadata=REQUIRED)


@attrs.frozen(repr=False, unsafe_hash=False)
class ModelBinding:
    """`model_bindings` and `global.model_catalog.bindings`: a task and its deployment."""

    deployment: str = ""
    contract: str | None = None
    adapter: str | None = None
    head: str | None = None
    mapping_path: str | None = None
    pair_scorer: PairScorerSelection | None = None
    operating_point: OperatingPointReference | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class ModelInputBudget:
    """`global.model_catalog.deployments.*.input`."""

    max_tokens: Count | None = None
    overflow: Literal["reject", "truncate", "window"] | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class ModelDeployment:
    """`global.model_catalog.deployments.*`: an artifact or an external model."""

    artifact: str | None = None
    revision: str | None = None
    external_model: str | None = None
    provider: Literal["candle", "ort", "openvino", "http"] | None = None
    device: str | None = None
    precision: str | None = None
    custom_ops_profile: str | None = None
    compilation_cache_dir: str | None = None
    input: ModelInputBudget | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class AdmissionConfig:
    """`global.model_catalog.admission.*`."""

    max_concurrency: Count | None = None
    max_queue: Count | None = None
    queue_timeout_ms: Count | None = None
    on_overflow: str | None = None
