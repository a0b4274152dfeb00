"""Suspended runs in files: they outlive the process, and workers share them.

Source of modes, names and order: looper-algorithms 12.3.
"""

import os
import re
import stat
from functools import partial
from pathlib import Path

import attrs
import trio

from vsr.graph.suspend.run import SuspendedRun, decode_run, encode_run
from vsr.graph.suspend.store import is_state_id, not_kept
from vsr.graph.suspend.tool_ids import DrawBytes

_DIRECTORY_MODE = 0o700
_FILE_MODE = 0o600
_OTHERS = 0o077
_OURS = re.compile(r"[A-Za-z0-9_-]{1,64}\.(json|[0-9a-f]{16}\.(new|taken))")


@attrs.frozen
class FileStore:
    """One file per run in a directory that belongs to us alone; it is made when first needed.

    A file's modification time is when its run was suspended, so that none has to be read to see
    whether it is too old.
    """

    directory: Path
    draw: DrawBytes
    """For names that no other process takes."""
    ttl_s: float = 1800

    async def put(self, run: SuspendedRun, *, now_unix_s: float) -> None:
        """Keep a run, in the place of one with its id; files that are too old are removed.

        Raises:
            GraphFailed: the id is none, the directory is not ours alone, or it cannot be written.
        """
        if not is_state_id(run.state_id):
            raise not_kept(run.state_id, "bad id")
        try:
            await trio.to_thread.run_sync(self._put, run, now_unix_s)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else "its directory is not ours"
            raise not_kept(run.state_id, reason) from error

    async def take(self, state_id: str, *, now_unix_s: float) -> SuspendedRun | None:
        """Return a run and remove its file; None where it is unknown, expired or broken."""
        if not is_state_id(state_id):
            return None
        return await trio.to_thread.run_sync(self._take, state_id, now_unix_s)

    async def clear(self) -> None:
        """Remove all files of runs; others in the directory stay."""
        await trio.to_thread.run_sync(partial(self._sweep, before_unix_s=None))

    def _put(self, run: SuspendedRun, now_unix_s: float) -> None:
        self._make_directory()
        self._sweep(before_unix_s=now_unix_s - self.ttl_s)
        temporary = self._path(run.state_id, f"{self.draw(8).hex()}.new")
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(os.open(temporary, flags, _FILE_MODE), "wb") as file:
                file.write(encode_run(run))
            os.utime(temporary, (run.created_unix_s, run.created_unix_s))
            temporary.replace(self._path(run.state_id, "json"))
        except OSError:
            temporary.unlink(missing_ok=True)
            raise

    def _take(self, state_id: str, now_unix_s: float) -> SuspendedRun | None:
        # The rename is what only one taker can do.
        claimed = self._path(state_id, f"{self.draw(8).hex()}.taken")
        try:
            self._path(state_id, "json").rename(claimed)
        except OSError:
            return None
        try:
            run = decode_run(claimed.read_bytes())
        except OSError:
            run = None
        finally:
            claimed.unlink(missing_ok=True)
        if run is None or run.state_id != state_id:
            return None
        return None if now_unix_s - run.created_unix_s > self.ttl_s else run

    def _make_directory(self) -> None:
        self.directory.mkdir(mode=_DIRECTORY_MODE, parents=True, exist_ok=True)
        status = self.directory.lstat()
        # In a directory for temporary files anybody could have made it before us.
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            raise OSError("not our directory")
        if status.st_mode & _OTHERS:
            self.directory.chmod(_DIRECTORY_MODE)

    def _sweep(self, *, before_unix_s: float | None) -> None:
        """Remove our files that are older than `before_unix_s`, or all of them."""
        try:
            paths = list(self.directory.iterdir())
        except OSError:
            return
        for path in paths:
            if not _OURS.fullmatch(path.name):
                continue
            try:
                if before_unix_s is None or path.lstat().st_mtime < before_unix_s:
                    path.unlink()
            except OSError:
                continue  # another worker was faster

    def _path(self, state_id: str, ending: str) -> Path:
        return self.directory / f"{state_id}.{ending}"
