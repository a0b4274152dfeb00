"""Options that several commands about graphs have."""

from collections.abc import Mapping
from pathlib import Path

import click

CONFIG = click.option(
    "--config",
    metavar="DOC",
    type=click.Path(path_type=Path),
    help="The configuration document, for its graphs, models and policies.",
)
REQUEST = click.option(
    "--request",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The client's request: a chat completion's body, as JSON or YAML.",
)
PARAM = click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the graph; VALUE is YAML. May be repeated.",
)


def read_params(written: tuple[str, ...]) -> Mapping[str, object]:
    """Return parameters by name.

    Raises:
        UsageError: one is not NAME=VALUE, or its value is no YAML.
    """
    import yaml  # noqa: PLC0415  # `--help` answers without it

    params: dict[str, object] = {}
    for each in written:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise click.UsageError(f"--param takes NAME=VALUE, not {each!r}")
        try:
            params[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise click.UsageError(f"the value of --param {name} is no YAML") from None
    return params
