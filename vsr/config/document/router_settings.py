"""`global.router`. Defaults are the reference's."""

from typing import Annotated, Literal

from vsr.config.document.algorithms import (
    AutoMixSelectionConfig,
    HybridSelectionConfig,
    RouterDCSelectionConfig,
)
from vsr.config.document.fallback import FallbackPolicy
from vsr.config.document.kinds import Bounds, Count, NotNegative, Positive, Text
from vsr.config.document.objects import REQUIRED, SECRET, DocumentObject


class StreamedBody(DocumentObject, frozen=True):
    """`global.router.streamed_body`; 0 means no limit."""

    enabled: bool = False
    max_bytes: Count = 0
    timeout_sec: Count = 0


class SkipProcessingConfig(DocumentObject, frozen=True):
    """`global.router.skip_processing`."""

    enabled: bool = False


class MLKNNConfig(DocumentObject, frozen=True):
    """`ml.knn`."""

    k: Positive | None = None
    pretrained_path: str | None = None


class MLKMeansConfig(DocumentObject, frozen=True):
    """`ml.kmeans`."""

    num_clusters: Positive | None = None
    efficiency_weight: float | None = None
    pretrained_path: str | None = None


class MLSVMConfig(DocumentObject, frozen=True):
    """`ml.svm`."""

    kernel: str | None = None
    gamma: float | None = None
    pretrained_path: str | None = None


class MLMLPConfig(DocumentObject, frozen=True):
    """`ml.mlp`."""

    device: str | None = None
    pretrained_path: str | None = None


class MLSelectionConfig(DocumentObject, frozen=True):
    """`global.router.model_selection.ml`: trained selectors."""

    models_path: str | None = None
    model_type: str | None = None
    embedding_dim: int | None = None
    knn: MLKNNConfig | None = None
    kmeans: MLKMeansConfig | None = None
    svm: MLSVMConfig | None = None
    mlp: MLMLPConfig | None = None


class ModelSelectionConfig(DocumentObject, frozen=True):
    """`global.router.model_selection`."""

    method: str = "knn"
    enabled: bool = True
    router_dc: RouterDCSelectionConfig | None = None
    automix: AutoMixSelectionConfig | None = None
    hybrid: HybridSelectionConfig | None = None
    ml: MLSelectionConfig | None = None


class RouterLearningAdaptationConfig(DocumentObject, frozen=True):
    """`global.router.learning.adaptation`."""

    enabled: bool = False
    candidate_set: Literal["", "decision", "tier", "global"] | None = None
    strategy: Literal["", "routing_sampling"] | None = None


class RouterLearningIdentityHeadersConfig(DocumentObject, frozen=True):
    """`global.router.learning.protection.identity.headers`."""

    session: Text = "x-session-id"
    conversation: Text = "x-conversation-id"


class RouterLearningIdentityConfig(DocumentObject, frozen=True):
    """`global.router.learning.protection.identity`."""

    headers: RouterLearningIdentityHeadersConfig | None = None


class ProgressGateTuning(DocumentObject, frozen=True):
    """`global.router.learning.protection.tuning.progress_gate`."""

    enabled: bool = False
    mode: Literal["observe", "enforce"] | None = None
    calibration_id: str | None = None
    window_size: Annotated[int, Bounds(1, 256)] | None = None
    window_ttl_seconds: Annotated[int, Bounds(1, 86_400)] | None = None
    min_window_outcomes: Count | None = None
    min_consecutive_regressions: Count | None = None
    min_consecutive_recoveries: Count | None = None
    cooldown_seconds: NotNegative | None = None
    max_switches_per_window: Annotated[int, Bounds(0, 256)] | None = None


class RouterLearningProtectionTuning(DocumentObject, frozen=True):
    """`global.router.learning.protection.tuning`."""

    idle_timeout_seconds: Count | None = None
    min_turns_before_switch: Count | None = None
    switch_margin: NotNegative | None = None
    stability_weight: NotNegative | None = None
    progress_gate: ProgressGateTuning | None = None


class RouterLearningProtectionConfig(DocumentObject, frozen=True):
    """`global.router.learning.protection`."""

    enabled: bool = False
    scope: Literal["", "conversation", "session"] | None = None
    identity: RouterLearningIdentityConfig | None = None
    tuning: RouterLearningProtectionTuning | None = None


class RouterLearningRedisStateStoreConfig(DocumentObject, frozen=True):
    """`global.router.learning.state_store.redis`."""

    address: Annotated[Text, REQUIRED] = ""
    password: Annotated[str | None, SECRET] = None
    database: Count | None = None
    key_prefix: str | None = None


class RouterLearningStateStoreConfig(DocumentObject, frozen=True):
    """`global.router.learning.state_store`."""

    backend: Literal["", "local", "redis"] | None = None
    ttl_seconds: Count = 86_400
    timeout_ms: Count = 50
    redis: RouterLearningRedisStateStoreConfig | None = None


class RouterLearningConfig(DocumentObject, frozen=True):
    """`global.router.learning`."""

    enabled: bool = False
    adaptation: RouterLearningAdaptationConfig | None = None
    protection: RouterLearningProtectionConfig | None = None
    state_store: RouterLearningStateStoreConfig | None = None


class EgressPolicy(DocumentObject, frozen=True):
    """`global.router.egress`: where connections to backends may go; `deny` goes before `allow`.

    Not in the canonical document. The default of `deny` is what is link-local: clouds have their
    metadata services there, which hand out credentials. Source: RFC 3927; RFC 4291, 2.5.6; the last
    one is Amazon's for IPv6 ("Instance metadata service").
    """

    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ("169.254.0.0/16", "fe80::/10", "fd00:ec2::254")


class RouterSettings(DocumentObject, frozen=True):
    """`global.router`; `egress` is not in the canonical document."""

    config_source: Literal["file", "kubernetes"] = "file"
    strategy: str | None = None
    auto_model_name: str = "MoM"
    auto_model_names: tuple[str, ...] | None = None
    include_config_models_in_list: bool = False
    clear_route_cache: bool = True
    streamed_body: StreamedBody = StreamedBody()
    skip_processing: SkipProcessingConfig = SkipProcessingConfig()
    model_selection: ModelSelectionConfig | None = None
    learning: RouterLearningConfig | None = None
    fallback: FallbackPolicy | None = None
    egress: EgressPolicy | None = None
