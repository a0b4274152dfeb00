"""The rules of `routing.signals` that need no model. Defaults are the reference's."""

from typing import Literal

from vsr.config.document.kinds import Count, Fraction, TokenCount
from vsr.config.document.objects import DocumentObject
from vsr.config.document.rules import NumericPredicate


class KeywordRule(DocumentObject, frozen=True):
    """`routing.signals.keywords[]`; no `method` means literal keywords."""

    name: str = ""
    operator: str = ""
    keywords: tuple[str, ...] = ()
    case_sensitive: bool = False
    method: str | None = None
    fuzzy_match: bool = False
    fuzzy_threshold: Count = 2
    bm25_threshold: float = 0.1
    ngram_threshold: float = 0.4
    ngram_arity: int = 3


class LanguageRule(DocumentObject, frozen=True):
    """`routing.signals.language[]`; the name is a language code of ISO 639-1."""

    name: str = ""
    description: str | None = None
    threshold: Fraction = 0.3


class ContextRule(DocumentObject, frozen=True):
    """`routing.signals.context[]`; no minimum means 0, no maximum unbounded."""

    name: str = ""
    min_tokens: TokenCount | None = None
    max_tokens: TokenCount | None = None
    description: str | None = None


class StructureSource(DocumentObject, frozen=True):
    """`routing.signals.structure[].feature.source`."""

    type: Literal["regex", "keyword_set", "sequence", "text_bytes"] | None = None
    pattern: str | None = None
    keywords: tuple[str, ...] = ()
    case_sensitive: bool = False
    sequences: tuple[tuple[str, ...], ...] = ()


class StructureFeature(DocumentObject, frozen=True):
    """`routing.signals.structure[].feature`."""

    type: Literal["exists", "count", "density", "sequence"] | None = None
    source: StructureSource = StructureSource()


class StructureRule(DocumentObject, frozen=True):
    """`routing.signals.structure[]`."""

    name: str = ""
    description: str | None = None
    feature: StructureFeature = StructureFeature()
    predicate: NumericPredicate | None = None


class ConversationSource(DocumentObject, frozen=True):
    """`routing.signals.conversation[].feature.source`."""

    type: (
        Literal[
            "message",
            "tool_definition",
            "assistant_tool_call",
            "assistant_tool_cycle",
            "active_tool_loop",
            "image_content",
            "tool_choice_required",
            "tool_choice_none",
            "flow_tool_state",
        ]
        | None
    ) = None
    role: Literal["user", "assistant", "system", "developer", "tool", "non_user"] | None = None


class ConversationFeature(DocumentObject, frozen=True):
    """`routing.signals.conversation[].feature`."""

    type: Literal["count", "exists"] | None = None
    source: ConversationSource = ConversationSource()


class ConversationRule(DocumentObject, frozen=True):
    """`routing.signals.conversation[]`."""

    name: str = ""
    description: str | None = None
    feature: ConversationFeature = ConversationFeature()
    predicate: NumericPredicate | None = None


class EventRule(DocumentObject, frozen=True):
    """`routing.signals.events[]`."""

    name: str = ""
    description: str | None = None
    event_types: tuple[str, ...] = ()
    severities: tuple[str, ...] = ()
    action_codes: tuple[str, ...] = ()
    temporal: bool = False


class MetadataPredicate(DocumentObject, frozen=True):
    """`routing.signals.metadata[].predicate`: exactly one comparator."""

    equals: str | None = None
    in_: tuple[str, ...] = ()
    exists: bool | None = None


class MetadataRule(DocumentObject, frozen=True):
    """`routing.signals.metadata[]`."""

    name: str = ""
    description: str | None = None
    key: str = ""
    predicate: MetadataPredicate = MetadataPredicate()


class Subject(DocumentObject, frozen=True):
    """`routing.signals.role_bindings[].subjects[]`."""

    kind: Literal["User", "Group"] | None = None
    name: str = ""


class RoleBinding(DocumentObject, frozen=True):
    """`routing.signals.role_bindings[]`."""

    name: str = ""
    description: str | None = None
    subjects: tuple[Subject, ...] = ()
    role: str = ""


class ModalityRule(DocumentObject, frozen=True):
    """`routing.signals.modality[]`; the name is the modality."""

    name: str = ""
    description: str | None = None


class InputModalityRule(DocumentObject, frozen=True):
    """`routing.signals.input_modality[]`."""

    name: str = ""
    description: str | None = None
    modality: Literal["text", "image", "audio", "video"] | None = None
