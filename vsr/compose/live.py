"""A document whose changes are served: its history, its lifecycle, its file."""

import hashlib
import logging
import os
import signal
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import attrs
import msgspec
import trio

from vsr.admin.audit import Audit
from vsr.admin.ports import Serving
from vsr.compose.binding import Binding
from vsr.compose.deployments import Deployments
from vsr.compose.management import app_loader
from vsr.compose.management_listener import ManagementListener, WithManagement
from vsr.config.attempt import Attempt, AttemptStatus
from vsr.config.attribution import Attributions
from vsr.config.child import ChildCompiler, ChildInspector
from vsr.config.files import DocumentFiles
from vsr.config.history import DEFAULT_LIMIT, Document, History, folder_for
from vsr.config.lifecycle import Installation, Lifecycle
from vsr.config.origin import Origin, OriginSource
from vsr.config.precompiled import Precompiled
from vsr.config.recorder import DiskRecorder, first_version
from vsr.config.report import Report
from vsr.config.source import check_bytes, read_document
from vsr.config.sources.file import FileSource
from vsr.gateway.answering import AnsweringFront
from vsr.network.port import Network
from vsr.resources.snapshot import Snapshot
from vsr.workers.components import Components, OnFailure

_log = logging.getLogger("vsr.config")
_CHILD = "vsr.commands.compile_child"


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
    precompiled: Precompiled
    source: FileSource
    recorder: DiskRecorder
    opened: Opened
    components: Components
    renew: Callable[[], None]
    """Loads certificates anew."""

    @classmethod
    def of(
        cls,
        opened: Opened,
        installation: Installation,
        *,
        history_limit: int = DEFAULT_LIMIT,
        components: Components | None = None,
        renew: Callable[[], None] = lambda: None,
    ) -> "LiveConfiguration":
        """Return that of an installation which begins with `opened`.

        Args:
            opened: what it begins with.
            installation: takes what comes.
            history_limit: configurations that are kept.
            components: keeps parts of it going.
            renew: loads anew what is read from files beside the document; called by SIGHUP.
        """
        recorder = _recorder(opened.path, history_limit)
        precompiled = Precompiled(ChildCompiler(_CHILD))
        lifecycle = Lifecycle(
            precompiled,
            installation,
            recorder,
            time.time,
            observers=[_tell],
        )
        source = FileSource(opened.path, lifecycle.submit, lifecycle.reject)
        keep = components or Components()
        return cls(lifecycle, precompiled, source, recorder, opened, keep, renew)

    def management(
        self,
        network: Network,
        binding: Binding,
        serving: Serving,
        served: Callable[[], Snapshot | None],
    ) -> ManagementListener:
        """Return the API that changes it; `run` follows.

        Args:
            network: of the process.
            binding: where the API listens.
            serving: what answers clients.
            served: returns the configuration that it serves.
        """
        audit = Audit(time.time)
        self.lifecycle.observers.append(audit.note_attempt)
        deployments = Deployments(
            self.lifecycle,
            self.source,
            self.recorder.history,
            Attributions(time.monotonic),
            ChildInspector(_CHILD),
            self.precompiled,
            served,
            self.recorder.local,
            hashlib.sha256(self.opened.document.text).hexdigest(),
        )
        front = AnsweringFront(app_loader(deployments, serving, audit))
        api = ManagementListener(network, front, binding, self.opened.path.parent)
        # It moves in the same step in which a configuration is served.
        self.lifecycle.installation = WithManagement(self.lifecycle.installation, api)
        return api

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Take changes until cancelled; the Router serves what it was opened with."""
        opened = self.opened
        origin = Origin(OriginSource.STARTUP)
        self.lifecycle.adopt(opened.snapshot.hash, origin, opened.version)
        active = self.lifecycle.status.active
        if opened.is_new and active is not None:
            await self.recorder.record(opened.document, active)
        async with trio.open_nursery() as tasks:
            restart = OnFailure.RESTART
            keep = self.components.run
            await tasks.start(keep, "configuration", restart, self.lifecycle.run)
            await tasks.start(keep, "file source", restart, self._follow_file)
            await tasks.start(keep, "SIGHUP", restart, self._reread_on_signal)
            task_status.started()

    async def _follow_file(  # noqa: ASYNC128  # the source tells
        self, *, task_status: trio.TaskStatus[None]
    ) -> None:
        await self.source.run(self.opened.document, task_status=task_status)

    async def _reread_on_signal(self, *, task_status: trio.TaskStatus[None]) -> None:
        with trio.open_signal_receiver(signal.SIGHUP) as signals:
            task_status.started()
            async for _ in signals:
                self.source.reread()
                self.renew()


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
