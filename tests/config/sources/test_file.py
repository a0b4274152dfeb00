"""The document as a file that is looked at again and again."""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import attrs
import pytest
import trio

from vsr.config.attempt import Attempt, Code, Reason
from vsr.config.history import Document
from vsr.config.lifecycle import Ticket, Update
from vsr.config.origin import Origin
from vsr.config.sources import file as module
from vsr.config.sources.file import FileSource, Stamp, Stamps, Watched, look

OLD, NEW, NEWER = (Stamp(1, 1, at, at, 10) for at in (1, 2, 3))
FILE, OTHER = Path("config.yaml"), Path("graph.yaml")


def test_file_is_read_once_it_no_longer_changes() -> None:
    """Whoever writes it in place is not interrupted."""
    watched = Watched({FILE: OLD})
    seen = [OLD, NEW, NEWER, NEWER, NEWER]

    due = []
    for stamp in seen:
        due.append(watched.is_due({FILE: stamp}))
        if due[-1]:
            watched.read = {FILE: stamp}

    assert due == [False, False, False, True, False]


def test_file_that_never_settles_is_read_all_the_same() -> None:
    """Else somebody who writes all the time would never be heard."""
    watched = Watched({FILE: OLD})

    due = [watched.is_due({FILE: Stamp(1, 1, at, at, 10)}) for at in range(2, 9)]

    assert due == [False, False, False, False, True, False, False]


def test_file_that_took_the_place_of_another_is_read_at_once() -> None:
    """It was whole before it had the name; one that is gone may be on its way."""
    watched = Watched({FILE: OLD, OTHER: OLD})
    gone = {FILE: Stamp(), OTHER: OLD}

    assert watched.is_due({FILE: Stamp(1, 2, 2, 2, 10), OTHER: OLD})
    assert [watched.is_due(gone) for _ in range(2)] == [False, True]


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_bytes(b"b: 1\n"),
        lambda file: _written(file.with_suffix(".new"), b"a: 1\n").replace(file),
        lambda file: file.unlink(),
        lambda file: os.utime(file, ns=(1, 1)),
    ],
    ids=["in place", "renamed over", "gone", "touched"],
)
def test_stamp_tells_every_change(change: Callable[[Path], object], tmp_path: Path) -> None:
    """Also to the same bytes."""
    file = _written(tmp_path / "config.yaml", b"a: 1\n")
    before = look([file])

    change(file)

    assert look([file]) != before


@attrs.define(eq=False)
class Watch:
    """A running source, and what it has submitted."""

    file: Path
    source: FileSource
    updates: trio.MemoryReceiveChannel[Update]
    refusals: list[tuple[Reason, ...]]

    async def next(self) -> Update:
        """Wait for the next document."""
        with trio.fail_after(10):
            return await self.updates.receive()

    async def nothing(self) -> None:
        """Check that some looks find nothing."""
        with trio.move_on_after(0.05) as scope:
            await self.updates.receive()
        assert scope.cancelled_caught


@pytest.fixture
async def watch(nursery: trio.Nursery, tmp_path: Path) -> AsyncIterator[Watch]:
    """Look at a file a thousand times a second."""
    send, receive = trio.open_memory_channel[Update](10)
    refusals: list[tuple[Reason, ...]] = []

    def submit(update: Update) -> Ticket:
        send.send_nowait(update)
        return Ticket(update)

    def reject(document_hash: str, origin: Origin, reasons: tuple[Reason, ...]) -> Attempt:
        refusals.append(reasons)
        return _unheard(document_hash, origin, reasons)

    file = _written(tmp_path / "config.yaml", b"a: 1\n")
    source = FileSource(file, submit, reject, every_s=0.001)
    await nursery.start(source.run, Document(b"a: 1\n"))
    yield Watch(file, source, receive, refusals)
    nursery.cancel_scope.cancel()


async def test_change_is_submitted_with_where_it_came_from(watch: Watch) -> None:
    """And is the newest until the next one."""
    watch.file.write_bytes(b"a: 2\n")

    update = await watch.next()

    assert update.document.text == b"a: 2\n"
    assert (update.origin, update.file) == (Origin("file"), watch.file)
    assert update.is_newest()
    watch.file.write_bytes(b"a: 33\n")
    newer = await watch.next()
    assert newer.document.text == b"a: 33\n"
    assert newer.is_newest()
    assert not update.is_newest()


async def test_link_that_leads_elsewhere_is_a_change(watch: Watch, tmp_path: Path) -> None:
    """Kubernetes swaps a link to a whole folder."""
    for number in (1, 2):
        folder = tmp_path / f"..2026_{number}"
        folder.mkdir()
        _written(folder / "config.yaml", b"n: %d\n" % number)
    _link(tmp_path / "..data", "..2026_1")
    _link(watch.file, "..data/config.yaml")
    assert (await watch.next()).document.text == b"n: 1\n"

    _link(tmp_path / "..data", "..2026_2")

    assert (await watch.next()).document.text == b"n: 2\n"


async def test_touched_file_is_no_change_unless_somebody_asks(watch: Watch) -> None:
    """What the environment or a secret's file holds may be another one then."""
    os.utime(watch.file)
    await watch.nothing()

    watch.source.reread()

    assert (await watch.next()).document.text == b"a: 1\n"


async def test_included_file_is_followed(watch: Watch, tmp_path: Path) -> None:
    """From when the document that includes it was compiled on."""
    graph = _written(tmp_path / "graph.yaml", b"steps: []\n")
    watch.file.write_bytes(b"a: 2\n")
    (await watch.next()).on_included({"graph.yaml": b"steps: []\n"})
    await watch.nothing()

    graph.write_bytes(b"steps: [1]\n")

    assert (await watch.next()).document.text == b"a: 2\n"


async def test_update_stays_the_newest_however_the_file_is_touched(watch: Watch) -> None:
    """Only other bytes take its place, so no change is lost for a chmod."""
    watch.file.write_bytes(b"a: 2\n")
    update = await watch.next()

    watch.file.chmod(0o640)
    _written(watch.file.with_suffix(".new"), b"a: 2\n").replace(watch.file)
    await watch.nothing()

    assert update.is_newest()


async def test_change_before_the_first_look_is_seen(nursery: trio.Nursery, tmp_path: Path) -> None:
    """What serves was read long before: everything was built and bound since."""
    send, receive = trio.open_memory_channel[Update](10)

    def submit(update: Update) -> Ticket:
        send.send_nowait(update)
        return Ticket(update)

    file = _written(tmp_path / "config.yaml", b"a: 2\n")
    (tmp_path / "graph.yaml").write_bytes(b"new")
    source = FileSource(file, submit, _unheard, every_s=0.001)

    await nursery.start(source.run, Document(b"a: 1\n", {"graph.yaml": b"old"}))

    with trio.fail_after(10):
        assert (await receive.receive()).document.text == b"a: 2\n"
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize("compiled_with", [b"old", None], ids=["changed since", "was not there"])
async def test_included_file_is_compared_with_what_was_compiled(
    compiled_with: bytes | None, watch: Watch, tmp_path: Path
) -> None:
    """It may have changed, or come, between that and the next look."""
    watch.file.write_bytes(b"a: 2\n")
    update = await watch.next()
    (tmp_path / "graph.yaml").write_bytes(b"new")

    update.on_included({"graph.yaml": compiled_with})

    assert (await watch.next()).document.text == b"a: 2\n"
    await watch.nothing()


async def test_file_that_cannot_be_read_for_a_while_is_tried_again(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without another change of it; why is told once."""
    full = OSError(24, "Too many open files")
    with monkeypatch.context() as patch:
        patch.setattr(module, "_read", lambda _: full)
        watch.file.write_bytes(b"a: 2\n")
        await watch.nothing()
        assert len(watch.refusals) == 1

    assert (await watch.next()).document.text == b"a: 2\n"


async def test_file_that_is_gone_is_told_once(watch: Watch) -> None:
    """And read again once it is back."""
    content = watch.file.read_bytes()
    watch.file.unlink()
    await watch.nothing()

    ((reason,),) = watch.refusals
    assert reason.code is Code.INVALID_DOCUMENT
    assert "No such file" in reason.message
    watch.file.write_bytes(content + b"b: 2\n")
    assert (await watch.next()).document.text == content + b"b: 2\n"


async def test_author_who_said_so_before_is_the_origin(watch: Watch) -> None:
    """Of exactly these bytes."""
    api = Origin("api", "admin", "req-1")
    watch.source.origin_of = lambda text: api if text == b"a: 2\n" else None
    watch.file.write_bytes(b"a: 2\n")
    assert (await watch.next()).origin == api
    watch.file.write_bytes(b"a: 33\n")

    assert (await watch.next()).origin == Origin("file")


def _unheard(document_hash: str, origin: Origin, reasons: tuple[Reason, ...]) -> Attempt:
    return Attempt(1, document_hash, origin, 0.0, reasons=reasons)


async def test_file_that_is_replaced_while_it_is_read_is_read_again(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the newer text would be taken for that of the older file, and given up as superseded."""
    newer = [b"a: 3\n"]

    def read(path: Path) -> bytes:
        if newer:
            _written(path.with_suffix(".new"), newer.pop()).replace(path)
        return path.read_bytes()

    monkeypatch.setattr("vsr.config.sources.file._read", read)
    _written(watch.file.with_suffix(".new"), b"a: 2\n").replace(watch.file)

    update = await watch.next()

    await watch.nothing()
    assert update.document.text == b"a: 3\n"
    assert update.is_newest()


async def test_what_is_asked_for_during_a_look_is_done_after_it(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look may have been too early to show what it is asked for."""
    asked: list[int] = []

    def late(files: Sequence[Path]) -> Stamps:
        found = look(files)
        if not asked:
            asked.append(1)
            _written(watch.file.with_suffix(".new"), b"a: 2\n").replace(watch.file)
            trio.from_thread.run_sync(watch.source.reread)
        return found

    monkeypatch.setattr("vsr.config.sources.file.look", late)

    update = await watch.next()

    assert update.document.text == b"a: 2\n"
    await watch.nothing()
    assert update.is_newest()


async def test_same_bytes_of_an_author_are_submitted_once(watch: Watch) -> None:
    """Who writes a document through the API waits for what becomes of it, whatever it says."""
    api = [Origin("api", "admin", "req-1")]
    watch.source.origin_of = lambda _: api.pop() if api else None
    _written(watch.file.with_suffix(".new"), b"a: 1\n").replace(watch.file)
    watch.source.look_now()

    assert (await watch.next()).origin == Origin("api", "admin", "req-1")
    watch.source.look_now()
    await watch.nothing()


def _written(file: Path, content: bytes) -> Path:
    file.write_bytes(content)
    return file


def _link(place: Path, target: str) -> None:
    """Let a link lead elsewhere, in one step."""
    new = place.with_name(place.name + "_tmp")
    new.symlink_to(target)
    new.replace(place)
