"""Options that the commands about graphs share."""

import sys
from pathlib import Path
from typing import NoReturn

import click

CONFIG = click.option(
    "--config",
    metavar="DOC",
    type=click.Path(path_type=Path),
    help="The configuration document whose graphs and models are meant.",
)
GRAPH = click.argument("graph", metavar="GRAPH")
TEXT_OR_JSON = click.option(
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="What to print.",
)


def refuse(error: Exception) -> NoReturn:
    """Say what is wrong, and exit with 1."""
    click.echo(str(error), err=True)
    sys.exit(1)
