"""Suspended runs in files."""

import os
import stat
from pathlib import Path

import pytest
import trio

from tests.graph.suspend.runs import suspended
from vsr.errors import GraphFailed
from vsr.graph.suspend.file import FileStore
from vsr.graph.suspend.run import SuspendedRun


def _names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where the store is going to make its directory."""
    return tmp_path / "cache" / "state"


async def test_take_returns_a_run_once_in_any_process(directory: Path) -> None:
    """Another store over the same files is what another worker has; nothing stays behind."""
    await FileStore(directory, os.urandom).put(suspended("a"), now_unix_s=1000)

    assert await FileStore(directory, os.urandom).take("a", now_unix_s=1000) == suspended("a")
    assert await FileStore(directory, os.urandom).take("a", now_unix_s=1000) is None
    assert _names(directory) == set()


async def test_take_by_many_at_once_gives_it_to_one(directory: Path) -> None:
    """The claim is atomic: a tool's result is used once."""
    store = FileStore(directory, os.urandom)
    await store.put(suspended("a"), now_unix_s=1000)
    taken: list[SuspendedRun | None] = []

    async def take() -> None:
        taken.append(await store.take("a", now_unix_s=1000))

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(take)

    assert len([run for run in taken if run is not None]) == 1


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_directory(directory: Path) -> Path:
    """The store's directory, left by somebody who let everybody read it."""
    directory.mkdir(parents=True)
    directory.chmod(0o755)
    return directory


async def test_put_lets_nobody_else_read(open_directory: Path) -> None:
    """Runs hold conversations; a mask of the process or an older directory must not open them."""
    directory = open_directory
    before = os.umask(0)
    try:
        await FileStore(directory, os.urandom).put(suspended("a"), now_unix_s=1000)
    finally:
        os.umask(before)

    assert _mode(directory) == 0o700
    assert _mode(directory / "a.json") == 0o600
    assert _names(directory) == {"a.json"}


async def test_put_replaces_a_run_of_the_same_id(directory: Path) -> None:
    """A run that was taken and put back, or goes on waiting, is there once."""
    store = FileStore(directory, os.urandom)
    await store.put(suspended("a", at_unix_s=1000), now_unix_s=1000)
    await store.put(suspended("a", at_unix_s=1001), now_unix_s=1001)

    taken = await store.take("a", now_unix_s=1001)

    assert taken is not None
    assert taken.created_unix_s == 1001


@pytest.fixture(params=["link", "file"])
def foreign(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return something that stands where the directory should be."""
    path = tmp_path / "state"
    if request.param == "link":
        (tmp_path / "theirs").mkdir()
        path.symlink_to(tmp_path / "theirs")
    else:
        path.write_text("x")
    return path


async def test_put_refuses_a_directory_that_is_not_ours(foreign: Path) -> None:
    """In a place for temporary files somebody else may have been there first."""
    directory = foreign

    with pytest.raises(GraphFailed, match='workflow tool state "a" could not be stored') as raised:
        await FileStore(directory, os.urandom).put(suspended("a"), now_unix_s=1000)

    assert str(directory) not in str(raised.value)


async def test_take_of_an_expired_run_is_none_and_removes_it(directory: Path) -> None:
    """A run lives as long as its time to live."""
    store = FileStore(directory, os.urandom, ttl_s=10)
    for state_id in "ab":
        await store.put(suspended(state_id, at_unix_s=1000), now_unix_s=1000)

    assert await store.take("a", now_unix_s=1010) is not None
    assert await store.take("b", now_unix_s=1010.1) is None
    assert _names(directory) == set()


async def test_take_of_a_broken_file_is_none_and_removes_it(directory: Path) -> None:
    """A file that was cut off, or holds another run than its name says, would fail every time."""
    store = FileStore(directory, os.urandom)
    await store.put(suspended("a"), now_unix_s=1000)
    (directory / "b.json").write_bytes((directory / "a.json").read_bytes())
    (directory / "c.json").write_bytes(b'{"state_id":"c"')

    assert await store.take("b", now_unix_s=1000) is None
    assert await store.take("c", now_unix_s=1000) is None
    assert _names(directory) == {"a.json"}


async def test_put_removes_what_is_too_old_and_is_ours(directory: Path) -> None:
    """Runs of clients that never came back, and what a killed process left, do not pile up."""
    store = FileStore(directory, os.urandom, ttl_s=10)
    await store.put(suspended("old", at_unix_s=980), now_unix_s=980)
    await store.put(suspended("young", at_unix_s=995), now_unix_s=985)
    for name in (f"x.{'0' * 16}.new", f"x.{'0' * 16}.taken", "notes.txt", "x.json.bak"):
        (directory / name).write_text("x")
        os.utime(directory / name, (980, 980))

    await store.put(suspended("new", at_unix_s=1000), now_unix_s=1000)

    assert _names(directory) == {"young.json", "new.json", "notes.txt", "x.json.bak"}


@pytest.mark.parametrize("state_id", ["", "../a", "a/b", "a.b", "a\0", "a\n", "ä", "a" * 65])
async def test_ids_make_no_path(directory: Path, state_id: str) -> None:
    """An id comes from a client: it must not lead out of the directory."""
    store = FileStore(directory, os.urandom)
    await store.put(suspended("a"), now_unix_s=1000)
    (directory.parent / "a.json").write_bytes((directory / "a.json").read_bytes())

    with pytest.raises(GraphFailed, match="bad id"):
        await store.put(suspended(state_id), now_unix_s=1000)

    assert await store.take(state_id, now_unix_s=1000) is None
    assert (directory.parent / "a.json").exists()


async def test_clear_removes_runs_only(directory: Path) -> None:
    """An operator may have chosen a directory in which there is more."""
    store = FileStore(directory, os.urandom)
    await store.clear()
    await store.put(suspended("a"), now_unix_s=1000)
    (directory / "notes.txt").write_text("x")

    await store.clear()

    assert _names(directory) == {"notes.txt"}
