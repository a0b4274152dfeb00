"""Checks of a decision's algorithm."""

from collections.abc import Iterator, Mapping

from vsr.config.document.algorithms import (
    Algorithm,
    AlgorithmBudget,
    HybridSelectionConfig,
    LatencyAwareAlgorithmConfig,
    PromptSelectionConfig,
)
from vsr.config.document.decisions import Decision
from vsr.config.position import Path
from vsr.config.report import Report
from vsr.config.validate.declared import Declared
from vsr.config.validate.graphs import check_params, check_stream, is_built_in
from vsr.config.validate.loopers import check_looper
from vsr.config.validate.models import Models, check_model_name
from vsr.resources.looper import LOOPERS

BLOCKS = (
    "confidence",
    "ratings",
    "remom",
    "fusion",
    "workflows",
    "router_dc",
    "automix",
    "hybrid",
    "latency_aware",
    "multi_factor",
    "prompt",
)
_OF_GRAPHS = LOOPERS | {"graph"}
"""Types that ask several models, all of them by graphs."""
_FEWEST_PROMPTED = 2


def check_algorithm(
    decision: Decision, declared: Declared, path: Path, models: Models, report: Report
) -> None:
    """The block is that of the type, and says what the type needs."""
    algorithm = decision.algorithm
    if algorithm is None:
        return
    refs = {ref.model for ref in decision.modelRefs}
    _check_blocks(algorithm, path, report)
    _check_candidates(algorithm, refs, path, report)
    _check_on_error(algorithm, (*path, "on_error"), report)
    if algorithm.budget is not None:
        _check_budget(algorithm.budget, algorithm.type, (*path, "budget"), report)
    if algorithm.stream is not None:
        _check_stream(algorithm, (*path, "stream"), report)
    _check_graph(algorithm, declared, path, models, report)
    if algorithm.type in LOOPERS:
        check_looper(decision, algorithm, path, models, report)
    elif algorithm.type == "latency_aware":
        _check_latency(algorithm.latency_aware, (*path, "latency_aware"), report)
    elif algorithm.type == "prompt":
        _check_prompt(algorithm.prompt, (*path, "prompt"), models, report)
    elif algorithm.hybrid is not None:
        _check_hybrid(algorithm.hybrid, (*path, "hybrid"), report)


def _check_blocks(algorithm: Algorithm, path: Path, report: Report) -> None:
    blocks: Mapping[str, object] = {name: getattr(algorithm, name) for name in BLOCKS}
    for name, block in blocks.items():
        if block is not None and name != algorithm.type:
            why = f"the algorithm is {algorithm.type!r}"
            report.add((*path, name), "is the block of another algorithm", why, "remove it")


def _check_candidates(algorithm: Algorithm, refs: set[str], path: Path, report: Report) -> None:
    least = algorithm.minimum_candidates or 0
    if algorithm.type == "prompt":
        least = max(least, _FEWEST_PROMPTED)
    # Without any candidates a decision waits for its models.
    if refs and least > len(refs):
        what = f"needs {least} different candidates"
        why = f"modelRefs names {len(refs)}"
        report.add(path, what, why, "add candidates to modelRefs")


def _check_on_error(algorithm: Algorithm, path: Path, report: Report) -> None:
    allowed = ("fallback",) if algorithm.type == "prompt" else ("skip", "fail")
    if algorithm.on_error is not None and algorithm.on_error not in allowed:
        what = f"{report.quote(path)} can't be used by {algorithm.type!r}"
        report.add(path, what, mend=f"write {' or '.join(allowed)}")


def _check_budget(budget: AlgorithmBudget, kind: str, path: Path, report: Report) -> None:
    if kind not in _OF_GRAPHS:
        why = "only algorithms that ask several models spend one"
        report.add(path, "is out of place", why, "remove it")
    total = budget.max_total_tokens
    for key in ("max_prompt_tokens", "max_completion_tokens"):
        part = getattr(budget, key)
        if total and part > total:
            report.add((*path, key), "is above max_total_tokens", mend="lower it")


def _check_stream(algorithm: Algorithm, path: Path, report: Report) -> None:
    if algorithm.type not in _OF_GRAPHS:
        why = "only algorithms that ask several models let a client wait"
        report.add(path, "is out of place", why, "remove it")
    check_stream(algorithm.stream, path, report)


def _check_graph(
    algorithm: Algorithm, declared: Declared, path: Path, models: Models, report: Report
) -> None:
    is_graph = algorithm.type == "graph"
    name = (algorithm.graph or "").strip()
    if is_graph and not name:
        report.add((*path, "graph"), "is missing", "it says which graph runs", "name one")
    elif is_graph and name in declared.graphs:
        if not report.is_broken((*declared.path, "graphs", name)):
            graph = declared.graphs[name]
            check_params(graph, algorithm.params, (*path, "params"), models, report)
    elif is_graph and not is_built_in(name):
        place = (*path, "graph")
        what = f"{report.quote(place)} is not one of this recipe's graphs"
        report.add(place, what, mend="declare it under graphs or name a built-in one")
    for key, is_given in (("graph", algorithm.graph is not None), ("params", algorithm.params)):
        if is_given and not is_graph:
            why = "it goes with the algorithm 'graph'"
            report.add((*path, key), "is out of place", why, "remove it")


def _check_latency(block: LatencyAwareAlgorithmConfig | None, path: Path, report: Report) -> None:
    if block is None or (block.tpot_percentile is None and block.ttft_percentile is None):
        why = "latency_aware compares percentiles"
        report.add(path, "has no percentile", why, "give tpot_percentile or ttft_percentile")


def _check_hybrid(block: HybridSelectionConfig, path: Path, report: Report) -> None:
    weights = (
        block.experience_weight,
        block.router_dc_weight,
        block.automix_weight,
        block.cost_weight,
    )
    if not any(weights):
        report.add(path, "has only weights of 0", mend="give one a weight")


def _check_prompt(
    block: PromptSelectionConfig | None, path: Path, models: Models, report: Report
) -> None:
    for key in ("model", "instructions"):
        value = "" if block is None else getattr(block, key)
        if not (value or "").strip():
            report.add((*path, key), "is missing or blank", "a helper model picks", "add it")
    if block is None or not block.model:
        return
    check_model_name((*path, "model"), block.model, models, report)
    for what, why in _unfit(block.model, models):
        report.add((*path, "model"), what, why, "name another model")


def _unfit(name: str, models: Models) -> Iterator[tuple[str, str]]:
    """Say why the model can't be the helper."""
    model = models.aliases.get(name)
    if model is not None and model.api_format not in {None, "openai"}:
        yield "can't be a helper", "it does not speak chat completions"
    if model is not None and not model.backend_refs:
        yield "can't be a helper", "it has no backend"
