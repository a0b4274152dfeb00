"""Programs: each recipe with its signals, decisions and rules."""

from vsr.config.compile.fallback import fallback_policy
from vsr.config.compile.plugins import compile_plugins
from vsr.config.compile.reliability import optional_override
from vsr.config.document import decisions as authored
from vsr.config.document.fallback import FallbackPolicy
from vsr.config.document.root import Document
from vsr.config.document.routing import RecipeRouting
from vsr.config.document.rules import RuleNode
from vsr.config.document.signals_heuristic import ContextRule, KeywordRule
from vsr.config.names import DEFAULT_RECIPE, is_regex_method
from vsr.config.quantities import parse_token_count
from vsr.resources.program import (
    Algorithm,
    And,
    ContextSignal,
    Decision,
    KeywordMethod,
    KeywordOperator,
    KeywordSignal,
    Leaf,
    ModelRef,
    Not,
    Or,
    Program,
    Rule,
    Strategy,
)
from vsr.resources.reasoning import ReasoningMode
from vsr.resources.reliability import FallbackPolicy as Fallback


def compile_programs(document: Document) -> tuple[Program, ...]:
    """Return a program for every recipe, the default one first.

    A recipe inherits the strategy and nothing else: its signals and decisions are its own. An
    authored recipe named `default` is the default one; the top-level block is then empty.
    """
    recipes = {recipe.name.strip(): recipe.routing for recipe in document.recipes}
    profiles = {DEFAULT_RECIPE: document.routing, **recipes}
    last = document.routing.strategy or document.global_.router.strategy or Strategy.PRIORITY
    outer = document.global_.router.fallback
    return tuple(
        _program(name, routing, Strategy(routing.strategy or last), outer)
        for name, routing in profiles.items()
    )


def _program(
    name: str, routing: RecipeRouting, strategy: Strategy, outer: FallbackPolicy | None
) -> Program:
    return Program(
        name=name,
        strategy=strategy,
        keywords=tuple(_keyword(rule) for rule in routing.signals.keywords),
        contexts=tuple(_context(rule) for rule in routing.signals.context),
        decisions=tuple(
            _decision(decision, fallback_policy(outer, routing.fallback, decision.fallback))
            for decision in routing.decisions
        ),
        calls=optional_override(routing.reliability),
    )


def _keyword(rule: KeywordRule) -> KeywordSignal:
    is_regex = is_regex_method(rule.method)
    return KeywordSignal(
        name=rule.name,
        operator=KeywordOperator(rule.operator),
        keywords=rule.keywords,
        method=KeywordMethod.REGEX if is_regex else KeywordMethod.LITERAL,
        case_sensitive=rule.case_sensitive,
    )


def _context(rule: ContextRule) -> ContextSignal:
    return ContextSignal(
        name=rule.name,
        min_tokens=parse_token_count(rule.min_tokens or 0),
        max_tokens=None if rule.max_tokens is None else parse_token_count(rule.max_tokens),
    )


def _decision(decision: authored.Decision, fallback: Fallback) -> Decision:
    algorithm = decision.algorithm
    return Decision(
        name=decision.name,
        rules=_rule(decision.rules),
        priority=decision.priority,
        tier=decision.tier,
        model_refs=tuple(_model_ref(ref) for ref in decision.modelRefs),
        algorithm=Algorithm() if algorithm is None else Algorithm(type=algorithm.type),
        plugins=compile_plugins(decision.plugins),
        calls=optional_override(decision.reliability),
        fallback=fallback,
    )


def _model_ref(ref: authored.ModelRef) -> ModelRef:
    mode = None if ref.reasoning_mode is None else ReasoningMode(ref.reasoning_mode)
    uses = ref.use_reasoning
    if uses is None:
        uses = mode not in {None, ReasoningMode.DISABLED}
    return ModelRef(
        model=ref.model,
        weight=ref.weight,
        lora_name=ref.lora_name,
        use_reasoning=uses,
        reasoning_mode=mode,
        reasoning_effort=(ref.reasoning_effort or "").strip() or None,
        reasoning_description=ref.reasoning_description,
    )


def _rule(node: RuleNode) -> Rule:
    """Return the rule of `node`; an empty root matches everything."""
    if node.type is not None:
        return Leaf(node.type, node.name or "")
    conditions = tuple(_rule(condition) for condition in node.conditions or ())
    match (node.operator or "AND").upper():
        case "OR":
            return Or(conditions)
        case "NOT":
            return Not(conditions[0])
        case _:
            return And(conditions)
