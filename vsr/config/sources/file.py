"""The document as a file: looked at again and again, and read when it has changed.

Looking takes a tenth of a millisecond of a worker thread ten times a second. It sees what every way
of writing a file comes to: written in place, renamed over, a link that leads elsewhere (as
Kubernetes mounts swap), on any file system; see ADR 23.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import attrs
import msgspec
import trio

from vsr.config.attempt import Attempt, Code, Reason, Stage
from vsr.config.history import Document
from vsr.config.lifecycle import Ticket, Update
from vsr.config.load import MAX_DOCUMENT_BYTES
from vsr.config.origin import Origin, OriginSource

LOOK_EVERY_S = 0.1
_PATIENCE_LOOKS = 5
"""For a file that changes with every look."""
_log = logging.getLogger("vsr.config")
Submit = Callable[[Update], Ticket]
Reject = Callable[[str, Origin, tuple[Reason, ...]], Attempt]


class Stamp(msgspec.Struct, frozen=True):
    """What tells that a file has changed; all zero: it is not there."""

    device: int = 0
    inode: int = 0
    modified_ns: int = 0
    changed_ns: int = 0
    size_bytes: int = 0


Stamps = Mapping[Path, Stamp]
_T = TypeVar("_T")


def look(files: Collection[Path]) -> Stamps:
    """Return the stamps of files; blocks on the disk."""
    return {file: _stamp(file) for file in files}


def _stamp(file: Path) -> Stamp:
    try:
        status = file.stat()
    except OSError:
        return Stamp()
    return Stamp(
        status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size
    )


@attrs.define
class Watched:
    """Says when files that were looked at are to be read.

    One that another file took the place of is read at once. One that is written in place is read
    when two looks in a row see the same, so that nobody is interrupted in the middle, or after some
    patience with one that never settles.
    """

    read: Stamps = attrs.field(factory=dict)
    """As they were when they were read last; empty: they are to be read."""
    _before: Stamps = attrs.field(factory=dict, init=False)
    _waited: int = attrs.field(default=0, init=False)

    def is_due(self, seen: Stamps) -> bool:
        """Return whether they are to be read now."""
        before, self._before = self._before, seen
        if seen == self.read:
            self._waited = 0
            return False
        self._waited += 1
        if seen != before and not self._is_replaced(seen) and self._waited < _PATIENCE_LOOKS:
            return False
        self._waited = 0
        return True

    def _is_replaced(self, seen: Stamps) -> bool:
        """Return whether every file that has changed is another file now."""
        changed = [file for file in seen if seen[file] != self.read.get(file)]
        return all(
            seen[file].inode and seen[file].inode != self.read.get(file, Stamp()).inode
            for file in changed
        )


Contents = Mapping[Path, bytes | None]
"""Of files; None: it cannot be read."""


@attrs.define(eq=False)
class FileSource:
    """Submits a file's document whenever what it says is another one, with what it includes.

    Stamps only say when to read; what was read is compared with what was submitted, so a change
    counts however its stamps move, and a touched file does not.
    """

    path: Path
    submit: Submit
    reject: Reject
    origin_of: Callable[[bytes], Origin | None] = lambda _: None
    """Who wrote these bytes, if somebody said so before; else it is the file that changed."""
    every_s: float = LOOK_EVERY_S
    _taken: dict[Path, bytes | None] = attrs.field(factory=dict, init=False)
    """Of all files, as they were submitted last, or compiled since."""
    _newest: object = attrs.field(default=None, init=False)
    """Stands for the last update that was submitted."""
    _wanted: trio.Event = attrs.field(factory=trio.Event, init=False)
    _is_forced: bool = attrs.field(default=False, init=False)
    _fault: str = attrs.field(default="", init=False)
    """Why the document could not be read at the last look."""

    def follow(self, included: Mapping[str, bytes | None]) -> None:
        """Look at the files that a document includes, too; these are what it was compiled with."""
        text = self._taken.get(self.path)
        files = {self.path.parent / name: content for name, content in included.items()}
        self._taken = {self.path: text, **files}

    def reread(self) -> None:
        """Read the file at once, whether it has changed or not."""
        self._is_forced = True
        self._wanted.set()

    def look_now(self) -> None:
        """Look at once: somebody has just written the file, if it was not seen before."""
        self._wanted.set()

    async def run(
        self, begun: Document, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Look until cancelled; `begun` serves. Begun again, it goes on from what it took last."""
        if not self._taken:
            self._taken = {self.path: begun.text}
            self.follow(begun.included)
        watched = Watched()
        task_status.started()
        while True:
            await self._pause()
            seen = await _in_thread(look, tuple(self._taken))
            is_forced, self._is_forced = self._is_forced, False
            if not watched.is_due(seen) and not is_forced:
                continue
            contents = await self._read()
            if contents is None:
                self._is_forced = is_forced
                continue  # it is tried again with the next look
            watched.read = seen
            author = self.origin_of(contents[self.path] or b"")
            if contents != self._taken or is_forced or author is not None:
                self._submit(contents, author or Origin(OriginSource.FILE), rereads=is_forced)

    def _submit(self, contents: Contents, origin: Origin, *, rereads: bool) -> None:
        text = contents[self.path] or b""
        self._taken, newest = dict(contents), object()
        self._newest = newest
        self.submit(
            Update(
                Document(text),
                origin,
                self.path,
                is_newest=lambda: self._newest is newest,
                on_included=self._follow_if(newest),
                rereads=rereads,
            )
        )

    def _follow_if(self, newest: object) -> Callable[[Mapping[str, bytes | None]], None]:
        def follow(included: Mapping[str, bytes | None]) -> None:
            if self._newest is newest:
                self.follow(included)

        return follow

    async def _read(self) -> Contents | None:
        """Return what all files hold; None where the document cannot be read, which is told once.

        A file that it includes is another matter: whoever compiles it says what is wrong.
        """
        contents = await _in_thread(_read_all, tuple(self._taken))
        found = contents[self.path]
        if isinstance(found, OSError):
            fault = found.strerror or "it cannot be used"
            if fault != self._fault:
                message = f"can't be read, {fault}, check the path"
                reason = Reason(Stage.PARSE, Code.INVALID_DOCUMENT, message, file=str(self.path))
                self.reject("", Origin(OriginSource.FILE), (reason,))
            self._fault = fault
            return None
        self._fault = ""
        return {
            file: None if isinstance(content, OSError) else content
            for file, content in contents.items()
        }

    async def _pause(self) -> None:
        with trio.move_on_after(self.every_s):
            await self._wanted.wait()
            self._wanted = trio.Event()


async def _in_thread(work: Callable[[Sequence[Path]], _T], files: Sequence[Path]) -> _T:
    """Do what blocks on the disk, which may hang, in a thread that nobody need wait for."""
    return await trio.to_thread.run_sync(work, files, abandon_on_cancel=True)


def _read_all(files: Sequence[Path]) -> dict[Path, bytes | OSError]:
    return {file: _read(file) for file in files}


def _read(path: Path) -> bytes | OSError:
    try:
        with path.open("rb") as file:
            # One byte more than allowed, so that the limit shows.
            return file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        return error
