"""The document as a file that is looked at again and again."""

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import attrs
import pytest
import trio

from vsr.config.attempt import Attempt, Code, Reason
from vsr.config.lifecycle import Ticket, Update
from vsr.config.origin import Origin
from vsr.config.sources.file import FileSource, Stamp, Watched, look

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


def test_another_file_to_follow_is_no_change() -> None:
    """What it was is not known; what becomes of it is."""
    watched = Watched({FILE: OLD})

    watched.follow([FILE, OTHER], {FILE: OLD, OTHER: OLD})

    assert not any(watched.is_due({FILE: OLD, OTHER: OLD}) for _ in range(3))
    assert [watched.is_due({FILE: OLD, OTHER: NEW}) for _ in range(2)] == [False, True]


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
        return Attempt(1, document_hash, origin, 0.0)

    file = _written(tmp_path / "config.yaml", b"a: 1\n")
    source = FileSource(file, submit, reject, every_s=0.001)
    await nursery.start(source.run, b"a: 1\n")
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


async def test_change_before_the_first_look_is_submitted(
    nursery: trio.Nursery, tmp_path: Path
) -> None:
    """The Router has read the file, and takes a while to start."""
    file = _written(tmp_path / "config.yaml", b"a: 2\n")
    submitted: list[bytes] = []
    done = trio.Event()

    def submit(update: Update) -> Ticket:
        submitted.append(update.document.text)
        done.set()
        return Ticket(update)

    def reject(document_hash: str, origin: Origin, reasons: tuple[Reason, ...]) -> Attempt:
        return Attempt(1, document_hash, origin, 0.0)

    await nursery.start(FileSource(file, submit, reject, every_s=0.001).run, b"a: 1\n")
    with trio.fail_after(10):
        await done.wait()
    await trio.sleep(0.02)
    nursery.cancel_scope.cancel()

    assert submitted == [b"a: 2\n"]


async def test_included_file_is_followed(watch: Watch, tmp_path: Path) -> None:
    """From when the document that includes it was compiled on."""
    graph = _written(tmp_path / "graph.yaml", b"steps: []\n")
    watch.file.write_bytes(b"a: 2\n")
    (await watch.next()).on_included(["graph.yaml"])
    await watch.nothing()

    graph.write_bytes(b"steps: [1]\n")

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


def _written(file: Path, content: bytes) -> Path:
    file.write_bytes(content)
    return file


def _link(place: Path, target: str) -> None:
    """Let a link lead elsewhere, in one step."""
    new = place.with_name(place.name + "_tmp")
    new.symlink_to(target)
    new.replace(place)
