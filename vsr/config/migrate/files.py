"""The document that a migration reads, and the one that it writes."""

import os
import shutil
import tempfile
from pathlib import Path

from vsr.config.load import MAX_DOCUMENT_BYTES
from vsr.config.migrate.text import MigrationResult, migrate_text
from vsr.config.report import Report


def migrate_file(source: Path, target: Path, *, force: bool) -> MigrationResult:
    """Write the canonical form of `source` to `target`, which must not exist unless `force`.

    Raises:
        ConfigRejected: the document can't be read or migrated, or the result can't be written.
    """
    result = _migrated(source)
    _write(result.text, source, target, force=force)
    return result


def _migrated(source: Path) -> MigrationResult:
    report = Report(str(source))
    try:
        with source.open("rb") as file:
            # One byte more than allowed, so that the limit shows.
            data = file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        report.add((), "can't be read", error.strerror or "", "check the path", line=1)
        raise report.rejection() from error
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        report.add((), "is not UTF-8 text", mend="save the file as UTF-8", line=line)
        raise report.rejection() from error
    return migrate_text(text, str(source))


def _write(text: str, source: Path, target: Path, *, force: bool) -> None:
    """Write `target` whole or not at all, readable for whoever could read `source`."""
    report = Report(str(target))
    try:
        if not force:
            target.touch(exist_ok=False)
        try:
            _replace(target, text, source)
        except OSError:
            if not force:
                target.unlink()
            raise
    except FileExistsError as error:
        report.add((), "exists already", mend="pass --force, or another --output")
        raise report.rejection() from error
    except OSError as error:
        report.add((), "can't be written", error.strerror or "", "check the path", line=1)
        raise report.rejection() from error


def _replace(target: Path, text: str, source: Path) -> None:
    # Only the owner can read it before it has the permissions of `source`.
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode())
        shutil.copymode(source, temporary)
        Path(temporary).replace(target)
    except OSError:
        Path(temporary).unlink()
        raise
