"""One file on disk to one snapshot, or to every reason against it."""

from collections.abc import Mapping
from pathlib import Path

import attrs

from vsr.config.compile import compile_snapshot
from vsr.config.document import Document
from vsr.config.load import MAX_DOCUMENT_BYTES, Loaded, load
from vsr.config.report import Report
from vsr.config.structure import structure
from vsr.config.validate import validate
from vsr.resources.snapshot import Snapshot


@attrs.frozen
class Checked:
    """A faultless document in its three forms."""

    loaded: Loaded
    document: Document
    snapshot: Snapshot


def load_snapshot(path: Path, environ: Mapping[str, str]) -> Snapshot:
    """Return the compiled document at `path`.

    Args:
        path: of a YAML file.
        environ: resolves references and `api_key_env`.

    Raises:
        ConfigRejected: with every problem that any stage found.
    """
    return check_file(path, environ).snapshot


def check_file(path: Path, environ: Mapping[str, str]) -> Checked:
    """Return the document at `path` in every form it takes on its way to a snapshot.

    Raises:
        ConfigRejected: with every problem that any stage found.
    """
    report = Report(str(path))
    return check_bytes(_read(path, report), environ, report)


def check_bytes(data: bytes, environ: Mapping[str, str], report: Report) -> Checked:
    """Return the document in `data` in every form; `report` names the file it came from.

    Raises:
        ConfigRejected: with every problem that any stage found.
    """
    loaded = load(data, environ, report)
    if loaded is None:
        raise report.rejection()
    report.lines = loaded.lines
    document = structure(loaded.values, report)
    validate(document, environ, report)
    if report.has_problems():
        raise report.rejection()
    snapshot = compile_snapshot(document, sha256=loaded.sha256, environ=environ)
    return Checked(loaded, document, snapshot)


def _read(path: Path, report: Report) -> bytes:
    try:
        with path.open("rb") as file:
            # One byte more than allowed, so that the limit shows.
            return file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        report.add((), "can't be read", error.strerror or "", "check the path", line=1)
        raise report.rejection() from error
