"""A document whose changes are served: its history, its lifecycle, its file."""

import hashlib
import logging
import os
import signal
import time
from datetime import datetime
from functools import partial
from pathlib import Path

import attrs
import msgspec
import trio

from vsr.admin.audit import Audit
from vsr.compose.deployments import Deployments
from vsr.compose.installation import LocalInstallation, reused_by
from vsr.compose.management import Binding, LocalServing, ManagementApi
from vsr.compose.router import Router
from vsr.config.attempt import Attempt, AttemptStatus
from vsr.config.attribution import Attributions
from vsr.config.child import ChildCompiler
from vsr.config.files import DocumentFiles
from vsr.config.history import DEFAULT_LIMIT, Document, History, folder_for
from vsr.config.inspection import ChildInspector
from vsr.config.lifecycle import Lifecycle
from vsr.config.origin import Origin, OriginSource
from vsr.config.recorder import DiskRecorder, first_version
from vsr.config.report import Report
from vsr.config.source import check_bytes, read_document
from vsr.config.sources.file import FileSource
from vsr.resources.snapshot import Snapshot

_log = logging.getLogger("vsr.config")
_CHILD = "vsr.commands.compile_child"
_INSPECTOR = "vsr.commands.inspect_child"


class Opened(msgspec.Struct, frozen=True):
    """The document that a process begins with, and the version that it serves it as."""

    path: Path
    document: Document
    snapshot: Snapshot
    version: int
    is_new: bool
    """Whether the history does not have it yet."""


def open_document(path: Path, *, history_limit: int = DEFAULT_LIMIT) -> Opened:
    """Read the document and its history; blocks, before anything is served.

    Raises:
        ConfigRejected: with every problem that any stage found.
    """
    report = Report(str(path), files=DocumentFiles(path.parent))
    text = read_document(path, report)
    snapshot = check_bytes(text, os.environ, report).snapshot
    included = {name: report.files.contents[name] for name in sorted(report.included)}
    records = _recorder(path, history_limit).records_now()
    version, is_new = first_version(records, snapshot.hash)
    return Opened(path, Document(text, included), snapshot, version, is_new)


@attrs.frozen
class LiveConfiguration:
    """Serves what becomes of a document while the process runs."""

    lifecycle: Lifecycle
    source: FileSource
    recorder: DiskRecorder
    opened: Opened

    @classmethod
    def of(
        cls,
        opened: Opened,
        router: Router,
        *,
        history_limit: int = DEFAULT_LIMIT,
        binding: Binding | None = None,
    ) -> "LiveConfiguration":
        """Return that of a Router which begins with `opened`.

        Args:
            opened: what it begins with.
            router: it.
            history_limit: configurations that are kept.
            binding: of the management API; None: there is none.
        """
        recorder = _recorder(opened.path, history_limit)
        lifecycle = Lifecycle(
            ChildCompiler(_CHILD),
            LocalInstallation(router, opened.path.parent, binding),
            recorder,
            time.time,
            observers=[_tell],
        )
        source = FileSource(opened.path, lifecycle.submit, lifecycle.reject)
        return cls(lifecycle, source, recorder, opened)

    def management(
        self, router: Router, binding: Binding, drain_wanted: trio.Event
    ) -> ManagementApi:
        """Return the API that changes it; `run` follows.

        Args:
            router: that serves it.
            binding: where the API listens.
            drain_wanted: set when the API is asked to drain.
        """
        audit = Audit(time.time)
        self.lifecycle.observers.append(audit.note_attempt)
        deployments = Deployments(
            self.lifecycle,
            self.source,
            self.recorder.history,
            Attributions(time.monotonic),
            ChildInspector(_INSPECTOR),
            partial(_served_by, router),
            partial(reused_by, router),
            self.recorder.local,
            hashlib.sha256(self.opened.document.text).hexdigest(),
        )
        serving = LocalServing(router, drain_wanted)
        return ManagementApi(router.parts.network, binding, deployments, serving, audit)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Take changes until cancelled; the Router serves what it was opened with."""
        opened = self.opened
        origin = Origin(OriginSource.STARTUP)
        self.lifecycle.adopt(opened.snapshot.hash, origin, opened.version)
        active = self.lifecycle.status.active
        if opened.is_new and active is not None:
            await self.recorder.record(opened.document, active)
        async with trio.open_nursery() as tasks:
            await tasks.start(self.lifecycle.run)
            await tasks.start(partial(self.source.run, opened.document))
            await tasks.start(self._reread_on_signal)
            task_status.started()

    async def _reread_on_signal(self, *, task_status: trio.TaskStatus[None]) -> None:
        with trio.open_signal_receiver(signal.SIGHUP) as signals:
            task_status.started()
            async for _ in signals:
                self.source.reread()


def _served_by(router: Router) -> Snapshot | None:
    generation = router.active.current
    return None if generation is None else generation.snapshot


def _recorder(path: Path, limit: int) -> DiskRecorder:
    history = History(folder_for(path, os.environ), limit)
    return DiskRecorder(history, lambda: datetime.now().astimezone())


def _tell(attempt: Attempt) -> None:
    """Log how a change ended."""
    match attempt.status:
        case AttemptStatus.ACTIVE:
            _log.info(
                "configuration version %d serves: sha256 %s, from %s",
                attempt.version,
                attempt.document_hash,
                attempt.origin.source,
            )
        case AttemptStatus.FAILED:
            _log.error("configuration refused, the one before serves on:%s", _reasons(attempt))
        case AttemptStatus.SUPERSEDED:
            _log.info("configuration superseded by a newer one before it served")
        case AttemptStatus.PREPARING:
            pass


def _reasons(attempt: Attempt) -> str:
    lines = []
    for reason in attempt.reasons:
        line = f"{reason.line}: " if reason.line else " "
        place = f"{reason.file}:{line}" if reason.file else ""
        path = f"{reason.path}: " if reason.path else ""
        lines.append(f"\n  {place}{path}{reason.message} ({reason.code})")
    return "".join(lines)
