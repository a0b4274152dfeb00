"""`vllm-sr config migrate`: its flags, its exit code and what it says."""

import sys
from pathlib import Path

import click

# ruff: noqa: PLC0415  # the command imports what it needs, so that `--help` answers at once


@click.command()
@click.option(
    "--config",
    "source",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The document to migrate; it is not changed.",
)
@click.option(
    "--output",
    "target",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where the result goes; by default beside the document, as NAME.migrated.yaml.",
)
@click.option("--force", is_flag=True, help="Overwrite the result if it exists.")
def migrate(source: Path, target: Path | None, *, force: bool) -> None:
    """Write a document of an older layout in the canonical one, comments kept."""
    from vsr.config.migrate.files import migrate_file
    from vsr.errors import ConfigRejected

    target = target or source.with_name(f"{source.stem}.migrated{source.suffix}")
    try:
        changes = migrate_file(source, target, force=force).changes
    except ConfigRejected as error:
        click.echo(str(error), err=True)
        sys.exit(1)
    for change in changes:
        click.echo(change)
    if changes:
        count = f"{len(changes)} change{'' if len(changes) == 1 else 's'}"
        check = f"check it with `vllm-sr config validate {target}`"
        click.echo(f"{target}: written, {count}; {check}")
    else:
        click.echo(f"{target}: written, the same as {source}, which has nothing to migrate")
