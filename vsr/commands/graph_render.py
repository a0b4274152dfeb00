"""`vllm-sr graph render`: a picture of one graph."""

from pathlib import Path

import click

from vsr.commands.graph_names import CONFIG, GRAPH

# ruff: noqa: PLC0415  # the command imports what it needs, so that `--help` answers at once


@click.command()
@CONFIG
@click.option(
    "--output",
    type=click.Choice(["mermaid", "svg"]),
    default="mermaid",
    show_default=True,
    help="What to print.",
)
@GRAPH
def render(graph: str, config: Path | None, output: str) -> None:
    """Draw a graph: as text for Mermaid, or as an SVG picture that needs nothing else.

    GRAPH is a name of the document (RECIPE:NAME if another recipe has it too), builtin/NAME, or a
    file that ends in .yaml.
    """
    from vsr.commands.authored_graphs import open_graph
    from vsr.graph.picture.mermaid import render_mermaid
    from vsr.graph.picture.outline import outline
    from vsr.graph.picture.svg import render_svg

    found = open_graph(graph, config)
    items = outline(found.source.steps)
    if output == "svg":
        click.echo(render_svg(found.name, found.source.description, items), nl=False)
    else:
        click.echo(render_mermaid(found.name, items), nl=False)
