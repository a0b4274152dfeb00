"""`routing.signals`: everything that is observed about a request."""

from vsr.config.document.objects import DocumentObject
from vsr.config.document.signals_heuristic import (
    ContextRule,
    ConversationRule,
    EventRule,
    InputModalityRule,
    KeywordRule,
    LanguageRule,
    MetadataRule,
    ModalityRule,
    RoleBinding,
    StructureRule,
)
from vsr.config.document.signals_learned import (
    ClassifierSignalRule,
    ComplexityRule,
    DomainRule,
    EmbeddingRule,
    FactCheckRule,
    HallucinationRule,
    JailbreakRule,
    KBSignalRule,
    PIIRule,
    PreferenceRule,
    ReaskRule,
    SafetyRule,
    UserFeedbackRule,
)


class Signals(DocumentObject, frozen=True):
    """`routing.signals`."""

    keywords: tuple[KeywordRule, ...] = ()
    embeddings: tuple[EmbeddingRule, ...] = ()
    domains: tuple[DomainRule, ...] = ()
    fact_check: tuple[FactCheckRule, ...] = ()
    user_feedbacks: tuple[UserFeedbackRule, ...] = ()
    reasks: tuple[ReaskRule, ...] = ()
    preferences: tuple[PreferenceRule, ...] = ()
    language: tuple[LanguageRule, ...] = ()
    context: tuple[ContextRule, ...] = ()
    structure: tuple[StructureRule, ...] = ()
    complexity: tuple[ComplexityRule, ...] = ()
    modality: tuple[ModalityRule, ...] = ()
    role_bindings: tuple[RoleBinding, ...] = ()
    jailbreak: tuple[JailbreakRule, ...] = ()
    safety: tuple[SafetyRule, ...] = ()
    hallucination: tuple[HallucinationRule, ...] = ()
    pii: tuple[PIIRule, ...] = ()
    kb: tuple[KBSignalRule, ...] = ()
    conversation: tuple[ConversationRule, ...] = ()
    events: tuple[EventRule, ...] = ()
    metadata: tuple[MetadataRule, ...] = ()
    classifiers: tuple[ClassifierSignalRule, ...] = ()
    input_modality: tuple[InputModalityRule, ...] = ()
