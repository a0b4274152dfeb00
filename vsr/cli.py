"""The commands: flags, exit codes and where output goes."""

import os
import sys
from pathlib import Path
from typing import NoReturn

import click

# ruff: noqa: PLC0415  # a command imports what it needs, so that `--help` answers at once

_FILE = click.argument("file", type=click.Path(path_type=Path))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="vllm-sr", prog_name="vllm-sr")
def main() -> None:
    """An LLM gateway that picks the model by what the request means, and proxies to it."""


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8899, show_default=True, help="Port to listen on.")
def demo(host: str, port: int) -> None:
    """Start the Router with two embedded demo model servers."""
    from vsr.compose import run_demo
    from vsr.errors import ConfigRejected

    try:
        run_demo(host, port)
    except ConfigRejected as error:
        _fail(error)


@main.group()
def config() -> None:
    """Work with the configuration document."""


@config.command()
@_FILE
def validate(file: Path) -> None:
    """Say whether FILE can be served, with every problem if not."""
    from vsr.config.source import check_file
    from vsr.errors import ConfigRejected

    try:
        snapshot = check_file(file, os.environ).snapshot
    except ConfigRejected as error:
        _fail(error)
    decisions = sum(len(program.decisions) for program in snapshot.programs)
    counts = ", ".join(
        (
            _count(len(snapshot.listeners), "listener"),
            _count(len(snapshot.clusters), "model"),
            _count(decisions, "decision"),
        )
    )
    click.echo(f"{file}: valid ({counts}), sha256 {snapshot.hash}")


@config.command()
@click.option("--redact", is_flag=True, default=True, help="Replace secrets; always on.")
@_FILE
def show(file: Path, *, redact: bool) -> None:
    """Print FILE with its defaults filled in and its secrets replaced."""
    from vsr.config.show import render
    from vsr.config.source import check_file
    from vsr.errors import ConfigRejected

    del redact
    try:
        checked = check_file(file, os.environ)
    except ConfigRejected as error:
        _fail(error)
    click.echo(render(checked.document, checked.loaded.lines), nl=False)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="vllm-sr", prog_name="vllm-sr-router")
@click.option(
    "--config",
    "config_path",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The configuration document.",
)
@click.option(
    "--gateway",
    default="extproc",
    show_default=True,
    metavar="MODE",
    help="standalone: serve clients here; extproc: answer an Envoy.",
)
@click.option("--workers", default=1, show_default=True, help="Serving processes.")
def router_main(config_path: Path, gateway: str, workers: int) -> None:
    """Run the Router."""
    _check_gateway(gateway)
    if workers != 1:
        raise click.UsageError("only one worker is served by this version; pass --workers 1")
    from vsr.compose import run_router
    from vsr.errors import ConfigRejected

    try:
        run_router(config_path)
    except ConfigRejected as error:
        _fail(error)


def _check_gateway(gateway: str) -> None:
    if gateway == "extproc":
        raise click.UsageError(
            "--gateway extproc is not served by this version; pass --gateway standalone"
        )
    if gateway != "standalone":
        raise click.UsageError(f'unknown gateway mode "{gateway}": use "standalone" or "extproc"')


def _fail(error: Exception) -> NoReturn:
    click.echo(str(error), err=True)
    sys.exit(1)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
