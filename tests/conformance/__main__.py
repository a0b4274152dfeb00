"""Holds the Router to pinned facts: `python -m tests.conformance parity DIR`."""

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import click
import trio

from tests.conformance.drivers import Comparison, by_phases, compared, in_process
from tests.conformance.loading import CASES, CONFIG, EXPECTED, Folder, engine_of
from tests.conformance.looper import run_file
from tests.conformance.phases import read_cases as phase_fixtures
from tests.conformance.phases import run_case
from vsr.errors import ConfigRejected
from vsr.routing.parity.body_diff import BodyRule, Difference
from vsr.routing.parity.case import read_cases
from vsr.routing.parity.corpus import REWRITTEN, Judge, render_expected
from vsr.routing.parity.result import result_of

DIRECTORY = click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
_FIRST_CHARACTERS = 100


@click.group(help=__doc__)
def conformance() -> None:
    """Do nothing: the commands do."""


@conformance.command()
@DIRECTORY
@click.option("--case", "names", multiple=True, help="Only this case; may be given again.")
@click.option("--exact", is_flag=True, help="Compare bodies as text, not as JSON values.")
@click.option("--all", "shows_all", is_flag=True, help="List every difference, not the first.")
def parity(folder: Path, names: tuple[str, ...], *, exact: bool, shows_all: bool) -> None:
    """Run every case of a corpus both ways; exit with 1 if anything differs."""
    try:
        read = Folder.read(folder, BodyRule.AS_TEXT if exact else BodyRule.AS_JSON)
    except (OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    chosen = list(names or read.corpus.cases)
    unknown = [name for name in chosen if name not in read.corpus.cases]
    if unknown:
        raise click.ClickException(f"there is no case {unknown[0]}")
    comparisons = [trio.run(_compare, read, name) for name in chosen]
    click.echo(_table(comparisons))
    failed = [each for each in comparisons if not each.is_equal]
    for comparison in failed if shows_all else ():
        click.echo("\n".join(_listed(comparison)))
    click.echo(f"{len(comparisons) - len(failed)} of {len(comparisons)} cases are equal")
    sys.exit(bool(failed))


@conformance.command()
@DIRECTORY
def record(folder: Path) -> None:
    """Write the corpus's expected.yaml anew from what the Router does now; read the diff."""
    expected = folder / EXPECTED
    if expected.exists() and not expected.read_text(encoding="utf-8").startswith(REWRITTEN):
        raise click.ClickException(f"{expected} was not written by this command: left as it is")
    trio.run(_record, folder)


@conformance.command()
@DIRECTORY
def phases(folder: Path) -> None:
    """Run the session fixtures in a folder phase by phase; exit with 1 if anything differs."""
    cases = [case for path in sorted(folder.glob("*.yaml")) for case in phase_fixtures(path)]
    results = [trio.run(run_case, *case) for case in cases]
    for each in results:
        verdict = "differs" if each.differences else each.refusal or "equal"
        click.echo(f"{each.name}: {_shortened(verdict)}")
        for difference in each.differences:
            click.echo(f"  {difference}")
    equal = sum(not each.differences and not each.refusal for each in results)
    click.echo(f"{equal} of {len(results)} cases are equal")
    sys.exit(any(each.differences for each in results))


@conformance.command()
@DIRECTORY
@click.option("--case", "names", multiple=True, help="Only this case; may be given again.")
def looper(folder: Path, names: tuple[str, ...]) -> None:
    """Run the looper fixtures in a folder, one line each; exit with 1 if anything differs."""
    paths = [path for path in sorted(folder.glob("*.yaml")) if not names or path.stem in names]
    unknown = [name for name in names if name not in {path.stem for path in paths}]
    if unknown or not paths:
        raise click.ClickException(f"there is no case {' '.join(unknown)}".rstrip())
    failed = 0
    for path in paths:
        result = run_file(path)
        failed += not result.has_passed
        click.echo(f"{result.name}: {'passed' if result.has_passed else 'failed'}")
        for difference in result.differences:
            click.echo(f"  {difference}")
        for note in dict.fromkeys(result.notes):
            click.echo(f"  note: {note}")
    click.echo(f"{len(paths) - failed} passed, {failed} failed")
    sys.exit(bool(failed))


async def _compare(folder: Folder, name: str) -> Comparison:
    try:
        return await compared(folder.engine(), folder.corpus.cases[name], folder.judge(name))
    except ConfigRejected as error:
        failure = [Difference(f"{CONFIG} refused", "(served)", str(error.problems[0]))]
    except Exception as error:  # noqa: BLE001  # a bug in one case must not hide the others
        place = traceback.extract_tb(error.__traceback__)[-1]
        got = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
        failure = [Difference("raised", "(nothing)", got)]
    return Comparison(name, failure, failure)


async def _record(folder: Path) -> None:
    engine = engine_of(folder / CONFIG)
    results = {}
    for name, case in read_cases((folder / CASES).read_text(encoding="utf-8")).items():
        results[name] = result_of(await in_process(engine, case))
        judge = Judge(results[name], BodyRule.AS_TEXT)
        for difference in judge.differences(await by_phases(engine, case)):
            raise click.ClickException(f"{name}: the two drivers differ: {difference}")
    text = render_expected(results, f"python -m tests.conformance record {folder}")
    (folder / EXPECTED).write_text(text, encoding="utf-8")


def _table(comparisons: list[Comparison]) -> str:
    rows = [("case", "in process", "phase driver", "first difference")]
    for each in comparisons:
        first = str([*each.in_process, *each.by_phases, ""][0])
        rows.append((each.name, _verdict(each.in_process), _verdict(each.by_phases), first))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        "  ".join(
            [*map(str.ljust, row[:3], widths), _shortened(row[3].replace("\n", " "))]
        ).rstrip()
        for row in rows
    )


def _verdict(found: Sequence[Difference]) -> str:
    return f"{len(found)} differ" if found else "equal"


def _shortened(text: str) -> str:
    return text if len(text) <= _FIRST_CHARACTERS else text[:_FIRST_CHARACTERS] + "..."


def _listed(comparison: Comparison) -> list[str]:
    lines = ["", comparison.name]
    if comparison.in_process == comparison.by_phases:
        return [*lines, *(f"  both ways: {each}" for each in comparison.in_process)]
    lines += [f"  in process: {each}" for each in comparison.in_process]
    return [*lines, *(f"  phase driver: {each}" for each in comparison.by_phases)]


if __name__ == "__main__":
    conformance()
