"""Resource `program`: one recipe's signals, decisions and rules."""

from collections.abc import Collection, Mapping
from enum import StrEnum

import msgspec

from vsr.resources.graph import GraphCall, GraphSource
from vsr.resources.plugin import Plugin
from vsr.resources.reasoning import ReasoningMode
from vsr.resources.reliability import CallOverride, FallbackPolicy


class KeywordOperator(StrEnum):
    """How a keyword rule combines its keywords."""

    AND = "AND"
    OR = "OR"
    NOR = "NOR"


class KeywordMethod(StrEnum):
    """How a keyword rule reads its keywords."""

    LITERAL = "literal"
    REGEX = "regex"


class KeywordSignal(msgspec.Struct, frozen=True):
    """A rule of signal type `keyword`."""

    name: str
    operator: KeywordOperator
    keywords: tuple[str, ...]
    method: KeywordMethod = KeywordMethod.LITERAL
    case_sensitive: bool = False


class ContextSignal(msgspec.Struct, frozen=True):
    """A rule of signal type `context`: an inclusive band of the request's token count."""

    name: str
    min_tokens: int = 0
    max_tokens: int | None = None
    """None means unbounded."""


class Leaf(msgspec.Struct, frozen=True):
    """Matches when the signal `name` of type `type` matched."""

    type: str
    name: str


class And(msgspec.Struct, frozen=True):
    """Matches when all conditions match; without conditions it always does."""

    conditions: tuple["Rule", ...] = ()


class Or(msgspec.Struct, frozen=True):
    """Matches when some condition matches; without conditions it never does."""

    conditions: tuple["Rule", ...] = ()


class Not(msgspec.Struct, frozen=True):
    """Matches when its condition does not."""

    condition: "Rule"


Rule = Leaf | And | Or | Not


class OnUnknown(StrEnum):
    """What a rule tree comes to where a signal that failed leaves it open."""

    NO_MATCH = "no_match"
    MATCH = "match"
    FAIL_REQUEST = "fail_request"


class RuleTree(msgspec.Struct, frozen=True):
    """A whole rule tree, as a decision has one."""

    rule: Rule
    on_unknown: OnUnknown | None = None
    """None: what is unknown does not match."""


class Strategy(StrEnum):
    """How matching decisions are ordered."""

    PRIORITY = "priority"
    CONFIDENCE = "confidence"


class ModelRef(msgspec.Struct, frozen=True):
    """One candidate model of a decision."""

    model: str
    weight: float = 0.0
    lora_name: str | None = None
    """Adapter of the model that is asked for in its place."""
    use_reasoning: bool = False
    says_reasoning: bool = False
    """Whether the document says anything of `use_reasoning`, itself or by a mode."""
    reasoning_mode: ReasoningMode | None = None
    """None follows `use_reasoning`."""
    reasoning_effort: str | None = None
    """None takes the default of the settings, then that of the family."""
    reasoning_description: str | None = None

    @property
    def called_name(self) -> str:
        """Return the name that is asked for: the adapter's if there is one."""
        return self.lora_name or self.model


class Algorithm(msgspec.Struct, frozen=True):
    """How one of a decision's candidates is chosen, or how several of them answer together."""

    type: str = "static"
    graph: GraphCall | None = None
    """What answers; None: one of the candidates, whatever the type."""


class Decision(msgspec.Struct, frozen=True):
    """A rule and the models that may answer when it matches."""

    name: str
    rules: Rule = And()
    priority: int = 0
    tier: int = 0
    model_refs: tuple[ModelRef, ...] = ()
    algorithm: Algorithm = Algorithm()
    plugins: tuple[Plugin, ...] = ()
    """In authored order, at most one of a kind."""
    calls: CallOverride | None = None
    """What it changes of its models' calls."""
    fallback: FallbackPolicy = msgspec.field(default_factory=FallbackPolicy)
    """How its failed calls go on to its other models."""
    on_unknown: OnUnknown | None = None
    """Of its rules; see `RuleTree`."""

    @property
    def tree(self) -> RuleTree:
        """Return its rules."""
        return RuleTree(self.rules, self.on_unknown)


class Program(msgspec.Struct, frozen=True):
    """One recipe: a closed namespace of signals and decisions."""

    name: str
    strategy: Strategy = Strategy.PRIORITY
    keywords: tuple[KeywordSignal, ...] = ()
    contexts: tuple[ContextSignal, ...] = ()
    decisions: tuple[Decision, ...] = ()
    calls: CallOverride | None = None
    """What it changes of its models' calls, its decisions' own changes not yet applied."""
    graphs: tuple[GraphSource, ...] = ()
    declared: Mapping[str, Collection[str]] | None = None
    """Names of its signals by type, as leaves of rules may use them; of a type that is missing,
    any. None: the recipe stands in no document."""
