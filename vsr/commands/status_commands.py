"""`vllm-sr status`, `backends list` and `drain`: a Router that runs, seen from outside."""

import click

from vsr.commands.api_flags import AS_JSON, ASKS_API, OUTPUT, TRUSTS, Target

# ruff: noqa: PLC0415  # a command imports what it needs, so that `--help` answers at once


@click.command()
@ASKS_API
@TRUSTS
@OUTPUT
@AS_JSON
def status(api: Target, output: str) -> None:
    """Say what a Router serves, and what has become of its last changes."""
    from vsr.commands.api_client import Api
    from vsr.commands.remote_status import tell_status

    tell_status(Api(api, output == "json"), output)


@click.group()
def backends() -> None:
    """Look at the backends of a Router that runs."""


@backends.command("list")
@ASKS_API
@TRUSTS
@OUTPUT
@AS_JSON
def list_backends(api: Target, output: str) -> None:
    """List models and their endpoints: whether calls go there, and what is under way."""
    from vsr.commands.api_client import Api
    from vsr.commands.remote_status import tell_backends

    tell_backends(Api(api, output == "json"), output)


@click.command()
@ASKS_API
@TRUSTS
@click.confirmation_option("--yes", prompt="Finish what is under way and end this Router?")
def drain(api: Target) -> None:
    """Let a Router finish what is under way, and end."""
    from vsr.commands.api_client import Api

    Api(api).ask("POST", "/api/v1/drain")
    click.echo("the Router drains and ends")
