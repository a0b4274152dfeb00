"""`vllm-sr graph validate`: what is wrong with graphs, and their worst cases if nothing is."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from vsr.commands.graph_names import CONFIG, TEXT_OR_JSON

if TYPE_CHECKING:
    from vsr.commands.authored_graphs import Found
    from vsr.errors import Problem
    from vsr.graph.compiled import CompiledGraph
    from vsr.graph.worst import Worst

# ruff: noqa: PLC0415  # the command imports what it needs, so that `--help` answers at once


class _Case(NamedTuple):
    """A graph as one decision runs it, or as it is by itself."""

    name: str
    decision: str | None
    graph: "CompiledGraph"
    worst: "Worst"


@click.command()
@CONFIG
@TEXT_OR_JSON
@click.argument("graph", metavar="[GRAPH]", required=False)
def validate(graph: str | None, config: Path | None, output: str) -> None:
    """Say what is wrong with a graph, or print what it may spend at most.

    GRAPH is a name of the document (RECIPE:NAME if another recipe has it too), builtin/NAME, or a
    file that ends in .yaml. Without it, all graphs of the document are meant.

    Exits with 0 if nothing is wrong and with 1 if something is.
    """
    if graph is None and config is None:
        raise click.UsageError("name a graph or its file, or give a document with --config")
    from vsr.errors import ConfigRejected

    try:
        cases, problems = _look(graph, config)
    except ConfigRejected as error:
        cases, problems = [], list(error.problems)
    if output == "json":
        click.echo(json.dumps(_as_json(cases, problems), indent=2))
    else:
        for problem in problems:
            click.echo(str(problem), err=True)
        if not problems:
            click.echo("\n\n".join(_texts(cases)) or "there are no graphs")
    if problems:
        sys.exit(1)


def _look(graph: str | None, config: Path | None) -> "tuple[list[_Case], list[Problem]]":
    from vsr.commands.authored_graphs import open_library

    library = open_library(config)
    found = [*library.own(), *library.looped()] if graph is None else [library.find(graph)]
    cases: list[_Case] = []
    problems: dict[Problem, None] = {}
    for each in found:
        cases += _cases(each)
        problems |= dict.fromkeys(each.graphs.problems)
    return cases, list(problems)


def _cases(found: "Found") -> "Iterator[_Case]":
    graphs = found.graphs
    for decision in found.decisions:
        compiled = graphs.decided(decision)
        if compiled is not None:
            worst = graphs.worst_case(decision, compiled)
            yield _Case(found.name, decision.name, compiled, worst)
    if not found.decisions:
        compiled, worst = graphs.opened(found.source)
        yield _Case(found.name, None, compiled, worst)


def _texts(cases: Sequence[_Case]) -> Iterator[str]:
    from vsr.graph.picture.signal_words import tree_words
    from vsr.graph.picture.worst_table import render_worst

    for case in cases:
        told = "" if case.decision is None else f", as the decision {case.decision} runs it"
        signals = "".join(f"\n  asks {tree_words(tree)}" for tree in case.graph.signals)
        yield f"{case.name}: valid{told}{signals}\n{render_worst(case.worst, case.graph)}"


def _as_json(cases: Sequence[_Case], problems: "Sequence[Problem]") -> Mapping[str, object]:
    import msgspec

    from vsr.graph.picture.signal_words import tree_words
    from vsr.graph.picture.worst_table import worst_json

    return {
        "valid": not problems,
        "problems": [msgspec.structs.asdict(problem) for problem in problems],
        "graphs": [
            {
                "name": case.name,
                "decision": case.decision,
                "signals": [tree_words(tree) for tree in case.graph.signals],
                "worst_case": worst_json(case.worst, case.graph),
            }
            for case in cases
            if not problems
        ],
    }
