"""Suspended runs in files: they outlive the process, and workers share them.

Source of modes, names and order: looper-algorithms 12.3.
"""

import errno
import logging
import os
import re
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import attrs
import trio

from vsr.errors import GraphFailed
from vsr.graph.suspend.run import SuspendedRun, decode_run, encode_run
from vsr.graph.suspend.store import is_state_id, not_kept
from vsr.graph.suspend.tool_ids import DrawBytes

_DIRECTORY_MODE = 0o700
_FILE_MODE = 0o600
_OTHERS = 0o077
_MAX_THREADS = 8
"""Of puts and takes; what hangs must not hold those that others use."""
_ONCE_MORE_S = 0.02
_GIVE_BACK_S = 0.25
"""How long a taker that was cancelled waits until what it has taken is back."""
_T = TypeVar("_T")
_LOST = "a run that waits for tools is lost"
_log = logging.getLogger("vsr.graph")
_OURS = re.compile(r"[A-Za-z0-9_-]{1,64}\.(json|[0-9a-f]{16}\.(new|taken))")


class _Turn:
    """What either a thread or the task that waits for it may do, whichever comes first."""

    def __init__(self) -> None:
        self._left = [None]

    def take(self) -> bool:
        """Return whether it is the caller's; a list gives each of its items away once."""
        try:
            self._left.pop()
        except IndexError:
            return False
        return True


@attrs.define
class _Claim:
    """A run that a thread has in hand, for a task that may give it up meanwhile."""

    path: Path
    """What the run's file is called while it is read or written."""
    turn: _Turn = attrs.field(factory=_Turn)
    """Taken by the thread to hand the run over, by the task to give up."""
    run: SuspendedRun | None = None
    is_over: bool = False
    """Whether the thread has ended."""


@attrs.define
class _Written:
    """One put: the thread may show the file unless the task has given up."""

    path: Path
    """Of the file before it is shown."""
    turn: _Turn = attrs.field(factory=_Turn)
    is_over: bool = False
    """Whether the thread has ended."""


@attrs.frozen
class FileStore:
    """One file per run in a directory that belongs to us alone; it is made when first needed.

    A file's modification time is when its run was suspended, so that none has to be read to see
    whether it is too old.

    Threads wait for the disk. A task that is cancelled leaves its thread behind, which then shows
    no run that it has written and gives back what it has claimed, whenever the disk goes on.
    """

    directory: Path
    draw: DrawBytes
    """For names that no other process takes."""
    ttl_s: float = 1800
    _limiter: trio.CapacityLimiter = attrs.field(
        factory=partial(trio.CapacityLimiter, _MAX_THREADS), eq=False
    )
    _returning: dict[str, list[_Claim]] = attrs.field(factory=dict, init=False, eq=False)
    """By state, runs that threads are about to give back."""
    _late: dict[str, list[_Written]] = attrs.field(factory=dict, init=False, eq=False)
    """By state, puts that were given up when their threads were about to show them."""

    async def put(self, run: SuspendedRun, *, now_unix_s: float) -> None:
        """Keep a run, in the place of one with its id; files that are too old are removed.

        Raises:
            GraphFailed: the id is none, the directory is not ours alone, or it cannot be written.
        """
        if not is_state_id(run.state_id):
            raise not_kept(run.state_id, "bad id")
        written = _Written(self._path(run.state_id, f"{self.draw(8).hex()}.new"))
        try:
            await self._in_thread(partial(self._put, run, written, now_unix_s), self._limiter)
        except trio.Cancelled:
            if not (written.turn.take() or written.is_over):
                _note(self._late, run.state_id, written)
            raise
        except OSError as error:
            raise _not_kept(run.state_id, error) from error

    async def put_back(self, run: SuspendedRun, *, now_unix_s: float) -> None:
        """Keep a run that was taken, as it was; its thread goes on if the task is cancelled.

        Raises:
            GraphFailed: it could not be kept.
        """
        late = self._late.pop(run.state_id, [])
        claim = _Claim(self._path(run.state_id, f"{self.draw(8).hex()}.new"), run=run)
        _note(self._returning, run.state_id, claim)
        # There are as many as runs were taken, and none of them may have to wait for a thread.
        limiter = trio.CapacityLimiter(1)
        try:
            await self._in_thread(partial(self._put_back, claim, late, now_unix_s), limiter)
        except trio.Cancelled:
            claim.turn.take()
            raise
        except OSError as error:
            raise _not_kept(run.state_id, error) from error

    async def take(self, state_id: str, *, now_unix_s: float) -> SuspendedRun | None:
        """Return a run and remove its file; None where it is unknown, expired or broken."""
        if not is_state_id(state_id):
            return None
        while True:
            # Looked at before: what is given back by now is found.
            is_expected = any(not each.is_over for each in self._returning.get(state_id, ()))
            run = await self._claim(state_id, now_unix_s)
            if run is not None or not is_expected:
                return run
            await trio.sleep(_ONCE_MORE_S)

    async def clear(self) -> None:
        """Remove all files of runs; others in the directory stay."""
        await self._in_thread(partial(self._sweep, before_unix_s=None), self._limiter)

    async def _in_thread(self, work: Callable[[], _T], limiter: trio.CapacityLimiter) -> _T:
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=limiter)

    async def _claim(self, state_id: str, now_unix_s: float) -> SuspendedRun | None:
        claim = _Claim(self._path(state_id, f"{self.draw(8).hex()}.taken"))
        begun = _Turn()

        def work() -> None:
            try:
                if begun.take():
                    self._take(state_id, claim, now_unix_s)
            finally:
                claim.is_over = True

        try:
            await self._in_thread(work, self._limiter)
        except trio.Cancelled:
            if begun.take():
                raise  # the thread never began
            if claim.turn.take():
                _note(self._returning, state_id, claim)
            elif claim.run is not None:
                with trio.CancelScope(shield=True, relative_deadline=_GIVE_BACK_S):
                    await self._give_back(claim.run, now_unix_s)
            raise
        return claim.run

    async def _give_back(self, run: SuspendedRun, now_unix_s: float) -> None:
        """Put back what was taken for a task that is cancelled, and will not hear of a failure."""
        try:
            await self.put_back(run, now_unix_s=now_unix_s)
        except GraphFailed as error:
            _log.error("%s: %s", _LOST, error)

    def _put(self, run: SuspendedRun, written: _Written, now_unix_s: float) -> None:
        self._make_directory()
        self._sweep(before_unix_s=now_unix_s - self.ttl_s)
        temporary = written.path
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(os.open(temporary, flags, _FILE_MODE), "wb") as file:
                file.write(encode_run(run))
            os.utime(temporary, (run.created_unix_s, run.created_unix_s))
            if written.turn.take():
                temporary.replace(self._path(run.state_id, "json"))
            else:
                temporary.unlink(missing_ok=True)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        finally:
            written.is_over = True

    def _put_back(self, claim: _Claim, late: list[_Written], now_unix_s: float) -> None:
        if claim.run is None:
            return
        try:
            for each in late:
                # Without it, it is shown already or never will be.
                each.path.unlink(missing_ok=True)
            self._put(claim.run, _Written(claim.path), now_unix_s)
        except OSError as error:
            if claim.turn.take():
                raise
            _tell_lost(error)  # nobody waits any more to be told
        finally:
            claim.is_over = True

    def _take(self, state_id: str, claim: _Claim, now_unix_s: float) -> None:
        """Find the run of a claim, unless its task has given up: then nothing has happened."""
        path, claimed = self._path(state_id, "json"), claim.path
        try:
            # The rename is what only one taker can do.
            path.rename(claimed)
        except OSError:
            return
        try:
            run = decode_run(claimed.read_bytes())
        except OSError:
            run = None
        if run is not None and run.state_id == state_id:
            is_old = now_unix_s - run.created_unix_s > self.ttl_s
            claim.run = None if is_old else run
        if claim.turn.take():
            claimed.unlink(missing_ok=True)
            return
        try:
            claimed.rename(path)
        except OSError as error:
            _tell_lost(error)

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


_Left = TypeVar("_Left", _Claim, _Written)


def _tell_lost(error: OSError) -> None:
    _log.error("%s: %s", _LOST, os.strerror(error.errno or errno.EIO))


def _note(table: dict[str, list[_Left]], state_id: str, left: _Left) -> None:
    """Note what a task has left to its thread, and forget what has ended meanwhile."""
    for known in list(table):
        table[known] = [each for each in table[known] if not each.is_over]
        if not table[known]:
            del table[known]
    table.setdefault(state_id, []).append(left)


def _not_kept(state_id: str, error: OSError) -> GraphFailed:
    reason = os.strerror(error.errno) if error.errno else "its directory is not ours"
    return not_kept(state_id, reason)
