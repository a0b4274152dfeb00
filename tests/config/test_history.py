"""Recorded configurations on disk."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from vsr.config.history import Document, History, HistoryFailed, Record, folder_for
from vsr.config.origin import Origin

AT = datetime(2026, 3, 1, 12, 30, 5, tzinfo=timezone(timedelta(hours=1)))
FILE = Origin("file")
API = Origin("api", "admin", "req-1", 3)


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Return an empty one that keeps three records."""
    return History(tmp_path / "backups", 3)


def add(history: History, at: int, version: int = 0, text: bytes | None = b"a: 1\n") -> Record:
    """Record a document so many seconds after the first one."""
    return history.add(
        None if text is None else Document(text),
        content_hash=f"hash-{at}",
        origin=FILE,
        local=AT + timedelta(seconds=at),
        version=version,
    )


def names(history: History) -> set[str]:
    """Return the names of all files but the lock's."""
    return {each.name for each in history.folder.iterdir()} - {".lock"}


def test_record_comes_back_with_its_document_and_files(history: History) -> None:
    """Byte for byte, included files too."""
    document = Document(b"# \xff not even UTF-8\n", {"graphs/a.yaml": b"\x00\xff", "b.yaml": b"b"})

    record = history.add(document, content_hash="abc", origin=API, local=AT, version=7)

    assert history.records() == [record]
    assert history.document(record.id) == document
    assert record == Record(
        "20260301-123005", "abc", API, "2026-03-01T12:30:05+01:00", 7, has_document=True
    )
    assert names(history) == {
        f"config.{record.id}{suffix}"
        for suffix in (".yaml", ".included.json", ".source", ".snapshot.json")
    }
    assert (history.folder / f"config.{record.id}.source").read_text() == "api\n"


def test_only_the_owner_may_read(history: History) -> None:
    """A document may hold credentials."""
    add(history, 0)

    assert history.folder.stat().st_mode & 0o777 == 0o700
    assert {each.stat().st_mode & 0o777 for each in history.folder.iterdir()} == {0o600}


def test_lock_that_nobody_gives_back_is_a_failure(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while; whoever asked goes on without a history."""
    add(history, 0)
    monkeypatch.setattr("vsr.config.history._LOCK_PAUSE_S", 0.0)
    with (history.folder / ".lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(HistoryFailed, match="another process holds it"):
            history.records()

    assert len(history.records()) == 1


def test_document_that_is_served_again_takes_the_place_of_its_record(history: History) -> None:
    """Reading it anew for its secrets does not push the others out."""
    other = add(history, 0, version=1)
    ids = [
        history.add(
            Document(b"a: 2"),
            content_hash="same",
            origin=FILE,
            local=AT + timedelta(seconds=at),
            version=at + 1,
        ).id
        for at in range(1, 6)
    ]

    assert [record.id for record in history.records()] == [ids[-1], other.id]


def test_oldest_records_go_beyond_the_limit(history: History) -> None:
    """But never the newest one that was served."""
    ids = [add(history, 0, version=1).id, *(add(history, at).id for at in range(1, 6))]

    kept = [record.id for record in history.records()]

    assert kept == [ids[5], ids[4], ids[3], ids[0]]
    assert history.document(ids[1]) is None
    add(history, 9, version=2)
    assert ids[0] not in [record.id for record in history.records()]


def test_document_without_metadata_is_a_record_of_its_own(history: History) -> None:
    """Older releases wrote no more, and some of them their source."""
    history.folder.mkdir(parents=True)
    (history.folder / "config.20250101-000000.yaml").write_bytes(b"old")
    (history.folder / "config.20250101-000001.yaml").write_bytes(b"older")
    (history.folder / "config.20250101-000001.source").write_text("dsl\n")
    (history.folder / "config.20250101-000002.source").write_text("file\n")
    (history.folder / "config.yaml").write_bytes(b"no record")

    known = [(each.id, each.version, each.origin.source) for each in history.records()]

    assert known == [("20250101-000001", 0, "dsl"), ("20250101-000000", 0, "legacy")]
    assert history.document("20250101-000000") == Document(b"old")


def test_record_without_a_document_says_so(history: History) -> None:
    """As of a document that stays in Kubernetes."""
    record = add(history, 0, version=4, text=None)

    assert history.records() == [record]
    assert not record.has_document
    assert history.document(record.id) is None


@pytest.mark.parametrize("record_id", ["../secret", "20260301-123005", "", "..", "a/b"])
def test_unknown_id_has_no_document(record_id: str, history: History) -> None:
    """And never leads out of the folder."""
    (history.folder.parent / "secret.yaml").write_bytes(b"secret")

    assert history.document(record_id) is None


class Killed(BaseException):
    """The process is gone."""


def _until(history: History, dies_at: int) -> int:
    """Add a record in a process that is killed at one of the calls that change the disk.

    Returns:
        How many there were: less than `dies_at` where it was not killed.
    """
    count = 0

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*args: object, **more: object) -> object:
            nonlocal count
            count += 1
            if count >= dies_at:  # it cleans nothing up, either
                raise Killed
            return call(*args, **more)

        return wrapped

    with pytest.MonkeyPatch.context() as patch:
        for name in ("open", "fsync"):
            patch.setattr(os, name, counted(getattr(os, name)))
        for name in ("unlink", "touch"):
            patch.setattr(Path, name, counted(getattr(Path, name)))
        with suppress(Killed):
            history.add(
                Document(b"new", {"f": b"x"}), content_hash="n", origin=FILE, local=AT, version=9
            )
    return count


def test_process_that_is_killed_leaves_whole_records_only(tmp_path: Path) -> None:
    """Whenever it is killed; the record is there or it is not, and the next one is written."""
    calls = _until(History(tmp_path / "count", 1), 1000)
    assert calls > 12
    seen = set()
    for dies_at in range(1, calls + 2):
        history = History(tmp_path / str(dies_at), 1)
        old = add(history, -9, version=8)
        _until(history, dies_at)

        records = history.records()

        assert old in records or records[0].version == 9
        for record in records:
            document = history.document(record.id)
            assert document == (Document(b"new", {"f": b"x"}) if record.version == 9 else DOCUMENT)
        seen.add(records[0].version)
        assert add(history, 60, version=10) in history.records()
        assert not any(name.endswith(".writing") for name in names(history))
    assert seen == {8, 9}


DOCUMENT = Document(b"a: 1\n")


def test_what_cannot_be_written_leaves_nothing(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says which file it was, and never what it would have held."""
    add(history, 0)
    before = names(history)
    real = os.open

    def full(path: object, flags: int, mode: int = 0o777) -> int:
        if str(path).endswith(".snapshot.json") and flags & os.O_CREAT:
            raise OSError(28, "No space left on device", str(path))
        return real(path, flags, mode)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(os, "open", full)

    with pytest.raises(HistoryFailed) as caught:
        add(history, 1, text=b"password: canary")

    assert str(caught.value) == "config.20260301-123006.snapshot.json: No space left on device"
    monkeypatch.undo()
    assert names(history) == before


WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from vsr.config.history import Document, History
from vsr.config.origin import Origin
for _ in range(10):
    History(Path(sys.argv[1]), 100).add(
        Document(b"a: 1"), content_hash="h", origin=Origin("api"), local=datetime.now(UTC)
    )
"""


def test_processes_never_write_at_once(tmp_path: Path) -> None:
    """Each adds ten records; every one is whole, and its id its own."""
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen(command) for _ in range(3)]  # noqa: S603  # our own interpreter

    assert [writer.wait() for writer in writers] == [0, 0, 0]

    records = History(tmp_path).records()
    assert len({record.id for record in records}) == 30
    assert {record.hash for record in records} == {"h"}


@pytest.mark.parametrize(
    ("document", "folder"),
    [
        ("/etc/vsr/config.yaml", "/etc/vsr/.vllm-sr/config-backups"),
        ("/etc/vsr/other.yaml", "/etc/vsr/.vllm-sr/config-backups/other.yaml"),
        ("/srv/.vllm-sr/runtime-config.abc.yaml", "/srv/.vllm-sr/config-backups"),
    ],
)
def test_folder_stands_beside_the_document(document: str, folder: str) -> None:
    """Two documents of one folder have one each."""
    assert folder_for(Path(document), {}) == Path(folder)
    elsewhere = {"VLLM_SR_CONFIG_BACKUP_DIR": "/var/lib/x"}
    assert folder_for(Path(document), elsewhere) == Path("/var/lib/x")
