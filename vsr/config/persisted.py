"""The document's file: read whole, and replaced whole."""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from vsr.config.history import Document
from vsr.config.load import MAX_DOCUMENT_BYTES


class FileChanged(Exception):
    """The file holds something else than whoever wants to replace it has seen."""


def read_file(path: Path) -> bytes:
    """Return what the document's file holds, one byte more than the limit at most.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return file.read(MAX_DOCUMENT_BYTES + 1)


def replace_file(path: Path, document: Document, replaced: bytes) -> None:
    """Write a document, and files that it includes where they hold something else.

    Everything is written beside what it takes the place of, and renamed once all of it is on disk.
    Permissions stay as they were; a link stays one, and what it leads to is replaced.

    Args:
        path: of the document.
        document: what is to be there; included paths start at the document's folder.
        replaced: what must be there now.

    Raises:
        FileChanged: it is not.
        OSError: something cannot be written; nothing was replaced, unless renaming failed half-way.
    """
    contents = {path.parent / name: each for name, each in document.included.items()}
    wanted = {file: each for file, each in contents.items() if _held(file) != each}
    wanted[path] = document.text  # last: whoever looks at it finds the others as they shall be
    with contextlib.ExitStack() as drafts:
        prepared = [
            (drafts.enter_context(_draft(file.resolve(), each)), file.resolve())
            for file, each in wanted.items()
        ]
        if read_file(path) != replaced:
            raise FileChanged
        # All at once: what somebody else writes in the meantime would be lost.
        for draft, target in prepared:
            draft.replace(target)
        for folder in {target.parent for _, target in prepared}:
            _sync(folder)


def _held(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


@contextlib.contextmanager
def _draft(target: Path, content: bytes) -> Iterator[Path]:
    """Write `content` beside `target`, and take it away again unless it was renamed."""
    draft = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _take_over(target, file.fileno())
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _take_over(target: Path, descriptor: int) -> None:
    """Give a draft the permissions and, where that is allowed, the owner of what it replaces."""
    try:
        status = target.stat()
    except FileNotFoundError:
        return
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
    with contextlib.suppress(PermissionError):
        os.fchown(descriptor, status.st_uid, status.st_gid)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
