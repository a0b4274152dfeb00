"""Which graph is run, and with what: a name or a file, a document or assumed models."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs
import msgspec

from vsr.config.report import Report
from vsr.config.source import check_bytes, check_file, read_graph
from vsr.dryrun.assumptions import assume_params, assume_secrets, named_models, usual_params
from vsr.dryrun.scenario import Scenario
from vsr.errors import ConfigRejected, Problem
from vsr.resources.cluster import Pricing
from vsr.resources.graph import GraphCall, GraphSource
from vsr.resources.listener import Listener
from vsr.resources.program import Algorithm, Decision, Program
from vsr.resources.route import Route
from vsr.resources.snapshot import Snapshot

MODEL = "auto"
"""The name that the client asks for."""
PORT = 1
"""Where it asks."""
_FILE_ENDS = (".yaml", ".yml")

FindGraph = Callable[[str], GraphSource | None]
"""Returns a graph that ships, by its name."""


class Subject(msgspec.Struct, frozen=True):
    """One graph as it is run: a configuration in which every request is answered by it."""

    name: str
    source: GraphSource
    snapshot: Snapshot
    params: Mapping[str, object]
    """That are given, by the scenario, a decision, or nobody."""
    assumed: tuple[tuple[str, str], ...] = ()
    """Kind and name of what was made up."""
    decision: str | None = None
    """Whose parameters and plugins it has, in the document."""


class Wanted(msgspec.Struct, frozen=True):
    """What is asked for: a graph, and where it is."""

    graph: str
    """A name, with its recipe or without, or a file."""
    config: Path | None = None
    params: Mapping[str, object] = msgspec.field(default_factory=dict)
    """Over those of the scenario."""


def find_subject(
    wanted: Wanted,
    scenario: Scenario,
    find_graph: FindGraph,
    environ: Mapping[str, str],
    *,
    may_assume: bool = True,
) -> Subject:
    """Return the graph and the configuration that runs it.

    Args:
        wanted: what is asked for.
        scenario: its parameters and models.
        find_graph: see there.
        environ: resolves the document's references.
        may_assume: whether variables that are not set may have any value.

    Raises:
        ConfigRejected: there is no such graph, or the document or the graph is faulty.
    """
    params = {**scenario.params, **wanted.params}
    if wanted.config is None:
        return _without_document(wanted.graph, params, scenario, find_graph)
    made_up = assume_secrets(_text_of(wanted.config), environ) if may_assume else {}
    snapshot = check_file(wanted.config, {**environ, **made_up}).snapshot
    program, source = _in_document(wanted, snapshot, find_graph)
    _refuse_unknown(scenario, snapshot, wanted.config)
    subject = in_snapshot(snapshot, (program, source), params)
    variables = tuple(("environment variable", name) for name in made_up)
    return msgspec.structs.replace(subject, assumed=(*subject.assumed, *variables))


def in_snapshot(
    snapshot: Snapshot, place: tuple[Program, GraphSource], params: Mapping[str, object]
) -> Subject:
    """Return a graph as a configuration runs it.

    Args:
        snapshot: the configuration.
        place: recipe and graph. A decision of the recipe that this graph answers for has its part.
        params: over those of the decision.
    """
    program, source = place
    decision = _decision_of(program, source.name)
    call = decision.algorithm.graph or GraphCall(source.name)
    given = {**usual_params(source), **call.params, **params}
    made_up = assume_params(source, given, sorted(each.name for each in snapshot.clusters))
    call = attrs.evolve(call, params={**given, **made_up})
    decision = msgspec.structs.replace(
        decision, algorithm=msgspec.structs.replace(decision.algorithm, graph=call)
    )
    assumed = tuple(("parameter", name) for name in made_up)
    named = decision.name if decision.name != _NO_DECISION.name else None
    subject = Subject(source.name, source, snapshot, call.params, assumed, named)
    return _around(subject, program, decision)


def _around(subject: Subject, program: Program, decision: Decision) -> Subject:
    """Return the subject with a configuration that answers everything with its graph."""
    own = {each.name: each for each in program.graphs} | {subject.source.name: subject.source}
    whole = msgspec.structs.replace(
        program,
        decisions=(msgspec.structs.replace(decision, rules=_ALWAYS),),
        graphs=tuple(own.values()),
    )
    snapshot = subject.snapshot
    snapshot = msgspec.structs.replace(
        snapshot,
        listeners=(Listener("client", "127.0.0.1", PORT, snapshot.listeners[0].timeout_s),),
        programs=(whole,),
        routes=(Route(MODEL, whole.name),),
        tracing=None,
    )
    return msgspec.structs.replace(subject, snapshot=snapshot)


_NO_DECISION = Decision("dry-run", algorithm=Algorithm("graph"))
_ALWAYS = Decision("").rules


def _without_document(
    graph: str, params: Mapping[str, object], scenario: Scenario, find_graph: FindGraph
) -> Subject:
    source = _read_file(Path(graph)) if is_file(graph) else find_graph(graph)
    if source is None:
        mend = "name a file or builtin/NAME, or give the document with --config"
        raise ConfigRejected([Problem("", f"there is no graph {graph!r}", mend=mend)])
    return around_file(source, params, scenario)


def around_file(source: GraphSource, params: Mapping[str, object], scenario: Scenario) -> Subject:
    """Return a graph that stands in no document, with the models that it and a scenario name."""
    made_up = assume_params(source, params, ())
    given = {**usual_params(source), **params, **made_up}
    models = dict.fromkeys((*named_models(source, given), *scenario.models)) or {"model-a": None}
    snapshot = _assumed_snapshot(list(models), scenario)
    assumed = [("parameter", name) for name in made_up]
    assumed += [("model", name) for name in models if name not in scenario.models]
    call = GraphCall(source.name, given)
    decision = msgspec.structs.replace(_NO_DECISION, algorithm=Algorithm("graph", call))
    subject = Subject(source.name, source, snapshot, given, tuple(assumed))
    program = msgspec.structs.replace(snapshot.programs[0], declared=None)
    return _around(subject, program, decision)


def _assumed_snapshot(models: list[str], scenario: Scenario) -> Snapshot:
    """Return what a document with these models and nothing else compiles to."""
    document = {
        "version": "v0.3",
        "providers": {
            "defaults": {"model": models[0]},
            "models": [
                {"name": name, "backend_refs": [{"endpoint": f"127.0.0.1:{8000 + at}"}]}
                for at, name in enumerate(models)
            ],
        },
        "routing": {},
    }
    report = Report("assumed models")
    snapshot = check_bytes(json.dumps(document).encode(), {}, report).snapshot
    clusters = []
    for cluster in snapshot.clusters:
        price = scenario.models[cluster.name].price if cluster.name in scenario.models else None
        if price is not None:
            pricing = Pricing("USD", price.prompt_per_1m, price.completion_per_1m)
            cluster = attrs.evolve(cluster, pricing=pricing, is_described=True)  # noqa: PLW2901
        clusters.append(cluster)
    return msgspec.structs.replace(snapshot, clusters=tuple(clusters))


def _in_document(
    wanted: Wanted, snapshot: Snapshot, find_graph: FindGraph
) -> tuple[Program, GraphSource]:
    if is_file(wanted.graph):
        return snapshot.programs[0], _read_file(Path(wanted.graph))
    recipe, _, name = wanted.graph.rpartition(":")
    for program in snapshot.programs:
        for source in program.graphs:
            if source.name == name and recipe in {"", program.name}:
                return program, source
    source_found = find_graph(name)
    programs = [each for each in snapshot.programs if recipe in {"", each.name}]
    if source_found is not None and programs:
        users = [each for each in programs if _uses(each, name)]
        return (users or programs)[0], source_found
    known = [f"{each.name}:{graph.name}" for each in snapshot.programs for graph in each.graphs]
    mend = f"known are {', '.join(known)}" if known else "declare it under routing.graphs"
    what = f"there is no graph {wanted.graph!r}"
    raise ConfigRejected([Problem("routing.graphs", what, mend=mend, file=str(wanted.config))])


def _uses(program: Program, graph: str) -> bool:
    return _decision_of(program, graph) is not _NO_DECISION


def _decision_of(program: Program, graph: str) -> Decision:
    """Return the first decision that this graph answers for, or one that says nothing of it."""
    for decision in program.decisions:
        call = decision.algorithm.graph
        if call is not None and call.graph == graph:
            return decision
    return _NO_DECISION


def _refuse_unknown(scenario: Scenario, snapshot: Snapshot, config: Path) -> None:
    known = {cluster.name for cluster in snapshot.clusters}
    problems = [
        Problem(
            f"models.{name}",
            "is no model of the document",
            str(config),
            f"known are {', '.join(sorted(known))}",
        )
        for name in scenario.models
        if name not in known
    ]
    if problems:
        raise ConfigRejected(problems)


def is_file(graph: str) -> bool:
    """Return whether a graph is named by its file."""
    return graph.endswith(_FILE_ENDS)


def _text_of(file: Path) -> str:
    """Return a document's text; one that cannot be read has its fault told when it is loaded."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _read_file(file: Path) -> GraphSource:
    try:
        data = file.read_bytes()
    except OSError as error:
        what = "can't be read"
        problem = Problem("", what, error.strerror or "", "check the path", str(file), 1)
        raise ConfigRejected([problem]) from None
    return read_graph(file.stem, data, {}, file=str(file))
