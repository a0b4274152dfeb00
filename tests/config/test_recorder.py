"""Recording what serves, and the version that a process begins with."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from vsr.config.attempt import ActiveConfiguration
from vsr.config.history import Document, History, Record
from vsr.config.origin import Origin
from vsr.config.recorder import DiskRecorder, first_version

API = Origin("api")


def record(version: int, content_hash: str) -> Record:
    """Return one."""
    return Record(f"20260101-00000{version}", content_hash, API, "", version)


@pytest.mark.parametrize(
    ("records", "document_hash", "begins"),
    [
        ([], "a", (1, True)),
        ([record(7, "a")], "a", (7, False)),
        ([record(7, "a")], "b", (8, True)),
        ([record(8, "b"), record(7, "a")], "a", (9, True)),
        ([record(0, "a"), record(7, "a")], "a", (7, False)),
        ([record(0, "a")], "a", (1, True)),
    ],
)
def test_newest_document_keeps_its_version(
    records: list[Record], document_hash: str, begins: tuple[int, bool]
) -> None:
    """Any other one is the next, an older one that comes back too."""
    assert first_version(records, document_hash) == begins


async def test_what_serves_is_recorded(tmp_path: Path) -> None:
    """With its version, hash and origin."""
    recorder = DiskRecorder(History(tmp_path), lambda: datetime(2026, 1, 1, tzinfo=UTC))

    await recorder.record(Document(b"a: 1"), ActiveConfiguration(3, "h", API, 0.0))

    (kept,) = recorder.records_now()
    assert (kept.version, kept.hash, kept.origin) == (3, "h", API)


async def test_history_that_fails_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told, with no word of the document."""
    (tmp_path / "file").write_text("no folder")
    recorder = DiskRecorder(History(tmp_path / "file"), lambda: datetime(2026, 1, 1, tzinfo=UTC))

    await recorder.record(Document(b"canary"), ActiveConfiguration(3, "h", API, 0.0))

    assert "config_history_record_failed: version 3" in caplog.text
    assert "canary" not in caplog.text
    assert recorder.records_now() == []
