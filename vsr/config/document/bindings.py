"""Which model serves a task: deployments and bindings. Defaults are the reference's."""

from typing import Annotated, Literal

from vsr.config.document.kinds import Count
from vsr.config.document.objects import REQUIRED, DocumentObject


class PairScorerSelection(DocumentObject, frozen=True):
    """`pair_scorer`."""

    layer: int | None = None
    dimension: int | None = None


class OperatingPointReference(DocumentObject, frozen=True):
    """`operating_point`."""

    path: Annotated[str, REQUIRED] = ""
    sha256: Annotated[str, REQUIRED] = ""


class ModelBinding(DocumentObject, frozen=True):
    """`model_bindings` and `global.model_catalog.bindings`: a task and its deployment."""

    deployment: str = ""
    contract: str | None = None
    adapter: str | None = None
    head: str | None = None
    mapping_path: str | None = None
    pair_scorer: PairScorerSelection | None = None
    operating_point: OperatingPointReference | None = None


class ModelInputBudget(DocumentObject, frozen=True):
    """`global.model_catalog.deployments.*.input`."""

    max_tokens: Count | None = None
    overflow: Literal["reject", "truncate", "window"] | None = None


class ModelDeployment(DocumentObject, frozen=True):
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


class AdmissionConfig(DocumentObject, frozen=True):
    """`global.model_catalog.admission.*`."""

    max_concurrency: Count | None = None
    max_queue: Count | None = None
    queue_timeout_ms: Count | None = None
    on_overflow: str | None = None
