"""Checks of projections: names, references, bounds and cycles."""

from collections.abc import Iterator, Mapping

from vsr.config.checks import check_names, suggestion
from vsr.config.document.projections import (
    ProjectionMapping,
    ProjectionMappingOutput,
    ProjectionPartition,
    Projections,
    ProjectionScore,
    ProjectionScoreInput,
)
from vsr.config.document.routing import RecipeRouting
from vsr.config.document.rules import NumericPredicate
from vsr.config.position import Path
from vsr.config.report import Report
from vsr.config.validate.declared import BUILT_IN_KBS, Declared
from vsr.config.validate.rules import check_predicate

_BUILT_IN_METRICS = ("best_score", "best_matched_score")
_FEWEST_EMITTED = 2


def check_projections(routing: RecipeRouting, declared: Declared, report: Report) -> None:
    """Report every fault of a recipe's projections."""
    projections = routing.projections
    root = (*declared.path, "projections")
    for collection in ("partitions", "scores", "mappings"):
        rules = getattr(projections, collection)
        names = (((*root, collection, at, "name"), rule.name) for at, rule in enumerate(rules))
        check_names(names, report)
    for at, partition in enumerate(projections.partitions):
        _check_partition(partition, declared, (*root, "partitions", at), report)
    for at, score in enumerate(projections.scores):
        _check_score(score, projections, declared, (*root, "scores", at), report)
    for at, mapping in enumerate(projections.mappings):
        _check_mapping(mapping, projections, (*root, "mappings", at), report)
    outputs = (
        ((*root, "mappings", at, "outputs", index, "name"), output.name)
        for at, mapping in enumerate(projections.mappings)
        for index, output in enumerate(mapping.outputs)
    )
    check_names(outputs, report)
    _check_cycles(projections, root, report)


def _check_partition(
    partition: ProjectionPartition, declared: Declared, path: Path, report: Report
) -> None:
    if partition.semantics is None:
        mend = "write exclusive or softmax_exclusive"
        report.add((*path, "semantics"), "is missing", mend=mend)
    is_hot = partition.temperature is not None and partition.temperature > 0
    if partition.semantics == "softmax_exclusive" and not is_hot:
        why = "softmax_exclusive divides by it"
        report.add((*path, "temperature"), "must be above 0", why)
    members = set(partition.members)
    if not members:
        report.add((*path, "members"), "is missing or empty", mend="list domains or embeddings")
        return
    kinds = [set(declared.names(kind) or ()) for kind in ("domain", "embedding")]
    if not any(members <= names for names in kinds):
        why = "they must all be declared domains, or all declared embeddings"
        report.add((*path, "members"), "can't be compared", why)
    if (partition.default or "") not in members:
        mend = "name one of the members"
        report.add((*path, "default"), "is missing or not a member", mend=mend)


def _check_score(
    score: ProjectionScore,
    projections: Projections,
    declared: Declared,
    path: Path,
    report: Report,
) -> None:
    if score.method is None:
        report.add((*path, "method"), "is missing", mend="write weighted_sum")
    if not score.inputs:
        report.add((*path, "inputs"), "is missing or empty", mend="give at least one")
    for at, entry in enumerate(score.inputs):
        place = (*path, "inputs", at)
        if entry.type is None:
            report.add((*place, "type"), "is missing", mend="write the type of a signal")
        elif entry.type == "kb_metric":
            _check_kb_metric(entry, declared, place, report)
        elif entry.type == "projection":
            _check_projection_input(entry, projections, place, report)
        else:
            _check_signal_input(entry, declared, place, report)


def _check_kb_metric(
    entry: ProjectionScoreInput, declared: Declared, path: Path, report: Report
) -> None:
    for key, value in (("kb", entry.kb), ("metric", entry.metric)):
        if not (value or "").strip():
            mend = f"name one, such as {_BUILT_IN_METRICS[0]}" if key == "metric" else "name one"
            report.add((*path, key), "is missing", "kb_metric reads it", mend)
    if entry.value_source not in {None, "score"}:
        report.add((*path, "value_source"), "must be score", "a metric has nothing else")
    base = declared.bases.get(entry.kb or "")
    if entry.kb and base is None and entry.kb not in BUILT_IN_KBS:
        place = (*path, "kb")
        what = f"{report.quote(place)} is not the name of a knowledge base"
        report.add(place, what, mend=suggestion(entry.kb, (*declared.bases, *BUILT_IN_KBS)))
    elif base is not None and entry.metric:
        known = [metric.name for metric in base.metrics] + list(_BUILT_IN_METRICS)
        _check_reference(entry.metric, known, "a metric", (*path, "metric"), report)


def _check_projection_input(
    entry: ProjectionScoreInput, projections: Projections, path: Path, report: Report
) -> None:
    if entry.value_source == "confidence":
        known = [output.name for each in projections.mappings for output in each.outputs]
        words = "an output of a mapping"
    else:
        known = [score.name for score in projections.scores]
        words = "a score"
    _check_reference(entry.name, known, words, (*path, "name"), report)


def _check_signal_input(
    entry: ProjectionScoreInput, declared: Declared, path: Path, report: Report
) -> None:
    kind = entry.type or ""
    names = declared.names(kind)
    name = entry.name or ""
    if kind == "complexity":
        name = name.partition(":")[0]
    if names is not None and report.is_whole(declared.place(kind)):
        _check_reference(name, list(names), "a declared signal", (*path, "name"), report)


def _check_reference(
    name: str | None, known: list[str], words: str, path: Path, report: Report
) -> None:
    if not (name or "").strip():
        report.add(path, "is missing or blank", mend="name what is read")
    elif name not in known:
        what = f"{report.quote(path)} is not {words} known here"
        report.add(path, what, mend=suggestion(name or "", known) if known else "declare it")


def _check_mapping(
    mapping: ProjectionMapping, projections: Projections, path: Path, report: Report
) -> None:
    scores = [score.name for score in projections.scores]
    _check_reference(mapping.source, scores, "a score", (*path, "source"), report)
    if not mapping.outputs:
        report.add((*path, "outputs"), "is missing or empty", mend="give at least one")
    elif mapping.method == "multi_emit" and len(mapping.outputs) < _FEWEST_EMITTED:
        why = "multi_emit with one output is a band"
        report.add((*path, "outputs"), "needs at least two", why, "use threshold_bands")
    for at, output in enumerate(mapping.outputs):
        check_predicate(_bounds(output), (*path, "outputs", at), report)


def _bounds(output: ProjectionMappingOutput) -> NumericPredicate:
    return NumericPredicate(gt=output.gt, gte=output.gte, lt=output.lt, lte=output.lte)


def _check_cycles(projections: Projections, root: Path, report: Report) -> None:
    sources = _sources(projections)
    for at, score in enumerate(projections.scores):
        chain = _chain_back(score.name, sources)
        if chain:
            what = "depends on itself"
            why = " -> ".join(chain)
            report.add((*root, "scores", at), what, why, "take one of the inputs out")


def _sources(projections: Projections) -> Mapping[str, frozenset[str]]:
    """Return the scores that each score reads, directly or through an output."""
    by_output = {
        output.name: mapping.source
        for mapping in projections.mappings
        for output in mapping.outputs
    }

    def read_by(score: ProjectionScore) -> Iterator[str]:
        for entry in score.inputs:
            if entry.type == "projection" and entry.name:
                yield by_output.get(entry.name, entry.name)

    return {score.name: frozenset(read_by(score)) for score in projections.scores}


def _chain_back(start: str, sources: Mapping[str, frozenset[str]]) -> list[str]:
    """Return the way from a score back to itself, empty if there is none."""
    came_from: dict[str, str] = {}
    queue = [start]
    while queue:
        name = queue.pop(0)
        for source in sorted(sources.get(name, ())):
            if source == start:
                return [start, *_way(name, start, came_from)]
            if source not in came_from:
                came_from[source] = name
                queue.append(source)
    return []


def _way(name: str, start: str, came_from: Mapping[str, str]) -> list[str]:
    way = [start]
    while name != start:
        way.insert(0, name)
        name = came_from[name]
    return way
