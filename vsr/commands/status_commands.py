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
    """Look at the backends of a Router that runs, and take them out of rotation."""


@backends.command("list")
@ASKS_API
@TRUSTS
@OUTPUT
@AS_JSON
def list_backends(api: Target, output: str) -> None:
    """List models and their endpoints: whether calls go there, and what is under way."""
    from vsr.commands.api_client import Api
    from vsr.commands.remote_backends import tell_backends

    tell_backends(Api(api, output == "json"), output)


@backends.command("quarantine")
@click.argument("model")
@click.argument("endpoint")
@click.option("--allow-empty", is_flag=True, help="Also if it is the last one of its model.")
@ASKS_API
@TRUSTS
def quarantine_backend(model: str, endpoint: str, api: Target, *, allow_empty: bool) -> None:
    """Send an endpoint nothing new; what is under way finishes. A restart forgets it."""
    from vsr.commands.api_client import Api
    from vsr.commands.remote_backends import quarantine

    quarantine(Api(api), model, endpoint, allow_empty=allow_empty)


@backends.command("release")
@click.argument("model")
@click.argument("endpoint")
@ASKS_API
@TRUSTS
def release_backend(model: str, endpoint: str, api: Target) -> None:
    """End the quarantine of an endpoint."""
    from vsr.commands.api_client import Api
    from vsr.commands.remote_backends import release

    release(Api(api), model, endpoint)


@click.command()
@ASKS_API
@TRUSTS
@click.confirmation_option("--yes", prompt="Finish what is under way and end this Router?")
def drain(api: Target) -> None:
    """Let a Router finish what is under way, and end."""
    from vsr.commands.api_client import Api

    Api(api).ask("POST", "/api/v1/drain")
    click.echo("the Router drains and ends")
