"""`vllm-sr graph run`: its flags, its exit code and what it says."""

import gc
import os
import sys
from pathlib import Path

import click

from vsr.commands.graph_options import PARAM, REQUEST, read_params

# ruff: noqa: PLC0415  # the command imports what it needs, so that `--help` answers at once

_FORMS = ("text", "json", "mermaid", "svg", "html", "answer")


@click.command("run")
@click.argument("graph")
@click.argument("question", required=False)
@click.option(
    "--config",
    metavar="DOC",
    required=True,
    type=click.Path(path_type=Path),
    help="The configuration document, whose backends are called.",
)
@REQUEST
@PARAM
@click.option(
    "--output", type=click.Choice(_FORMS), default="text", show_default=True, help="In which form."
)
def run(
    graph: str,
    question: str | None,
    config: Path,
    request: Path | None,
    params: tuple[str, ...],
    output: str,
) -> None:
    """Run GRAPH for real, with QUESTION or a request from a file, and show what it did.

    GRAPH is a graph of the document (NAME or RECIPE:NAME), builtin/NAME, or a YAML file that
    holds a graph. Progress goes to stderr.

    Exits with 1 if something is faulty, or if the answer is no success.
    """
    if (question is None) is (request is None):
        raise click.UsageError("give either QUESTION or --request")
    gc.disable()
    from vsr.commands.dry_runs import Source, prepare, read_request
    from vsr.commands.graph_dry_run import render
    from vsr.commands.real_run import run_for_real
    from vsr.dryrun.scenario import RequestScript
    from vsr.errors import ConfigRejected

    source = Source(graph, config, params=read_params(params))
    try:
        subject, _ = prepare(source, os.environ, is_dry=False)
        if subject.assumed:
            missing = ", ".join(name for _, name in subject.assumed)
            raise click.UsageError(f"give the graph's parameters with --param: {missing}")
        asked = {"messages": [{"role": "user", "content": question}]}
        script = RequestScript(asked) if request is None else read_request(request)
        record = run_for_real(subject, script, lambda line: click.echo(line, err=True))
    except ConfigRejected as error:
        click.echo(str(error), err=True)
        sys.exit(1)
    answer = f"{record.answer.text}\n"
    click.echo(answer if output == "answer" else render(record, output), nl=False)
    if not record.has_succeeded:
        sys.exit(1)
