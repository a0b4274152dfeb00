"""A document whose changes are served: what fails beside the requests begins again."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import attrs
import msgspec
import pytest
import trio

from tests.e2e.standalone import document
from vsr.compose.live import LiveConfiguration, open_document
from vsr.config.attempt import AttemptStatus, Reason, Stage
from vsr.config.lifecycle import Compiled, Update
from vsr.config.origin import Origin, OriginSource
from vsr.resources.snapshot import Snapshot
from vsr.workers.components import Components, State

PATIENCE_S = 10


class BuggyCompiler(msgspec.Struct):
    """Has a bug that the first document meets."""

    calls: int = 0

    async def compile(self, update: Update, on_stage: Callable[[Stage], object]) -> Compiled:
        """Compile to the document's hash."""
        on_stage(Stage.COMPILE)
        await trio.lowlevel.checkpoint()
        self.calls += 1
        if self.calls == 1:
            raise ZeroDivisionError
        return Compiled(Snapshot(update.hash), update.document)


@attrs.define
class Installed:
    """Serves whatever it is given."""

    versions: list[int] = attrs.field(factory=list)
    reused: tuple[str, ...] = ()

    def check(self, snapshot: Snapshot) -> tuple[Reason, ...]:
        """Take anything."""
        del snapshot
        return ()

    async def prepare(self, snapshot: Snapshot, version: int) -> "Installed":
        """Build nothing."""
        del snapshot
        await trio.lowlevel.checkpoint()
        self.versions.append(version)
        return self

    async def commit(self) -> None:
        """Serve it."""
        await trio.lowlevel.checkpoint()

    async def discard(self) -> None:
        """Give it up."""
        await trio.lowlevel.checkpoint()


async def test_bug_in_a_change_does_not_end_those_that_follow(
    nursery: trio.Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change that met it fails, and the next one serves."""
    monkeypatch.setenv("VLLM_SR_CONFIG_BACKUP_DIR", str(tmp_path / "history"))
    path = tmp_path / "router.yaml"
    path.write_text(document(port=1, small=1, large=1), encoding="utf-8")
    components, installed = Components(), Installed()
    opened = open_document(path)
    live = LiveConfiguration.of(opened, installed, components=components)
    live.lifecycle.compiler = BuggyCompiler()
    update = Update(opened.document, Origin(OriginSource.FILE))

    with trio.fail_after(PATIENCE_S):
        await nursery.start(live.run)
        ended = [await live.lifecycle.submit(update).wait() for _ in range(2)]
    nursery.cancel_scope.cancel()

    assert [each.status for each in ended] == [AttemptStatus.FAILED, AttemptStatus.ACTIVE]
    assert installed.versions == [2]
    assert {each.name: each.state for each in components.statuses} == {
        "configuration": State.RUNNING,
        "file source": State.RUNNING,
        "SIGHUP": State.RUNNING,
    }


async def test_hangup_renews_certificates(
    nursery: trio.Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the document, which need not have changed."""
    monkeypatch.setenv("VLLM_SR_CONFIG_BACKUP_DIR", str(tmp_path / "history"))
    path = tmp_path / "router.yaml"
    path.write_text(document(port=1, small=1, large=1), encoding="utf-8")
    renewed = trio.Event()
    live = LiveConfiguration.of(open_document(path), Installed(), renew=renewed.set)

    with trio.fail_after(PATIENCE_S):
        await nursery.start(live.run)
        os.kill(os.getpid(), signal.SIGHUP)
        await renewed.wait()
    nursery.cancel_scope.cancel()
