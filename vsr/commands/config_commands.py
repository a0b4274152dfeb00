"""`vllm-sr config versions | plan | apply | rollback | diff`: the configuration of a Router."""

from pathlib import Path

import click

from vsr.commands.api_flags import AS_JSON, ASKS_API, OUTPUT, TRUSTS, Target

# ruff: noqa: PLC0415  # a command imports what it needs, so that `--help` answers at once

_FILE = click.argument("file", type=click.Path(path_type=Path))  # `-`: standard input
_MODE = click.option(
    "--mode",
    type=click.Choice(["replace", "merge"]),
    default="replace",
    show_default=True,
    help="Whether FILE is the whole document, or a part that is merged into it.",
)


@click.command()
@ASKS_API
@TRUSTS
@OUTPUT
@AS_JSON
def versions(api: Target, output: str) -> None:
    """List the configurations that a Router has recorded, newest first."""
    from vsr.commands import config_remote
    from vsr.commands.api_client import Api

    config_remote.tell_versions(Api(api, output == "json"), output)


@click.command()
@click.argument("version")
@ASKS_API
@TRUSTS
@OUTPUT
@AS_JSON
def rollback(version: str, api: Target, output: str) -> None:
    """Serve a recorded configuration again, as a new version.

    VERSION is a number or an id that `config versions` lists.
    """
    from vsr.commands import config_remote
    from vsr.commands.api_client import Api

    config_remote.roll_back(version, Api(api, output == "json"), output)


@click.command()
@_FILE
@_MODE
@ASKS_API
@TRUSTS
@OUTPUT
@AS_JSON
def apply(file: Path, mode: str, api: Target, output: str) -> None:
    """Let a Router write FILE to its document and serve it, whole or not at all.

    FILE may be - for standard input.
    """
    from vsr.commands import config_remote
    from vsr.commands.api_client import Api

    config_remote.apply_file(file, mode, Api(api, output == "json"), output)


@click.command()
@_FILE
@_MODE
@ASKS_API
@TRUSTS
@OUTPUT
@AS_JSON
def plan(file: Path, mode: str, api: Target, output: str) -> None:
    """Say what applying FILE would change, and change nothing.

    Exits with 1 if it would be refused.
    """
    from vsr.commands import config_remote
    from vsr.commands.api_client import Api

    config_remote.plan_file(file, mode, Api(api, output == "json"), output)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE [OTHER]")
@ASKS_API
@TRUSTS
@OUTPUT
@AS_JSON
def diff(files: tuple[str, ...], api: Target, output: str) -> None:
    """Say how FILE differs from what a Router serves, or OTHER from FILE.

    Two files are compared here, and no Router is asked. Secrets are not shown. Exits with 1 if
    something differs.
    """
    from vsr.commands import config_remote
    from vsr.commands.api_client import Api

    config_remote.compare(files, Api(api, output == "json"), output)
