"""`vllm-sr graph show`: what one graph takes, may spend and does."""

import json
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vsr.commands.graph_names import CONFIG, GRAPH, TEXT_OR_JSON

if TYPE_CHECKING:
    from vsr.commands.authored_graphs import Found
    from vsr.resources.graph import ParamSpec

# ruff: noqa: PLC0415  # the command imports what it needs, so that `--help` answers at once

_WIDTH = 80
_COUNTED = frozenset({"model_refs", "models", "list"})
_UNITS = {"duration": "s", "string": " characters"}


@click.command()
@CONFIG
@TEXT_OR_JSON
@GRAPH
def show(graph: str, config: Path | None, output: str) -> None:
    """Print a graph's description, parameters, limits and steps.

    GRAPH is a name of the document (RECIPE:NAME if another recipe has it too), builtin/NAME, or a
    file that ends in .yaml.
    """
    from vsr.commands.authored_graphs import open_graph

    found = open_graph(graph, config)
    if output == "json":
        shown = {**found.source.authored, "name": found.name, "file": found.source.file}
        click.echo(json.dumps(shown, indent=2))
        return
    click.echo("\n".join(_lines(found)))


def _lines(found: "Found") -> Iterator[str]:
    from vsr.graph.picture.outline import in_one_line, outline
    from vsr.graph.picture.tree import render_tree

    source = found.source
    yield found.name
    yield from textwrap.wrap(source.description, _WIDTH)
    line = source.line()
    yield f"{source.file}:{line}" if line else source.file
    if found.decisions:
        names = ", ".join(decision.name for decision in found.decisions)
        yield from textwrap.wrap(f"answers for {names}", _WIDTH)
    if source.params:
        yield "\nparameters"
        yield from _params(source.params)
    for key in ("limits", "stream"):
        written = source.authored.get(key)
        if written:
            yield f"\n{key}"
            yield from textwrap.wrap(
                in_one_line(written).strip("{}"),
                _WIDTH,
                initial_indent="  ",
                subsequent_indent="  ",
            )
    yield "\nsteps"
    yield textwrap.indent(render_tree(outline(source.steps), _WIDTH - 2), "  ")


def _params(params: "Mapping[str, ParamSpec]") -> Iterator[str]:
    width = max(len(name) for name in params) + 2
    margin = " " * (width + 2)
    for name, spec in params.items():
        first = f"  {name:<{width}}"
        text = _kind(spec)
        yield from textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent=margin)
        if spec.description:
            yield from textwrap.wrap(
                spec.description, _WIDTH, initial_indent=margin, subsequent_indent=margin
            )


def _kind(spec: "ParamSpec") -> str:
    from vsr.graph.picture.outline import written

    words: list[str] = [str(spec.type)]
    if spec.values:
        words.append(f"one of {', '.join(spec.values)}")
    unit = " items" if spec.type in _COUNTED else _UNITS.get(spec.type, "")
    match spec.min, spec.max:
        case None, None:
            pass
        case low, None:
            words.append(f"at least {low:g}{unit}")
        case None, high:
            words.append(f"at most {high:g}{unit}")
        case low, high:
            words.append(f"{low:g} to {high:g}{unit}")
    if spec.default is not None:
        words.append(f"default {written(spec.default)}")
    else:
        words.append("required" if spec.required else "optional")
    return ", ".join(words)
