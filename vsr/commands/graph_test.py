"""`vllm-sr graph test`: its flags, its exit code and what it says."""

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from vsr.dryrun.expect import Miss

# ruff: noqa: PLC0415  # the command imports what it needs, so that `--help` answers at once

_COLLECT_EVERY = 20


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
def test(directory: Path) -> None:
    """Run every *.scenario.yaml in DIR, and hold each against what it expects.

    A scenario is about the graph beside it that has its name (NAME.what.scenario.yaml is about
    NAME.yaml), or about what its `graph` and `config` name. DIR may be one scenario file.

    Exits with 1 if an expectation does not hold, or if there is no scenario.
    """
    gc.disable()
    from vsr.commands.dry_runs import SCENARIO_END
    from vsr.dryrun.render.misses import render_misses

    pattern = f"*{SCENARIO_END}"
    files = [directory] if directory.is_file() else sorted(directory.rglob(pattern))
    if not files:
        click.echo(f"{directory}: there is no {pattern}", err=True)
        sys.exit(1)
    failed = 0
    for at, file in enumerate(files):
        if at % _COLLECT_EVERY == _COLLECT_EVERY - 1:
            gc.collect()  # runs leave cycles behind
        shown = file if file == directory else file.relative_to(directory)
        count, misses, fault = _run(file)
        if not misses and fault is None:
            click.echo(f"ok      {shown} ({count} expected)")
            continue
        failed += 1
        click.echo(f"FAILED  {shown}")
        click.echo(render_misses(misses) if fault is None else fault, nl=fault is not None)
    click.echo(f"{len(files) - failed} passed, {failed} failed")
    if failed:
        sys.exit(1)


def _run(file: Path) -> "tuple[int, Sequence[Miss], str | None]":
    """Return how much a scenario expects, what does not hold, and what was faulty about it."""
    from vsr.commands.dry_runs import prepare_scenario
    from vsr.commands.virtual_router import start_virtual_router
    from vsr.dryrun.expect import check, count_expectations
    from vsr.dryrun.run import dry_run
    from vsr.errors import ConfigRejected

    try:
        subject, scenario = prepare_scenario(file, os.environ)
        record = dry_run(subject, scenario, scenario.seed, start_virtual_router)
    except ConfigRejected as error:
        return 0, (), str(error)
    if scenario.expect is None:
        return 0, (), f"{file}: expects nothing; add `expect`"
    return count_expectations(scenario.expect), check(record, scenario.expect), None
