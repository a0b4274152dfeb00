"""Suspended runs in files, where a task no longer waits for its thread."""

import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from tests.graph.suspend.runs import suspended
from vsr.errors import GraphFailed
from vsr.graph.suspend import file
from vsr.graph.suspend.file import FileStore
from vsr.graph.suspend.run import SuspendedRun


def _names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where the store is going to make its directory."""
    return tmp_path / "state"


@attrs.define
class Gate:
    """Holds a thread up in one function until it is opened."""

    function: Callable[..., Any]
    open: threading.Event = attrs.field(factory=threading.Event)
    reached: threading.Event = attrs.field(factory=threading.Event)
    is_before: bool = True
    """Whether it is held up before the function does its work, or behind that."""
    held: int = 1
    """How many calls are held up."""

    def __call__(self, *arguments: object, **options: object) -> object:
        """Call the function, early or late."""
        self.held -= 1
        if self.held < 0:
            return self.function(*arguments, **options)
        found = None if self.is_before else self.function(*arguments, **options)
        self.reached.set()
        assert self.open.wait(30)
        return self.function(*arguments, **options) if self.is_before else found

    async def wait(self) -> None:
        """Wait until a thread is held up."""
        await trio.to_thread.run_sync(self.reached.wait)


GateAt = Callable[..., Gate]


@pytest.fixture
def gate_at(monkeypatch: pytest.MonkeyPatch) -> Iterator[GateAt]:
    """Return what holds threads of stores up: in `path.NAME`, or in a function of the module."""
    gates: list[Gate] = []

    def gate(owner: object, name: str, *, is_before: bool = True, held: int = 1) -> Gate:
        made = Gate(getattr(owner, name), is_before=is_before, held=held)
        gates.append(made)

        def held_up(*arguments: object, **options: object) -> object:  # a method binds, Gate won't
            return made(*arguments, **options)

        monkeypatch.setattr(owner, name, held_up)
        return made

    yield gate
    for each in gates:
        each.open.set()


async def _given_up(work: Callable[[], Awaitable[object]], gate: Gate) -> None:
    """Cancel `work` once its thread is held up; it ends at once."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        await gate.wait()
        nursery.cancel_scope.cancel()


async def _ended(store: FileStore) -> None:
    """Wait until the store's threads have ended."""
    await _until(lambda: not store._limiter.borrowed_tokens)


async def _until(is_so: Callable[[], bool]) -> None:
    """Wait for a thread, which sets no event of ours."""
    while True:
        if is_so():
            return
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    ("owner", "name", "is_before"),
    [(Path, "rename", True), (Path, "rename", False), (file, "decode_run", True)],
)
async def test_take_that_is_given_up_leaves_the_run(
    directory: Path, gate_at: GateAt, owner: object, name: str, *, is_before: bool
) -> None:
    """Wherever the disk holds its thread up: what that claims later, it gives back."""
    store = FileStore(directory, os.urandom)
    await store.put(suspended("a"), now_unix_s=1000)
    gate = gate_at(owner, name, is_before=is_before)

    await _given_up(partial(store.take, "a", now_unix_s=1000), gate)
    gate.open.set()
    await _ended(store)

    assert _names(directory) == {"a.json"}
    assert await store.take("a", now_unix_s=1000) == suspended("a")


async def test_take_gets_what_another_one_has_given_up(
    directory: Path, gate_at: GateAt, autojump_clock: trio.testing.MockClock
) -> None:
    """Of two, the one that did not give up has it, though the other had claimed it."""
    store = FileStore(directory, os.urandom)
    await store.put(suspended("a"), now_unix_s=1000)
    gate = gate_at(file, "decode_run")
    await _given_up(partial(store.take, "a", now_unix_s=1000), gate)
    taken: list[SuspendedRun | None] = []

    async def take() -> None:
        taken.append(await store.take("a", now_unix_s=1000))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        await trio.sleep(1)
        assert taken == []
        gate.open.set()

    assert taken == [suspended("a")]


async def test_take_that_was_done_when_it_is_given_up_puts_the_run_back(
    directory: Path, gate_at: GateAt
) -> None:
    """The thread has handed it over, and nobody was there to have it."""
    store = FileStore(directory, os.urandom)
    await store.put(suspended("a"), now_unix_s=1000)
    gate = gate_at(Path, "unlink")

    await _given_up(partial(store.take, "a", now_unix_s=1000), gate)
    gate.open.set()

    assert await store.take("a", now_unix_s=1000) == suspended("a")
    await _ended(store)
    assert _names(directory) == set()


@pytest.mark.parametrize(("owner", "name"), [(file, "encode_run"), (os, "utime")])
async def test_put_that_is_given_up_shows_nothing(
    directory: Path, gate_at: GateAt, owner: object, name: str
) -> None:
    """A run that was put back meanwhile is not replaced by a stop that never happened."""
    store = FileStore(directory, os.urandom)
    await store.put(suspended("a", at_unix_s=1000), now_unix_s=1000)
    before = await store.take("a", now_unix_s=1000)
    assert before is not None
    gate = gate_at(owner, name)

    await _given_up(partial(store.put, suspended("a", at_unix_s=1001), now_unix_s=1001), gate)
    await store.put_back(before, now_unix_s=1001)
    gate.open.set()
    await _ended(store)

    assert _names(directory) == {"a.json"}
    assert await store.take("a", now_unix_s=1001) == before


@pytest.mark.parametrize("is_before", [True, False])
async def test_put_that_is_given_up_while_it_is_shown_gives_way(
    directory: Path, gate_at: GateAt, *, is_before: bool
) -> None:
    """Its thread is past the point of no return; what is put back counts, whoever is first."""
    store = FileStore(directory, os.urandom)
    await store.put(suspended("a", at_unix_s=1000), now_unix_s=1000)
    before = await store.take("a", now_unix_s=1000)
    assert before is not None
    gate = gate_at(Path, "replace", is_before=is_before)

    await _given_up(partial(store.put, suspended("a", at_unix_s=1001), now_unix_s=1001), gate)
    await store.put_back(before, now_unix_s=1001)
    gate.open.set()
    await _ended(store)

    assert _names(directory) == {"a.json"}
    assert await store.take("a", now_unix_s=1001) == before


async def test_run_is_put_back_though_nobody_waits_and_all_threads_hang(
    directory: Path, gate_at: GateAt, autojump_clock: trio.testing.MockClock
) -> None:
    """A run that is on its way back is there for who asks for it."""
    store = FileStore(directory, os.urandom)
    await store.put(suspended("a"), now_unix_s=1000)
    before = await store.take("a", now_unix_s=1000)
    assert before is not None
    hanging = gate_at(Path, "rename", held=8)
    async with trio.open_nursery() as nursery:
        for at in range(9):
            nursery.start_soon(partial(store.take, f"b{at}", now_unix_s=1000))
        await hanging.wait()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    writing = gate_at(os, "utime")

    await _given_up(partial(store.put_back, before, now_unix_s=1000), writing)
    hanging.open.set()
    taken: list[SuspendedRun | None] = []

    async def take() -> None:
        taken.append(await store.take("a", now_unix_s=1000))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        await trio.sleep(1)
        writing.open.set()

    assert taken == [before]


async def test_threads_that_hang_leave_those_of_others_alone(
    directory: Path, gate_at: GateAt
) -> None:
    """The process has forty of them for everything else."""
    store = FileStore(directory, os.urandom)
    gate = gate_at(Path, "rename", held=100)

    async with trio.open_nursery() as nursery:
        for at in range(100):
            nursery.start_soon(partial(store.take, f"b{at}", now_unix_s=1000))
        await gate.wait()
        await trio.testing.wait_all_tasks_blocked()
        used = trio.to_thread.current_default_thread_limiter().borrowed_tokens
        nursery.cancel_scope.cancel()
    gate.open.set()
    await _ended(store)

    assert used == 0


async def test_run_that_cannot_be_put_back_is_told_of(
    directory: Path, gate_at: GateAt, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever waits for it is told; if nobody does any more, the operator is, without a path."""
    store = FileStore(directory, os.urandom)
    await store.put(suspended("a"), now_unix_s=1000)
    before = await store.take("a", now_unix_s=1000)
    assert before is not None
    place = trio.Path(directory)
    await place.rmdir()
    await place.write_text("x")

    with pytest.raises(GraphFailed, match="could not be stored"):
        await store.put_back(before, now_unix_s=1000)
    assert caplog.messages == []
    gate = gate_at(Path, "mkdir")
    await _given_up(partial(store.put_back, before, now_unix_s=1000), gate)
    gate.open.set()
    await _until(lambda: bool(caplog.messages))

    assert caplog.messages == ["a run that waits for tools is lost: File exists"]
