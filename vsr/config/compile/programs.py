"""Programs: each recipe with its signals, decisions and rules."""

from collections.abc import Mapping

import attrs
import msgspec

from vsr.config.compile.fallback import fallback_policy
from vsr.config.compile.graphs import CompiledGraphs, call_budget, stream_comments
from vsr.config.compile.loopers import looper_call
from vsr.config.compile.plugins import compile_plugins
from vsr.config.compile.reliability import optional_override
from vsr.config.document import decisions as authored
from vsr.config.document.fallback import FallbackPolicy
from vsr.config.document.integrations import LooperConfig
from vsr.config.document.model_catalog import ModelCatalog
from vsr.config.document.root import Document
from vsr.config.document.routing import RecipeRouting
from vsr.config.document.rules import RuleNode
from vsr.config.document.signals_heuristic import ContextRule, KeywordRule
from vsr.config.names import DEFAULT_RECIPE, is_regex_method, recipe_routings
from vsr.config.position import Path
from vsr.config.quantities import parse_token_count
from vsr.config.validate.declared import declared_by
from vsr.resources.graph import GraphCall, Written
from vsr.resources.looper import LOOPERS
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
    OnUnknown,
    Or,
    Program,
    Rule,
    RuleTree,
    Strategy,
)
from vsr.resources.reasoning import ReasoningMode
from vsr.resources.reliability import FallbackPolicy as Fallback


def compile_programs(document: Document, graphs: CompiledGraphs) -> tuple[Program, ...]:
    """Return a program for every recipe, the default one first.

    A recipe inherits the strategy and nothing else: its signals and decisions are its own. An
    authored recipe named `default` is the default one; the top-level block is then empty.
    """
    names = (DEFAULT_RECIPE, *(recipe.name.strip() for recipe in document.recipes))
    profiles = dict(zip(names, recipe_routings(document), strict=True))
    last = document.routing.strategy or document.global_.router.strategy or Strategy.PRIORITY
    shared = _Shared(
        Strategy(last),
        document.global_.router.fallback,
        document.global_.integrations.looper or LooperConfig(),
        graphs,
        document.global_.model_catalog,
    )
    return tuple(
        _program(name, routing, path, shared) for name, (path, routing) in profiles.items()
    )


class _Shared(msgspec.Struct, frozen=True):
    """What all recipes are compiled with."""

    strategy: Strategy
    """Of recipes that name none."""
    fallback: FallbackPolicy | None
    looper: LooperConfig
    graphs: CompiledGraphs
    catalog: ModelCatalog


def _program(name: str, routing: RecipeRouting, path: Path, shared: _Shared) -> Program:
    return Program(
        name=name,
        strategy=Strategy(routing.strategy or shared.strategy),
        keywords=tuple(_keyword(rule) for rule in routing.signals.keywords),
        contexts=tuple(_context(rule) for rule in routing.signals.context),
        decisions=tuple(
            _decision(
                decision,
                fallback_policy(shared.fallback, routing.fallback, decision.fallback),
                shared.looper,
                _Given(
                    shared.graphs.params.get((*path, "decisions", at), {}),
                    shared.graphs.written.get((*path, "decisions", at), Written()),
                ),
            )
            for at, decision in enumerate(routing.decisions)
        ),
        calls=optional_override(routing.reliability),
        graphs=shared.graphs.sources.get(path, ()),
        declared=declared_by(routing, path, shared.catalog).by_type,
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


class _Given(msgspec.Struct, frozen=True):
    """What a decision gives its graph, and where it says so."""

    params: Mapping[str, object]
    written: Written


def _decision(
    decision: authored.Decision, fallback: Fallback, looper: LooperConfig, given: _Given
) -> Decision:
    refs = tuple(_model_ref(ref) for ref in decision.modelRefs)
    return Decision(
        name=decision.name,
        rules=_rule(decision.rules),
        on_unknown=_on_unknown(decision.rules),
        priority=decision.priority,
        tier=decision.tier,
        model_refs=refs,
        algorithm=_algorithm(decision, refs, looper, given),
        plugins=compile_plugins(decision.plugins),
        calls=optional_override(decision.reliability),
        fallback=fallback,
    )


def _algorithm(
    decision: authored.Decision,
    refs: tuple[ModelRef, ...],
    looper: LooperConfig,
    given: _Given,
) -> Algorithm:
    algorithm = decision.algorithm
    if algorithm is None:
        return Algorithm()
    call = None
    if algorithm.type in LOOPERS:
        call = looper_call(decision, refs, looper)
        call = None if call is None else attrs.evolve(call, written=given.written)
    elif algorithm.type == "graph":
        name = (algorithm.graph or "").strip()
        call = GraphCall(name, given.params, call_budget(algorithm.budget), given.written)
    if call is not None:
        call = attrs.evolve(call, stream=stream_comments(algorithm.stream))
    return Algorithm(algorithm.type, call)


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
        says_reasoning=ref.use_reasoning is not None or mode is not None,
        reasoning_mode=mode,
        reasoning_effort=(ref.reasoning_effort or "").strip() or None,
        reasoning_description=ref.reasoning_description,
    )


def rule_tree(root: RuleNode) -> RuleTree:
    """Return the tree of a valid root node."""
    return RuleTree(_rule(root), _on_unknown(root))


def _on_unknown(root: RuleNode) -> OnUnknown | None:
    return None if root.on_unknown is None else OnUnknown(root.on_unknown)


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
