"""The life of a configuration: one change after the other, each served whole or not at all.

parse, compile, validate, warm, activate; see standalone-mode 5.1. What does the work of a stage is
given: a compiler, which is never the loop that serves, and an installation, which is one process
or several.
"""

import hashlib
import logging
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import attrs
import msgspec
import trio

from vsr.config.attempt import (
    ActiveConfiguration,
    Attempt,
    AttemptStatus,
    Code,
    LifecycleStatus,
    Reason,
    Stage,
    reasons_of,
)
from vsr.config.history import Document
from vsr.config.origin import Origin
from vsr.errors import ConfigRejected, Problem, VsrError
from vsr.resources.snapshot import Snapshot

_log = logging.getLogger("vsr.config")
_PATIENCE_S = 0.5
_TIDY_S = 5.0
"""How long a record, or giving up what was built, may take however the process ends."""


def _always() -> bool:
    return True


def _unheard(files: Mapping[str, bytes | None]) -> None:
    del files


class Update(msgspec.Struct, frozen=True):
    """A change that somebody wants."""

    document: Document
    """As far as it is at hand: files that it includes are read when it is compiled."""
    origin: Origin
    file: Path | None = None
    """That it stands in; None: it is no file, and may name none."""
    is_newest: Callable[[], bool] = _always
    """Whether its source has nothing newer by now."""
    on_included: Callable[[Mapping[str, bytes | None]], None] = _unheard
    """Told what the files held that the document includes, by the path that it writes, when it was
    compiled or refused; None: one could not be read."""
    rereads: bool = False
    """Whether all files that it names are to be read anew, however lately somebody did."""
    is_recorded: bool = True
    """Whether its document goes into the history, or stays where it is, as in Kubernetes."""

    @property
    def hash(self) -> str:
        """Return the SHA-256 of the document alone, lower-case hex."""
        return hashlib.sha256(self.document.text).hexdigest()


class Compiled(msgspec.Struct, frozen=True):
    """What a document comes to."""

    snapshot: Snapshot
    """Its hash covers the files that the document includes."""
    document: Document
    """With these files."""
    warnings: tuple[Problem, ...] = ()


class Refused(Exception):
    """A stage refuses a change, with every reason that it found."""

    def __init__(self, stage: Stage, reasons: tuple[Reason, ...]) -> None:
        super().__init__("; ".join(reason.message for reason in reasons))
        self.stage = stage
        self.reasons = reasons


class Prepared(Protocol):
    """A configuration that is built and warm wherever it is to serve."""

    @property
    def reused(self) -> tuple[str, ...]:
        """Return the components that would serve on as they are."""
        ...

    async def commit(self) -> None:
        """Serve it everywhere, in one step; nothing of it may fail any more."""
        ...

    async def discard(self) -> None:
        """Give up what was built."""
        ...


class Compiler(Protocol):
    """Parses, compiles and validates; elsewhere than on the loop that serves."""

    async def compile(self, update: Update, on_stage: Callable[[Stage], object]) -> Compiled:
        """Return what the document of `update` comes to.

        Raises:
            Refused: with every reason.
        """
        ...


class Installation(Protocol):
    """Whatever serves: one process, or the workers of a supervisor."""

    def check(self, snapshot: Snapshot) -> tuple[Reason, ...]:
        """Return why the process that runs cannot take `snapshot`, building nothing."""
        ...

    async def prepare(self, snapshot: Snapshot, version: int) -> Prepared:
        """Build and warm everything that serves `snapshot` as `version`.

        Raises:
            ConfigRejected: it cannot be built.
            VsrError: it cannot be warmed.
        """
        ...


class Recorder(Protocol):
    """Keeps what was served."""

    async def record(self, document: Document | None, active: ActiveConfiguration) -> None:
        """Record what serves now; a failure is told, and stops nothing."""
        ...


Observer = Callable[[Attempt], None]
"""Told of every attempt when it begins, at each stage, and when it has ended."""


class Ticket(msgspec.Struct, eq=False):
    """A change that waits for its turn, and then how it went."""

    update: Update
    ended: Attempt | None = None
    _done: trio.Event = msgspec.field(default_factory=trio.Event)

    async def wait(self) -> Attempt:
        """Wait for its end; whoever waits may leave, and the change goes on."""
        await self._done.wait()
        assert self.ended is not None  # noqa: S101  # set before the event
        return self.ended

    def end(self, attempt: Attempt) -> None:
        """Note how it ended, and wake who waits."""
        self.ended = attempt
        self._done.set()


@attrs.define(eq=False)
class Lifecycle:
    """Takes changes one at a time, in the order in which they were submitted."""

    compiler: Compiler
    installation: Installation
    recorder: Recorder
    unix: Callable[[], float]
    """Now, in seconds since 1970."""
    last_version: int = 0
    """Of the history and of this process."""
    observers: list[Observer] = attrs.field(factory=list)
    status: LifecycleStatus = attrs.field(factory=LifecycleStatus, init=False)
    is_shutting_down: bool = attrs.field(default=False, init=False)
    """Whether no change is begun any more."""
    _attempts: int = attrs.field(default=0, init=False)
    _running: Attempt | None = attrs.field(default=None, init=False)
    """The last change that had a turn, as far as it has come."""
    _superseding_since: float | None = attrs.field(default=None, init=False)
    """When a document was passed over with none served since."""
    _waiting: deque[Ticket] = attrs.field(factory=deque, init=False)
    _current: Ticket | None = attrs.field(default=None, init=False)
    _wanted: trio.Event = attrs.field(factory=trio.Event, init=False)

    @property
    def is_busy(self) -> bool:
        """Return whether a change is in progress, or waits for its turn."""
        return self._current is not None or bool(self._waiting)

    def adopt(self, document_hash: str, origin: Origin, version: int) -> Attempt:
        """Take note of the configuration that the process began with."""
        self.last_version = max(self.last_version, version)
        return self._activated(self._begin(document_hash, origin), version, ())

    def reject(self, document_hash: str, origin: Origin, reasons: tuple[Reason, ...]) -> Attempt:
        """Refuse a change that never became a document, as a file that cannot be read."""
        return self._refused(self._begin(document_hash, origin), reasons)

    def submit(self, update: Update) -> Ticket:
        """Let a change have its turn behind those that wait; `run` is running."""
        ticket = Ticket(update)
        self._waiting.append(ticket)
        self._wanted.set()
        return ticket

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Carry changes out until cancelled; then all that have not ended are refused.

        It may run again when it has failed.
        """
        self.is_shutting_down = False
        task_status.started()
        try:
            while True:
                while self._waiting:
                    self._current = self._waiting.popleft()
                    self._current.end(await self._apply(self._current.update))
                    self._current = None
                self._wanted = trio.Event()
                await self._wanted.wait()
        finally:
            self.is_shutting_down = True
            self._refuse_the_rest()

    def _refuse_the_rest(self) -> None:
        current, self._current = self._current, None
        if current is not None:
            if self._now.status is AttemptStatus.PREPARING:
                self._failed(self._now, Code.CANCELED, "the Router ends")
            current.end(self._now)
        while self._waiting:
            update = self._waiting.popleft()
            attempt = self._begin(update.update.hash, update.update.origin)
            message = "the Router is shutting down"
            update.end(self._failed(attempt, Code.SHUTTING_DOWN, message))

    async def _apply(self, update: Update) -> Attempt:
        """Return how a change ended, whatever went wrong with it."""
        attempt = self._running = self._begin(update.hash, update.origin)
        try:
            return await self._carry_out(update, attempt)
        except Exception:  # noqa: BLE001  # the Router serves on with what it has
            _log.exception("a change of the configuration failed")
            if self._now.status is not AttemptStatus.PREPARING:
                return self._now  # it serves, and only its record failed
            codes = {Stage.WARM: Code.BUILD_FAILED, Stage.ACTIVATE: Code.ACTIVATION_FAILED}
            code = codes.get(self._now.stage, Code.INVALID_RESOURCE)
            return self._failed(self._now, code, "the Router failed at it; its log tells more")

    async def _carry_out(self, update: Update, attempt: Attempt) -> Attempt:
        if not update.is_newest():
            return self._end(attempt, AttemptStatus.SUPERSEDED)
        try:
            compiled = await self.compiler.compile(update, self._enter)
        except Refused as refused:
            return self._refused(self._enter(refused.stage), refused.reasons)
        snapshot = compiled.snapshot
        self._progress(msgspec.structs.replace(self._now, document_hash=snapshot.hash))
        if self._is_superseded(update):
            return self._end(self._now, AttemptStatus.SUPERSEDED)
        return await self._install(update, compiled)

    async def _install(self, update: Update, compiled: Compiled) -> Attempt:
        snapshot, version = compiled.snapshot, self.last_version + 1
        if reasons := self.installation.check(snapshot):
            return self._refused(self._enter(Stage.VALIDATE), reasons)
        attempt = self._enter(Stage.WARM)
        try:
            prepared = await self.installation.prepare(snapshot, version)
        except ConfigRejected as error:
            return self._refused(attempt, reasons_of(error, Stage.WARM, Code.BUILD_FAILED))
        except VsrError as error:
            return self._failed(attempt, Code.WARMUP_FAILED, str(error))
        document = compiled.document if update.is_recorded else None
        ended = await self._activate(update, version, prepared)
        active = self.status.active
        if ended.status is AttemptStatus.ACTIVE and active is not None:
            with trio.CancelScope(shield=True, relative_deadline=_TIDY_S):
                await self.recorder.record(document, active)
        return ended

    async def _activate(self, update: Update, version: int, prepared: Prepared) -> Attempt:
        is_committed = False
        try:
            if self._is_superseded(update):
                return self._end(self._now, AttemptStatus.SUPERSEDED)
            attempt = self._enter(Stage.ACTIVATE)
            try:
                await prepared.commit()
            except VsrError as error:
                return self._failed(attempt, Code.ACTIVATION_FAILED, str(error))
            is_committed = True
        finally:
            if not is_committed:
                with trio.CancelScope(shield=True, relative_deadline=_TIDY_S):
                    await prepared.discard()
        self.last_version = version
        return self._activated(attempt, version, prepared.reused)

    def _is_superseded(self, update: Update) -> bool:
        """Return whether a newer document takes the place of this one.

        A source that writes faster than anything can be built would never be heard: after some
        time one of its documents serves, though there is a newer one.
        """
        if update.is_newest():
            return False
        now = trio.current_time()
        if self._superseding_since is None:
            self._superseding_since = now
        return now - self._superseding_since < _PATIENCE_S

    @property
    def _now(self) -> Attempt:
        """Return the attempt in progress, as far as it has come; another may be refused beside."""
        assert self._running is not None  # noqa: S101  # it has begun
        return self._running

    def _progress(self, attempt: Attempt) -> Attempt:
        self._running = attempt
        return self._show(attempt)

    def _begin(self, document_hash: str, origin: Origin) -> Attempt:
        self._attempts += 1
        return self._show(Attempt(self._attempts, document_hash, origin, self.unix()))

    def _enter(self, stage: Stage) -> Attempt:
        return self._progress(msgspec.structs.replace(self._now, stage=stage))

    def _activated(self, attempt: Attempt, version: int, reused: tuple[str, ...]) -> Attempt:
        now = self.unix()
        active = ActiveConfiguration(version, attempt.document_hash, attempt.origin, now)
        self.status = msgspec.structs.replace(self.status, active=active)
        self._superseding_since = None
        attempt = msgspec.structs.replace(
            attempt, stage=Stage.ACTIVATE, version=version, reused=reused
        )
        return self._end(attempt, AttemptStatus.ACTIVE)

    def _failed(self, attempt: Attempt, code: Code, message: str) -> Attempt:
        return self._refused(attempt, (Reason(attempt.stage, code, message),))

    def _refused(self, attempt: Attempt, reasons: tuple[Reason, ...]) -> Attempt:
        attempt = msgspec.structs.replace(attempt, reasons=reasons)
        ended = self._end(attempt, AttemptStatus.FAILED)
        self.status = msgspec.structs.replace(self.status, last_rejection=ended)
        return ended

    def _end(self, attempt: Attempt, status: AttemptStatus) -> Attempt:
        ended = msgspec.structs.replace(attempt, status=status, finished_at=self.unix())
        if self._running is not None and self._running.attempt == ended.attempt:
            self._running = ended
        return self._show(ended)

    def _show(self, attempt: Attempt) -> Attempt:
        self.status = msgspec.structs.replace(self.status, latest=attempt)
        for observer in self.observers:
            observer(attempt)
        return attempt
