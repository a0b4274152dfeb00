"""The document's file, replaced whole."""

import os
import stat
from pathlib import Path

import pytest

from vsr.config.history import Document
from vsr.config.persisted import FileChanged, read_file, replace_file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a document's file."""
    file = tmp_path / "config.yaml"
    file.write_bytes(b"old")
    file.chmod(0o640)
    return file


def test_file_is_another_one_with_the_old_permissions(file: Path) -> None:
    """So that who reads it sees one or the other, and nothing else is left."""
    inode = file.stat().st_ino

    replace_file(file, Document(b"new"), b"old")

    assert read_file(file) == b"new"
    assert file.stat().st_ino != inode
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert [each.name for each in file.parent.iterdir()] == ["config.yaml"]


def test_file_that_somebody_else_has_written_is_left_alone(file: Path) -> None:
    """What they wrote is not lost."""
    with pytest.raises(FileChanged):
        replace_file(file, Document(b"new", {"g.yaml": b"g"}), b"older")

    assert read_file(file) == b"old"
    assert [each.name for each in file.parent.iterdir()] == ["config.yaml"]


def test_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    """What it leads to is replaced."""
    link = tmp_path / "link.yaml"
    link.symlink_to("config.yaml")

    replace_file(link, Document(b"new"), b"old")

    assert link.is_symlink()
    assert file.read_bytes() == b"new"


def test_included_files_are_written_where_they_differ(file: Path) -> None:
    """The others are not touched."""
    same, other = file.with_name("same.yaml"), file.with_name("other.yaml")
    same.write_bytes(b"same")
    other.write_bytes(b"changed since")
    inode = same.stat().st_ino
    included = {"same.yaml": b"same", "other.yaml": b"recorded", "gone.yaml": b"again"}

    replace_file(file, Document(b"new", included), b"old")

    assert (other.read_bytes(), file.with_name("gone.yaml").read_bytes()) == (b"recorded", b"again")
    assert same.stat().st_ino == inode


def test_nothing_is_replaced_if_something_cannot_be_written(file: Path) -> None:
    """A folder of an included file that is not there, here."""
    with pytest.raises(OSError, match="No such file"):
        replace_file(file, Document(b"new", {"nowhere/g.yaml": b"g"}), b"old")

    assert read_file(file) == b"old"
    assert [each.name for each in file.parent.iterdir()] == ["config.yaml"]


def test_everything_is_renamed_before_anything_waits_for_the_disk(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What somebody writes in between would be lost, and a disk may take long."""
    order: list[str] = []
    replace, sync = Path.replace, os.open

    def noted_replace(self: Path, target: Path) -> Path:
        order.append("rename")
        return replace(self, target)

    def noted_open(path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_DIRECTORY:
            order.append("sync")
        return sync(path, flags, mode)

    monkeypatch.setattr(Path, "replace", noted_replace)
    monkeypatch.setattr("vsr.config.persisted.os.open", noted_open)

    replace_file(file, Document(b"new", {"a.yaml": b"1", "b.yaml": b"2"}), file.read_bytes())

    assert order == ["rename", "rename", "rename", "sync"]
