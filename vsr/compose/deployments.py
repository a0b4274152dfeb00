"""The document as the management API changes it: its file, its history, its lifecycle.

Implements `admin.ports.Configuration` for one process and for a supervisor alike: what serves is
behind the installation.
"""

import hashlib
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TypeVar

import attrs
import msgspec
import trio

from vsr.admin.ports import Checked, DocumentChanged, DocumentFailed
from vsr.config.attempt import Attempt, AttemptStatus, Code, LifecycleStatus, Reason, Stage
from vsr.config.attribution import Attributions
from vsr.config.child import ChildInspector
from vsr.config.history import Document, History, HistoryFailed, Record
from vsr.config.inspection import Inspect, Inspected
from vsr.config.lifecycle import Compiled, Lifecycle, Refused, Update
from vsr.config.origin import Origin, OriginSource
from vsr.config.persisted import FileChanged, read_file, replace_file
from vsr.config.precompiled import Precompiled
from vsr.config.restart import reused
from vsr.config.sources.file import FileSource
from vsr.resources.management import Management
from vsr.resources.snapshot import Snapshot

ACTIVATION_S = 20.0
"""How long a change waits for the activation that follows. Source: standalone-mode 5.4."""
_AT_ONCE = 2
_T = TypeVar("_T")


def _ignore(stage: Stage) -> None:
    del stage


@attrs.define(eq=False)
class Deployments:
    """Writes the watched file, and knows what has become of what was written."""

    lifecycle: Lifecycle
    source: FileSource
    history: History
    attributions: Attributions
    inspector: ChildInspector
    precompiled: Precompiled
    """Compiles for the lifecycle."""
    serving: Callable[[], Snapshot | None]
    """Returns what serves now."""
    local: Callable[[], datetime]
    """Now, with the offset of local time."""
    active_text: str = ""
    """Hash of the document that serves, without the files that it includes."""
    _children: trio.CapacityLimiter = attrs.field(factory=lambda: trio.CapacityLimiter(_AT_ONCE))
    """Of processes that read documents for whoever asks."""
    _texts: dict[int, str] = attrs.field(factory=dict, init=False)
    """The same of changes in progress, by number."""
    _latest: tuple[str, AttemptStatus] | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.source.origin_of = self.attributions.origin_of
        self.lifecycle.observers.append(self._observe)

    @property
    def status(self) -> LifecycleStatus:
        """Return where the configuration stands."""
        return self.lifecycle.status

    @property
    def management(self) -> Management:
        """Return the settings of the API in what serves."""
        snapshot = self.serving()
        return Management() if snapshot is None else snapshot.management

    async def models(self) -> bytes:
        """Return the list of models that clients are told."""
        return await trio.to_thread.run_sync(self._models)

    def _models(self) -> bytes:
        # Loaded for who asks: a supervisor routes nothing.
        from vsr.engine.model_list import render_model_list  # noqa: PLC0415

        snapshot = self.serving() or Snapshot("")
        return render_model_list(snapshot, created=int(self.local().timestamp()))

    def standing(self, text: bytes) -> str:
        """Return what has become of a document."""
        wanted = hashlib.sha256(text).hexdigest()
        if self._latest is not None and self._latest[0] == wanted:
            status = self._latest[1]
            if status is AttemptStatus.PREPARING:
                return "pending"
            if status is AttemptStatus.FAILED:
                return "failed"
        return "active" if wanted == self.active_text else "unknown"

    async def read(self) -> bytes:
        """Return the document as it is persisted."""
        try:
            return await trio.to_thread.run_sync(read_file, self.source.path)
        except OSError as error:
            raise DocumentFailed(error.strerror or "it cannot be used") from None

    async def inspect(self, question: Inspect) -> Inspected:
        """Return what becomes of a text."""
        question = msgspec.structs.replace(question, file=str(self.source.path))
        async with self._children:
            return (await self.inspector.inspect(question)).inspected

    async def examine(self, question: Inspect) -> tuple[Inspected, Checked]:
        """Return the same, and whether the document could be served if it is valid."""
        question = msgspec.structs.replace(question, file=str(self.source.path))
        async with self._children:
            examined = await self.inspector.inspect(question, compiles=True)
        return examined.inspected, self._checked(examined.compiled, examined.reasons)

    async def check(self, document: Document) -> Checked:
        """Return whether a document could be served."""
        update = Update(document, Origin(OriginSource.API), self.source.path)
        try:
            async with self._children:
                compiled = await self.precompiled.compile(update, _ignore)
        except Refused as refused:
            return Checked(refused.reasons)
        return self._checked(compiled)

    def _checked(self, compiled: Compiled | None, refused: tuple[Reason, ...] = ()) -> Checked:
        if compiled is None:
            return Checked(refused)
        reasons = self.lifecycle.installation.check(compiled.snapshot)
        restart = Code.RESTART_REQUIRED
        return Checked(
            tuple(each for each in reasons if each.code is not restart),
            tuple(each for each in reasons if each.code is restart),
            reused(self.serving(), compiled.snapshot),
            compiled,
        )

    async def records(self) -> list[Record]:
        """Return the history, newest first."""
        return await _told(self.history.records)

    async def recorded(self, record_id: str) -> Document | None:
        """Return a recorded document."""
        return await _told(partial(self.history.document, record_id))

    async def keep(self, text: bytes) -> str:
        """Record a document that is about to be replaced, once; return the id of its record."""
        return await _told(partial(self._keep, text))

    async def deploy(
        self, document: Document, origin: Origin, replaced: bytes, checked: Checked
    ) -> Attempt | None:
        """Write a document, and wait for the activation that follows."""
        waiting = _Waiting(origin)
        self.lifecycle.observers.append(waiting.observe)
        if checked.compiled is not None:
            self.precompiled.hold(origin, checked.compiled)
        try:
            await self._write(document, origin, replaced)
            with trio.move_on_after(ACTIVATION_S):
                while waiting.ended is None:
                    await waiting.wait()
                    await self._check_unseen(document, waiting)
        finally:
            self.lifecycle.observers.remove(waiting.observe)
            self.precompiled.drop()
        return waiting.ended

    async def _check_unseen(self, document: Document, waiting: "_Waiting") -> None:
        """Look whether a document that was written is there yet, if nobody has found it so far.

        Raises:
            DocumentChanged: somebody has written another one before it was found.
        """
        if not waiting.has_begun and await self.read() != document.text and not waiting.has_begun:
            self.attributions.withdraw(document.text)
            raise DocumentChanged

    async def _write(self, document: Document, origin: Origin, replaced: bytes) -> None:
        if self.lifecycle.is_shutting_down:
            raise DocumentFailed("the Router is shutting down")
        # Before it is written: the file may be looked at in that very moment.
        self.attributions.register(document.text, origin)
        try:
            path = self.source.path
            await trio.to_thread.run_sync(replace_file, path, document, replaced)
        except FileChanged:
            self.attributions.withdraw(document.text)
            raise DocumentChanged from None
        except OSError as error:
            self.attributions.withdraw(document.text)
            raise DocumentFailed(error.strerror or "it cannot be used") from None
        self.source.look_now()

    def _keep(self, text: bytes) -> str:
        for record in self.history.records():
            found = self.history.document(record.id) if record.has_document else None
            if found is not None and found.text == text:
                return record.id
        content_hash = hashlib.sha256(text).hexdigest()
        origin = Origin(OriginSource.FILE)
        record = self.history.add(
            Document(text), content_hash=content_hash, origin=origin, local=self.local()
        )
        return record.id

    def _observe(self, attempt: Attempt) -> None:
        """Remember which document a change is about: its hash becomes that of more files."""
        text = self._texts.setdefault(attempt.attempt, attempt.document_hash)
        if attempt.origin.source == OriginSource.STARTUP:
            text = self.active_text
        self._latest = text, attempt.status
        if attempt.finished_at is not None:
            del self._texts[attempt.attempt]
            if attempt.status is AttemptStatus.ACTIVE:
                self.active_text = text


@attrs.define(eq=False)
class _Waiting:
    """Waits for the change that has a certain origin: this very object."""

    origin: Origin
    has_begun: bool = False
    ended: Attempt | None = None
    _heard: trio.Event = attrs.field(factory=trio.Event)

    def observe(self, attempt: Attempt) -> None:
        """Take note of a change: of its beginning and its end, and of the end of any other."""
        is_mine, has_ended = attempt.origin is self.origin, attempt.finished_at is not None
        self.has_begun = self.has_begun or is_mine
        if is_mine and has_ended:
            self.ended = attempt
        if has_ended:
            self._heard.set()

    async def wait(self) -> None:
        """Wait until a change has ended, this one or another."""
        await self._heard.wait()
        self._heard = trio.Event()


async def _told(work: Callable[[], _T]) -> _T:
    try:
        return await trio.to_thread.run_sync(work)
    except HistoryFailed as error:
        raise DocumentFailed(str(error)) from None
