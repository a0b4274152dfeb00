"""`vllm-sr graph list`: the graphs that there are."""

import json
from pathlib import Path

import click

from vsr.commands.graph_names import CONFIG, TEXT_OR_JSON, refuse

# ruff: noqa: PLC0415  # the command imports what it needs, so that `--help` answers at once

_WIDTH = 80


@click.command("list")
@CONFIG
@TEXT_OR_JSON
def list_graphs(config: Path | None, output: str) -> None:
    """Print the graphs of a document, and those that ship, one line each."""
    from vsr.commands.authored_graphs import open_library
    from vsr.errors import ConfigRejected

    try:
        library = open_library(config)
    except ConfigRejected as error:
        refuse(error)
    found = [*library.own(), *library.shipped()]
    if output == "json":
        rows = [
            {
                "name": each.name,
                "description": each.source.description,
                "recipe": each.recipe,
                "decisions": [decision.name for decision in each.decisions],
            }
            for each in found
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    width = max((len(each.name) for each in found), default=0) + 2
    for each in found:
        line = f"{each.name:<{width}}{' '.join(each.source.description.split())}".rstrip()
        click.echo(line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3].rstrip()}...")
