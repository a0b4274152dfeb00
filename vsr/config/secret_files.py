"""Secrets of the document that stand in files: `file:PATH` in place of the secret itself."""

from vsr.config.attempt import Code
from vsr.config.checks import is_header_value
from vsr.config.environment import Expanded
from vsr.config.files import FileRefused
from vsr.config.position import Path, Value
from vsr.config.report import Report

MAX_SECRET_BYTES = 64 * 1024
_PREFIX = "file:"


def file_reference(written: Value) -> str | None:
    """Return the reference to a file that `written` is, as its author wrote it; None if it is none.

    What an environment variable gives is never read as a reference: that is how a secret that
    begins like one is written.
    """
    if not isinstance(written, str):
        return None
    authored = written.authored if isinstance(written, Expanded) else written
    return authored if authored.startswith(_PREFIX) else None


def read_secrets(secret: object, path: Path, report: Report) -> object:
    """Return a secret, or a collection of some, each reference replaced by what its file holds.

    Args:
        secret: as read from the document; what stands for a secret in it is text.
        path: of it.
        report: knows what was written and the files; gets every problem.
    """
    if isinstance(secret, tuple):
        return tuple(read_secrets(each, (*path, at), report) for at, each in enumerate(secret))
    if isinstance(secret, dict):
        return {key: read_secrets(each, (*path, key), report) for key, each in secret.items()}
    if isinstance(secret, str) and secret.startswith(_PREFIX):
        return _read_secret(secret, path, report)
    return secret


def _read_secret(secret: str, path: Path, report: Report) -> str:
    if file_reference(report.lines.value(path)) is None:
        return secret
    try:
        content = report.files.read(secret.removeprefix(_PREFIX), MAX_SECRET_BYTES)
        return _text(content)
    except FileRefused as error:
        what = f"can't be read from {report.quote(path)}"
        report.add_broken(path, what, error.why, error.mend, code=Code.ARTIFACT_UNAVAILABLE)
        return ""


def _text(content: bytes) -> str:
    """Return the secret in a file: all of it but one line end at its end."""
    text = content.removesuffix(b"\n").removesuffix(b"\r").decode("latin-1")
    if not is_header_value(text):
        why = "a header line can't carry it: it is blank or has blanks around it, or holds other"
        mend = "write the secret alone into the file, on one line"
        raise FileRefused(f"{why} than visible ASCII", mend)
    return text
