"""`vllm-sr graph dry-run`: its flags, its exit code and what it says."""

import gc
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vsr.commands.graph_options import CONFIG, PARAM, REQUEST, read_params

if TYPE_CHECKING:
    from vsr.dryrun.record import Record
    from vsr.dryrun.scenario import Scenario
    from vsr.dryrun.subject import Subject

# ruff: noqa: PLC0415  # the command imports what it needs, so that `--help` answers at once

_FORMS = ("text", "json", "mermaid", "svg", "html")


@click.command("dry-run")
@click.argument("graph")
@CONFIG
@click.option(
    "--scenario",
    "scenario_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="What models, runtime and client do; the rest is assumed, and said so.",
)
@REQUEST
@PARAM
@click.option("--seed", type=int, help="Of latencies and back-offs; else the scenario's, or 0.")
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run N times, with N seeds, and show percentiles.",
)
@click.option(
    "--output", type=click.Choice(_FORMS), default="text", show_default=True, help="In which form."
)
@click.option("--timing", is_flag=True, help="Say on stderr how long it took.")
def dry_run(  # noqa: PLR0913, PLR0917  # an option each
    graph: str,
    config: Path | None,
    scenario_file: Path | None,
    request: Path | None,
    params: tuple[str, ...],
    seed: int | None,
    runs: int | None,
    output: str,
    *,
    timing: bool,
) -> None:
    """Show what GRAPH will do, in virtual time and without calling anybody.

    GRAPH is a graph of the document (NAME or RECIPE:NAME), builtin/NAME, a YAML file that holds
    a graph, or a *.scenario.yaml file.

    Exits with 1 if something is faulty, or if the scenario expects what does not come.
    """
    gc.disable()  # what it builds it needs until its end
    from vsr.commands.dry_runs import Source, prepare
    from vsr.errors import ConfigRejected

    source = Source(graph, config, scenario_file, request, read_params(params))
    began = time.perf_counter()
    try:
        subject, scenario = prepare(source, os.environ)
        prepared = time.perf_counter()
        first_seed = scenario.seed if seed is None else seed
        if runs is not None:
            _many(subject, scenario, (first_seed, runs), output)
        else:
            _one(subject, scenario, first_seed, output)
    except ConfigRejected as error:
        click.echo(str(error), err=True)
        sys.exit(1)
    finally:
        if timing:
            _tell_timing(began, locals().get("prepared", began))


def _one(subject: "Subject", scenario: "Scenario", seed: int, output: str) -> None:
    from vsr.commands.virtual_router import start_virtual_router
    from vsr.dryrun.expect import check
    from vsr.dryrun.render.misses import render_misses
    from vsr.dryrun.run import dry_run as run_dry

    record = run_dry(subject, scenario, seed, start_virtual_router)
    click.echo(render(record, output), nl=False)
    if scenario.expect is not None:
        misses = check(record, scenario.expect)
        if misses:
            click.echo(f"\nEXPECTED\n{render_misses(misses)}", nl=False, err=output != "text")
            sys.exit(1)


def _many(subject: "Subject", scenario: "Scenario", seeds: tuple[int, int], output: str) -> None:
    from vsr.commands.virtual_router import start_virtual_router
    from vsr.dryrun.render.as_json import statistics_json
    from vsr.dryrun.render.statistics_text import render_statistics
    from vsr.dryrun.run import dry_run as run_dry
    from vsr.dryrun.statistics import Tally

    if output not in {"text", "json"}:
        raise click.UsageError("--runs shows text or json")
    gc.enable()  # a run leaves cycles behind, and a thousand of them would not fit
    first, runs = seeds
    tally = Tally()
    for at in range(runs):
        tally.add(run_dry(subject, scenario, first + at, start_virtual_router))
    statistics = tally.result(subject.name, first)
    shown = render_statistics if output == "text" else statistics_json
    click.echo(shown(statistics), nl=False)


def render(record: "Record", output: str) -> str:
    """Return a run in one of the forms that the command offers."""
    match output:
        case "json":
            from vsr.dryrun.render.as_json import render_json as shown
        case "mermaid":
            from vsr.dryrun.render.mermaid import render_mermaid as shown
        case "svg":
            from vsr.dryrun.render.svg import render_svg as shown
        case "html":
            from vsr.dryrun.render.html import render_html as shown
        case _:
            from vsr.dryrun.render.text import render_text as shown
    return shown(record)


def _tell_timing(began: float, prepared: float) -> None:
    now = time.perf_counter()
    click.echo(
        f"inside {now - began:.3f} s (reading {prepared - began:.3f} s, running and showing "
        f"{now - prepared:.3f} s); CPU of the whole command {time.process_time():.3f} s",
        err=True,
    )
