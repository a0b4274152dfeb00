"""Documents that the management API writes, and what becomes of them."""

import hashlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path

import attrs
import pytest
import trio

from vsr.admin.ports import Checked, DocumentChanged, DocumentFailed
from vsr.compose.deployments import Deployments
from vsr.config.attempt import Code, Reason, Stage
from vsr.config.attribution import Attributions
from vsr.config.child import ChildInspector
from vsr.config.history import Document, History
from vsr.config.lifecycle import Compiled, Lifecycle, Refused, Update
from vsr.config.origin import Origin
from vsr.config.persisted import replace_file
from vsr.config.precompiled import Precompiled
from vsr.config.recorder import DiskRecorder
from vsr.config.sources.file import FileSource
from vsr.resources.snapshot import Snapshot

OLD, NEW = b"old\n", b"new\n"
NO = Reason(Stage.COMPILE, Code.INVALID_RESOURCE, "no")
RESTART = Reason(Stage.VALIDATE, Code.RESTART_REQUIRED, "restart")


@attrs.define(eq=False)
class World:
    """Compiles and installs without doing either; documents with `bad` in them are refused."""

    compile_s: float = 0.0
    unfit: tuple[Reason, ...] = ()
    compiled: list[bytes] = attrs.field(factory=list)
    reused: tuple[str, ...] = ()

    async def compile(self, update: Update, on_stage: Callable[[Stage], object]) -> Compiled:
        """Refuse what is bad."""
        on_stage(Stage.COMPILE)
        await trio.sleep(self.compile_s)
        self.compiled.append(update.document.text)
        if b"bad" in update.document.text:
            raise Refused(Stage.COMPILE, (NO,))
        return Compiled(Snapshot("whole-" + update.hash), update.document)

    def check(self, snapshot: Snapshot) -> tuple[Reason, ...]:
        """Refuse what is to be refused."""
        del snapshot
        return self.unfit

    async def prepare(self, snapshot: Snapshot, version: int) -> "World":
        """Do nothing."""
        del snapshot, version
        await trio.lowlevel.checkpoint()
        return self

    async def commit(self) -> None:
        """Do nothing."""
        await trio.lowlevel.checkpoint()

    async def discard(self) -> None:
        """Do nothing."""
        await trio.lowlevel.checkpoint()


@attrs.define(eq=False)
class Scene:
    """A running lifecycle over a file."""

    world: World
    deployments: Deployments
    file: Path
    lifecycle: Lifecycle

    async def deploy(self, text: bytes, replaced: bytes = OLD, *, is_checked: bool = False) -> str:
        """Deploy a text; return how it ended."""
        origin = Origin("api", "operator", "r")
        with trio.fail_after(20):
            checked = await self.deployments.check(Document(text)) if is_checked else Checked()
            attempt = await self.deployments.deploy(Document(text), origin, replaced, checked)
        assert attempt is not None
        assert attempt.origin is origin
        return str(attempt.status)


def _now() -> datetime:
    return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
async def scene(nursery: trio.Nursery, tmp_path: Path) -> AsyncIterator[Scene]:
    """Return one that serves version 1, the old text."""
    file = tmp_path / "config.yaml"
    file.write_bytes(OLD)
    world, history = World(), History(tmp_path / "history")
    precompiled = Precompiled(world)
    lifecycle = Lifecycle(precompiled, world, DiskRecorder(history, _now), trio.current_time)
    source = FileSource(file, lifecycle.submit, lifecycle.reject, every_s=0.01)
    deployments = Deployments(
        lifecycle,
        source,
        history,
        Attributions(trio.current_time),
        ChildInspector("vsr.nowhere"),
        precompiled,
        lambda: Snapshot("whole-old"),
        _now,
        hashlib.sha256(OLD).hexdigest(),
    )
    lifecycle.adopt("whole-old", Origin("startup"), 1)
    await nursery.start(lifecycle.run)
    await nursery.start(source.run, Document(OLD))
    yield Scene(world, deployments, file, lifecycle)
    nursery.cancel_scope.cancel()


async def test_document_is_written_and_its_activation_awaited(scene: Scene) -> None:
    """Once, however the file source finds it."""
    assert await scene.deploy(NEW) == "active"

    assert scene.file.read_bytes() == NEW
    assert scene.world.compiled == [NEW]
    assert scene.lifecycle.last_version == 2
    await trio.sleep(0.1)
    assert scene.world.compiled == [NEW]
    assert scene.deployments.standing(NEW) == "active"
    assert scene.deployments.standing(OLD) == "unknown"


async def test_document_that_was_looked_at_is_not_compiled_again(scene: Scene) -> None:
    """As long as it is what the file holds then; the files that it names are read with it."""
    assert await scene.deploy(NEW, is_checked=True) == "active"
    assert scene.world.compiled == [NEW]

    assert await scene.deploy(b"third\n", NEW) == "active"
    assert scene.world.compiled == [NEW, b"third\n"]


async def test_same_bytes_again_are_a_change_of_their_own(scene: Scene) -> None:
    """Whoever writes them waits for an answer."""
    assert await scene.deploy(NEW) == "active"
    assert await scene.deploy(NEW, NEW) == "active"
    assert scene.lifecycle.last_version == 3


async def test_every_deployment_is_one_change(scene: Scene) -> None:
    """Many in a row are as many, none of them taken for somebody's who wrote the file."""
    sources: list[str] = []
    scene.lifecycle.observers.append(
        lambda attempt: sources.append(attempt.origin.source) if attempt.finished_at else None
    )
    before = OLD
    for number in range(30):
        text = b"n: %d\n" % (number % 3)
        assert await scene.deploy(text, before) == "active"
        before = text
    await trio.sleep(0.1)

    assert sources == ["api"] * 30


async def test_refused_document_stays_written(scene: Scene) -> None:
    """What serves is another one."""
    assert await scene.deploy(b"bad\n") == "failed"

    assert scene.file.read_bytes() == b"bad\n"
    assert scene.deployments.standing(b"bad\n") == "failed"
    assert scene.deployments.standing(OLD) == "active"
    assert scene.deployments.status.last_rejection is not None


async def test_document_in_progress_is_pending(scene: Scene, nursery: trio.Nursery) -> None:
    """From when it was found."""
    scene.world.compile_s = 0.2
    nursery.start_soon(scene.deploy, NEW)
    while scene.deployments.standing(NEW) == "unknown":  # noqa: ASYNC110  # no event says so
        await trio.sleep(0.001)

    assert scene.deployments.standing(NEW) == "pending"


async def test_change_that_takes_too_long_goes_on(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for it any more."""
    monkeypatch.setattr("vsr.compose.deployments.ACTIVATION_S", 0.05)
    scene.world.compile_s = 0.2

    attempt = await scene.deployments.deploy(Document(NEW), Origin("api"), OLD, Checked())

    assert attempt is None
    while scene.deployments.standing(NEW) != "active":  # noqa: ASYNC110  # as above
        await trio.sleep(0.01)
    active = scene.deployments.status.active
    assert active is not None
    assert active.origin.source == "api"


async def test_document_of_somebody_else_is_not_overwritten(scene: Scene) -> None:
    """And the announcement of who writes is withdrawn."""
    with pytest.raises(DocumentChanged):
        await scene.deployments.deploy(Document(NEW), Origin("api"), b"older", Checked())

    assert scene.file.read_bytes() == OLD
    assert scene.deployments.attributions.origin_of(NEW) is None


async def test_document_that_nobody_has_seen_is_told_to_be_overwritten(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, and not after the time that an activation may take."""

    def replace_and_lose(path: Path, document: Document, replaced: bytes) -> None:
        replace_file(path, document, replaced)
        path.write_bytes(b"theirs\n")

    monkeypatch.setattr("vsr.compose.deployments.replace_file", replace_and_lose)

    with trio.fail_after(10), pytest.raises(DocumentChanged):
        await scene.deployments.deploy(Document(NEW), Origin("api"), OLD, Checked())

    assert scene.world.compiled == [b"theirs\n"]
    assert scene.deployments.attributions.origin_of(NEW) is None


async def test_end_of_another_change_is_not_that_of_ours(scene: Scene) -> None:
    """One that began before goes on to its end."""
    scene.world.compile_s = 0.2
    scene.file.write_bytes(b"theirs\n")
    while scene.deployments.standing(b"theirs\n") != "pending":  # noqa: ASYNC110  # as above
        await trio.sleep(0.001)

    assert await scene.deploy(NEW, b"theirs\n") == "active"

    assert scene.world.compiled == [b"theirs\n", NEW]


async def test_file_that_cannot_be_written_is_told(scene: Scene) -> None:
    """Without its place; so is one that cannot be read."""
    scene.file.unlink()
    for ask in (scene.deployments.read, lambda: scene.deploy(NEW)):
        with pytest.raises(DocumentFailed) as caught:
            await ask()
        assert str(caught.value) == "No such file or directory"


async def test_replaced_document_is_kept_once(scene: Scene) -> None:
    """Without a version, since it may never have served."""
    first = await scene.deployments.keep(OLD)
    again = await scene.deployments.keep(OLD)

    records = await scene.deployments.records()
    assert first == again == "20260102-030405"
    assert [(record.id, record.version) for record in records] == [(first, 0)]
    assert await scene.deployments.recorded(first) == Document(OLD)
    assert await scene.deployments.recorded("20200101-000000") is None


async def test_document_is_checked_without_a_trace(scene: Scene) -> None:
    """Neither an attempt nor a file."""
    scene.world.unfit = (NO, RESTART)
    latest = scene.deployments.status.latest

    fine = await scene.deployments.check(Document(NEW))
    bad = await scene.deployments.check(Document(b"bad"))

    assert (fine.reasons, fine.restarts, fine.reused) == (
        (NO,),
        (RESTART,),
        ("signals", "upstream"),
    )
    assert bad.reasons == (NO,)
    assert scene.deployments.status.latest is latest


async def test_few_documents_are_read_at_once(
    scene: Scene,
) -> None:
    """Whoever may ask may not have as many processes as they like."""
    scene.world.compile_s = 0.2
    start = trio.current_time()

    async with trio.open_nursery() as tasks:
        for _ in range(5):
            tasks.start_soon(scene.deployments.check, Document(NEW))

    assert trio.current_time() - start >= 0.6


async def test_nothing_is_written_while_the_router_ends(scene: Scene) -> None:
    """Nobody would read it."""
    scene.lifecycle.is_shutting_down = True

    with pytest.raises(DocumentFailed, match="shutting down"):
        await scene.deployments.deploy(Document(NEW), Origin("api"), OLD, Checked())

    assert scene.file.read_bytes() == OLD
