"""The document as a file: looked at again and again, and read when it has changed.

Looking takes a few microseconds of a worker thread twice a second. It sees what every way of
writing a file comes to: written in place, renamed over, a link that leads elsewhere (as Kubernetes
mounts swap), on any file system; see ADR 23.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import attrs
import msgspec
import trio

from vsr.config.attempt import Attempt, Code, Reason, Stage
from vsr.config.history import Document
from vsr.config.lifecycle import Ticket, Update
from vsr.config.load import MAX_DOCUMENT_BYTES
from vsr.config.origin import Origin, OriginSource

LOOK_EVERY_S = 0.5
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


_UNSEEN = Stamp(size_bytes=-1)
Stamps = Mapping[Path, Stamp]


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

    A file that changes is read once two looks in a row see the same: whoever writes it in place is
    not interrupted in the middle.
    """

    read: Stamps
    """As they were when they were read last."""
    _before: Stamps = attrs.field(factory=dict, init=False)

    def is_due(self, seen: Stamps) -> bool:
        """Return whether they are to be read now."""
        is_settled, self._before = seen == self._before, seen
        return is_settled and seen != self.read

    def follow(self, files: Collection[Path], seen: Stamps) -> None:
        """Look at other files from now on, too; those that are new count as read."""
        self.read = {file: self.read.get(file, seen.get(file, Stamp())) for file in files}
        self._before = {}


@attrs.define(eq=False)
class FileSource:
    """Submits a file's document whenever it changes."""

    path: Path
    submit: Submit
    reject: Reject
    origin_of: Callable[[bytes], Origin | None] = lambda _: None
    """Who wrote these bytes, if somebody said so before; else it is the file that changed."""
    every_s: float = LOOK_EVERY_S
    included: frozenset[str] = frozenset()
    """Files that the document includes, by the path that it writes."""
    _stamps: Stamps = attrs.field(factory=dict, init=False)
    """As last seen."""
    _wanted: trio.Event = attrs.field(factory=trio.Event, init=False)
    _is_forced: bool = attrs.field(default=False, init=False)

    def follow(self, included: Collection[str]) -> None:
        """Look at the files that a document includes, too."""
        self.included = frozenset(included)

    def reread(self) -> None:
        """Read the file at once, whether it has changed or not."""
        self._is_forced = True
        self._wanted.set()

    async def run(
        self, read: bytes, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Look until cancelled.

        Args:
            read: what the document was when it was read last.
            task_status: started once the first look was taken.
        """
        # Who knows what it has become since it was read: it is compared once.
        watched = Watched({**await self._look(), self.path: _UNSEEN})
        task_status.started()
        last = read
        while True:
            await self._pause()
            seen = await self._look()
            if set(seen) != set(watched.read):
                watched.follow(seen.keys(), seen)
                continue
            if not self._is_forced and not watched.is_due(seen):
                continue
            is_forced, self._is_forced = self._is_forced, False
            text = await self._read()
            changed = [file for file in seen if seen[file] != watched.read[file]]
            watched.read = seen
            if text is None or (text == last and changed == [self.path] and not is_forced):
                continue  # touched, and nothing else
            last = text
            self._submit(text, seen)

    def _submit(self, text: bytes, seen: Stamps) -> None:
        origin = self.origin_of(text) or Origin(OriginSource.FILE)
        self.submit(
            Update(
                Document(text),
                origin,
                self.path,
                is_newest=lambda: self._stamps.get(self.path) == seen.get(self.path),
                on_included=self.follow,
            )
        )

    async def _read(self) -> bytes | None:
        try:
            return await trio.to_thread.run_sync(_read, self.path)
        except OSError as error:
            message = f"can't be read, {error.strerror or 'it cannot be used'}, check the path"
            reason = Reason(Stage.PARSE, Code.INVALID_DOCUMENT, message, file=str(self.path))
            self.reject("", Origin(OriginSource.FILE), (reason,))
            return None

    async def _look(self) -> Stamps:
        files = [self.path, *(self.path.parent / name for name in sorted(self.included))]
        self._stamps = await trio.to_thread.run_sync(look, files)
        return self._stamps

    async def _pause(self) -> None:
        with trio.move_on_after(self.every_s):
            await self._wanted.wait()
            self._wanted = trio.Event()


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        # One byte more than allowed, so that the limit shows.
        return file.read(MAX_DOCUMENT_BYTES + 1)
