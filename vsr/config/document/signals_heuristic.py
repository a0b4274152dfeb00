"""The rules of `routing.signals` that need no model. Defaults are the reference's."""

from typing import Literal

import attrs

from vsr.config.document.kinds import Count, Fraction, TokenCount
from vsr.config.document.rules import NumericPredicate


@attrs.frozen(repr=False, unsafe_hash=False)
class KeywordRule:
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


@attrs.frozen(repr=False, unsafe_hash=False)
class LanguageRule:
    """`routing.signals.language[]`; the name is a language code of ISO 639-1."""

    name: str = ""
    description: str | None = None
    threshold: Fraction = 0.3


@attrs.frozen(repr=False, unsafe_hash=False)
class ContextRule:
    """`routing.signals.context[]`; no minimum means 0, no maximum unbounded."""

    name: str = ""
    min_tokens: TokenCount | None = None
    max_tokens: TokenCount | None = None
    description: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class StructureSource:
    """`routing.signals.structure[].feature.source`."""

    type: Literal["regex", "keyword_set", "sequence", "text_bytes"] | None = None
    pattern: str | None = None
    keywords: tuple[str, ...] = ()
    case_sensitive: bool = False
    sequences: tuple[tuple[str, ...], ...] = ()


@attrs.frozen(repr=False, unsafe_hash=False)
class StructureFeature:
    """`routing.signals.structure[].feature`."""

    type: Literal["exists", "count", "density", "sequence"] | None = None
    source: StructureSource = StructureSource()


@attrs.frozen(repr=False, unsafe_hash=False)
class StructureRule:
    """`routing.signals.structure[]`."""

    name: str = ""
    description: str | None = None
    feature: StructureFeature = StructureFeature()
    predicate: NumericPredicate | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class ConversationSource:
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


@attrs.frozen(repr=False, unsafe_hash=False)
class ConversationFeature:
    """`routing.signals.conversation[].feature`."""

    type: Literal["count", "exists"] | None = None
    source: ConversationSource = ConversationSource()


@attrs.frozen(repr=False, unsafe_hash=False)
class ConversationRule:
    """`routing.signals.conversation[]`."""

    name: str = ""
    description: str | None = None
    feature: ConversationFeature = ConversationFeature()
    predicate: NumericPredicate | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class EventRule:
    """`routing.signals.events[]`."""

    name: str = ""
    description: str | None = None
    event_types: tuple[str, ...] = ()
    severities: tuple[str, ...] = ()
    action_codes: tuple[str, ...] = ()
    temporal: bool = False


@attrs.frozen(repr=False, unsafe_hash=False)
class MetadataPredicate:
    """`routing.signals.metadata[].predicate`: exactly one comparator."""

    equals: str | None = None
    in_: tuple[str, ...] = ()
    exists: bool | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class MetadataRule:
    """`routing.signals.metadata[]`."""

    name: str = ""
    description: str | None = None
    key: str = ""
    predicate: MetadataPredicate = MetadataPredicate()


@attrs.frozen(repr=False, unsafe_hash=False)
class Subject:
    """`routing.signals.role_bindings[].subjects[]`."""

    kind: Literal["User", "Group"] | None = None
    name: str = ""


@attrs.frozen(repr=False, unsafe_hash=False)
class RoleBinding:
    """`routing.signals.role_bindings[]`."""

    name: str = ""
    description: str | None = None
    subjects: tuple[Subject, ...] = ()
    role: str = ""


@attrs.frozen(repr=False, unsafe_hash=False)
class ModalityRule:
    """`routing.signals.modality[]`; the name is the modality."""

    name: str = ""
    description: str | None = None


@attrs.frozen(repr=False, unsafe_hash=False)
class InputModalityRule:
    """`routing.signals.input_modality[]`."""

    name: str = ""
    description: str | None = None
    modality: Literal["text", "image", "audio", "video"] | None = None
