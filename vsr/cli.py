"""The commands: flags, exit codes and where output goes."""

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from vsr.commands.admin_address import read_admin_address
from vsr.commands.config_commands import apply, diff, plan, rollback, versions
from vsr.commands.graph_group import GraphGroup
from vsr.commands.status_commands import backends, drain, status
from vsr.config.migrate.command import migrate

if TYPE_CHECKING:
    from vsr.config.document.root import Document
    from vsr.config.source import Recipes

# ruff: noqa: PLC0415  # a command imports what it needs, so that `--help` answers at once

_FIRST_PROBLEMS = 20
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
    gc.disable()  # see `router_main`
    from vsr.compose.process import run_demo
    from vsr.errors import ConfigRejected

    try:
        run_demo(host, port)
    except ConfigRejected as error:
        _fail(error)


@main.group()
def config() -> None:
    """Work with the configuration document."""


@config.command()
@click.option(
    "--serve",
    metavar="MODE",
    type=click.Choice(["standalone", "extproc"]),
    help="Refuse what this version cannot serve in MODE; else it is only told.",
)
@_FILE
def validate(file: Path, serve: str | None) -> None:
    """Say whether FILE is a valid document, with every problem if not.

    Exits with 0 for a valid document, with 1 for a faulty one and, given --serve, for one that
    this version cannot serve.
    """
    from vsr.config.serving import Gateway
    from vsr.config.source import load_document, recipes_of, unserved
    from vsr.errors import ConfigRejected

    gateway = Gateway(serve or Gateway.STANDALONE)
    try:
        valid = load_document(file, os.environ)
        _check_graphs(recipes_of(valid, os.environ, gateway=gateway))
    except ConfigRejected as error:
        _fail(error)
    click.echo(f"{file}: valid ({_counts(valid.document)}), sha256 {valid.loaded.sha256}")
    for warning in valid.warnings:
        click.echo(f"warning: {warning}", err=True)
    problems = unserved(valid, os.environ, file=str(file), gateway=gateway)
    if problems:
        click.echo(f"this version cannot serve it in {gateway} mode:", err=True)
        shown = problems if serve else problems[:_FIRST_PROBLEMS]
        for problem in shown:
            click.echo(str(problem), err=True)
        if len(problems) > len(shown):
            more = len(problems) - len(shown)
            click.echo(f"and {more} more; --serve {gateway} tells them all", err=True)
        if serve is not None:
            sys.exit(1)


@config.command()
def schema() -> None:
    """Print the JSON schema of the document."""
    import json

    from vsr.config.json_schema import json_schema

    click.echo(json.dumps(json_schema(), indent=2))


@config.command()
@click.option("--redact", is_flag=True, default=True, help="Replace secrets; always on.")
@_FILE
def show(file: Path, *, redact: bool) -> None:
    """Print FILE with its defaults filled in and its secrets replaced."""
    from vsr.config.show import render
    from vsr.config.source import load_document
    from vsr.errors import ConfigRejected

    del redact
    try:
        valid = load_document(file, os.environ)
    except ConfigRejected as error:
        _fail(error)
    click.echo(render(valid.document, valid.loaded.lines), nl=False)


config.add_command(migrate)
for command in (apply, diff, plan, rollback, versions):
    config.add_command(command)
main.add_command(backends)
main.add_command(drain)
main.add_command(status)


@main.group(cls=GraphGroup)
def graph() -> None:
    """Work with request graphs."""


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
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 256),
    help="Serving processes; more than one get a supervisor.",
)
@click.option(
    "--metrics-address", default="127.0.0.1", show_default=True, help="Where metrics can be read."
)
@click.option(
    "--metrics-port", default=9190, show_default=True, help="Its port; 0 switches metrics off."
)
@click.option(
    "--admin-address",
    "admin",
    metavar="HOST:PORT",
    callback=read_admin_address,
    help="Where the management API listens; port 0 or nothing switches it off."
    "  [default: what the document says, else 127.0.0.1:8080]",
)
@click.option(
    "--config-history-limit",
    "history_limit",
    default=10,
    show_default=True,
    type=click.IntRange(min=1),
    help="Configurations that are kept beside the document.",
)
def router_main(  # noqa: PLR0913, PLR0917  # one per option
    config_path: Path,
    gateway: str,
    workers: int,
    metrics_address: str,
    metrics_port: int,
    admin: tuple[str, int] | None,
    history_limit: int,
) -> None:
    """Run the Router."""
    _check_gateway(gateway)
    gc.disable()  # nothing is garbage yet, and looking for some takes a fifth of the start
    from vsr.errors import VsrError
    from vsr.resources.listener import Listener

    metrics = None
    if metrics_port:
        metrics = Listener("metrics", metrics_address, metrics_port, timeout_s=60.0)
    try:
        if workers == 1:
            from vsr.compose.process import run_router

            run_router(config_path, metrics, admin=admin, history_limit=history_limit)
        else:
            from vsr.compose.supervisor import run_workers

            run_workers(config_path, workers, metrics, admin=admin, history_limit=history_limit)
    except VsrError as error:
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


def _check_graphs(recipes: "Recipes") -> None:
    """Compile the graphs of a document, if it has any.

    Raises:
        ConfigRejected: with every fault of them.
    """
    if not recipes.has_graphs:
        return
    from vsr.engine.recipe_graphs import check_graphs
    from vsr.engine.shipped import BUILTIN
    from vsr.errors import ConfigRejected

    problems = check_graphs(recipes.programs, recipes.clusters, BUILTIN)
    if problems:
        raise ConfigRejected(problems)


def _counts(document: "Document") -> str:
    from vsr.config.compile.snapshot import DEFAULT_LISTENERS

    listeners = DEFAULT_LISTENERS if document.listeners is None else document.listeners
    profiles = (document.routing, *(recipe.routing for recipe in document.recipes))
    counts = [
        _count(len(listeners), "listener"),
        _count(len(document.providers.models), "model"),
        _count(sum(len(profile.decisions) for profile in profiles), "decision"),
    ]
    if document.recipes:
        counts.append(_count(len(document.recipes), "recipe"))
    return ", ".join(counts)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
