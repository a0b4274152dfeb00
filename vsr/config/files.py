"""Files that a document names: read once, with limits, and refused in words its author can use."""

import errno
import os
import stat
from pathlib import Path

import attrs


class FileRefused(Exception):
    """A file cannot be used; says why, and how to mend it, without a word of what it holds."""

    def __init__(self, why: str, mend: str) -> None:
        super().__init__(why)
        self.why = why
        self.mend = mend


@attrs.define
class DocumentFiles:
    """What the files hold that one document names, by the path that it writes."""

    folder: Path | None = None
    """Where relative paths start; None: the document is no file, and may name none."""
    allowed: frozenset[str] | None = None
    """What may be read, by the path that the document writes; None: anything."""
    contents: dict[str, bytes] = attrs.field(factory=dict, init=False, repr=False)
    """Of every file that has been read."""

    def path_of(self, name: str) -> Path:
        """Return where a file is that the document names; only where `read` has found it."""
        return Path(name) if self.folder is None else self.folder / name

    def read(self, name: str, limit_bytes: int) -> bytes:
        """Return what the file holds; it is read once, so that all see the same.

        Args:
            name: path as the document writes it.
            limit_bytes: of its size.

        Raises:
            FileRefused: it is missing, unreadable, empty or too large, no regular file, a file that
                everybody may write, or not allowed.
        """
        if self.folder is None:
            why = "only a document that is a file itself may name files"
            raise FileRefused(why, "write the document to a file")
        if self.allowed is not None and name not in self.allowed:
            why = "whoever may not write the document may not let other files be read"
            raise FileRefused(why, "name a file that the persisted document names, too")
        content = self.contents.get(name)
        if content is None:
            content = self.contents[name] = _read(self.folder / name, limit_bytes)
        if len(content) > limit_bytes:
            raise FileRefused(f"it is longer than {limit_bytes} bytes", "correct the path")
        return content


def _read(file: Path, limit_bytes: int) -> bytes:
    """Return what the file holds, one byte more than the limit at most."""
    try:
        # Not to wait for whoever writes to a pipe: what it is shows below.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            _check(os.fstat(descriptor))
            with os.fdopen(descriptor, "rb", closefd=False) as opened:
                content = opened.read(limit_bytes + 1)
        finally:
            os.close(descriptor)
    except ValueError:
        raise FileRefused("no path holds a NUL", "correct the path") from None
    except OSError as error:
        raise FileRefused(error.strerror or "it can't be read", _mend(error)) from None
    if not content:
        raise FileRefused("it is empty", "write to it what is wanted, or correct the path")
    return content


def _check(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise FileRefused("it is not a regular file", "correct the path")
    if status.st_mode & stat.S_IWOTH:
        raise FileRefused("everybody may write it", "take that permission away with chmod o-w")


def _mend(error: OSError) -> str:
    if error.errno in {errno.EACCES, errno.EPERM}:
        return "let the user that the Router runs as read it"
    return "correct the path; a relative one starts at the document's folder"
