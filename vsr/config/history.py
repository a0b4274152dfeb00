"""Recorded configurations on disk: a file for each document, and what is known of it beside.

The files of one record appear together or not at all: a mark is there while they are written, and
whoever opens the history next takes away what a mark is left of. Source of names, permissions and
limits: standalone-mode 5.3; the file of included graphs is ours.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

import attrs
import msgspec

from vsr.config.origin import Origin, OriginSource
from vsr.config.record_ids import is_record_id, next_record_id, record_order

DEFAULT_LIMIT = 10
"""Records that are kept. Source: the reference."""
FOLDER = ".vllm-sr/config-backups"
_PREFIX = "config."
_DOCUMENT, _SOURCE, _SNAPSHOT = ".yaml", ".source", ".snapshot.json"
_INCLUDED, _MARK = ".included.json", ".writing"
_LOCK_TRIES, _LOCK_PAUSE_S = 100, 0.02
_SUFFIXES = (_SNAPSHOT, _INCLUDED, _SOURCE, _DOCUMENT, _MARK)


class HistoryFailed(Exception):
    """The history cannot be read or written; says which file and why, and no content."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of one recorded configuration."""

    id: str
    hash: str
    """SHA-256 of the document's bytes and those of files it includes, lower-case hex."""
    origin: Origin
    recorded_at: str
    """RFC 3339, local time with its offset."""
    version: int = 0
    """0: it was never served under a version, or nobody knows."""
    has_document: bool = True


class Document(msgspec.Struct, frozen=True):
    """A configuration as it was written."""

    text: bytes
    included: Mapping[str, bytes] = msgspec.field(default_factory=dict)
    """What files hold that it includes, by the path that it writes."""


class _Included(msgspec.Struct, frozen=True):
    files: dict[str, bytes] = {}


def folder_for(document: Path, environ: Mapping[str, str]) -> Path:
    """Return where the history of the document at `document` is.

    Source: standalone-mode 5.3.
    """
    if override := environ.get("VLLM_SR_CONFIG_BACKUP_DIR"):
        return Path(override)
    folder, name = document.parent, document.name
    if folder.name == ".vllm-sr" and name.startswith("runtime-config"):
        folder = folder.parent
        return folder / FOLDER
    return folder / FOLDER if name == "config.yaml" else folder / FOLDER / name


@attrs.frozen
class History:
    """The recorded configurations of one document, newest first. All methods block on the disk."""

    folder: Path
    limit: int = DEFAULT_LIMIT

    def records(self) -> list[Record]:
        """Return what is recorded, newest first.

        Raises:
            HistoryFailed: the folder cannot be read.
        """
        with self._locked():
            return self._records()

    def document(self, record_id: str) -> Document | None:
        """Return the document of a record; None if there is none.

        Raises:
            HistoryFailed: it cannot be read.
        """
        if not is_record_id(record_id):
            return None
        with self._locked(), self._told():
            try:
                text = self._file(record_id, _DOCUMENT).read_bytes()
            except FileNotFoundError:
                return None
            return Document(text, self._included(record_id))

    def add(
        self,
        document: Document | None,
        *,
        content_hash: str,
        origin: Origin,
        local: datetime,
        version: int = 0,
    ) -> Record:
        """Record a configuration, and forget the oldest ones beyond the limit.

        Args:
            document: as it was written; None: it came from where it stays, as from Kubernetes.
            content_hash: of it.
            origin: where it came from.
            local: now, with the offset of local time.
            version: that it is served under; 0: it is not.

        Raises:
            HistoryFailed: it cannot be written; nothing of it is left.
        """
        with self._locked(), self._told():
            records = self._records()
            record = Record(
                next_record_id(local, [each.id for each in records]),
                content_hash,
                origin,
                local.isoformat(timespec="seconds"),
                version,
                document is not None,
            )
            self._write(record, document)
            self._forget([record, *records])
            return record

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock that other processes with the same folder take, too."""
        with self._told():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with self._told():
                self._wait_for(lock)
                self._take_away_halves()
            yield
        finally:
            os.close(lock)

    def _wait_for(self, lock: int) -> None:
        """Take the lock, which others hold for milliseconds.

        Raises:
            HistoryFailed: somebody does not give it back.
        """
        for _ in range(_LOCK_TRIES):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_LOCK_PAUSE_S)
            else:
                return
        raise HistoryFailed(".lock: another process holds it")

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            name = Path(os.fsdecode(error.filename)).name if error.filename else self.folder.name
            raise HistoryFailed(f"{name}: {error.strerror or 'it cannot be used'}") from error

    def _take_away_halves(self) -> None:
        for mark in self.folder.glob(f"{_PREFIX}*{_MARK}"):
            record_id = mark.name.removeprefix(_PREFIX).removesuffix(_MARK)
            self._remove(record_id)

    def _records(self) -> list[Record]:
        found = []
        for record_id in self._ids():
            record = self._record(record_id)
            if record is not None:
                found.append(record)
        return found

    def _ids(self) -> list[str]:
        ids = set()
        for file in self.folder.iterdir():
            name = file.name.removeprefix(_PREFIX)
            for suffix in (_SNAPSHOT, _DOCUMENT):
                if name != file.name and is_record_id(name.removesuffix(suffix)):
                    ids.add(name.removesuffix(suffix))
        return sorted(ids, key=record_order, reverse=True)

    def _record(self, record_id: str) -> Record | None:
        """Return what is known; of a document alone that it is there, and None of less."""
        has_document = self._file(record_id, _DOCUMENT).exists()
        try:
            known = msgspec.json.decode(self._file(record_id, _SNAPSHOT).read_bytes(), type=Record)
        except (FileNotFoundError, msgspec.MsgspecError):
            if not has_document:
                return None
            return Record(record_id, "", Origin(self._source(record_id)), "")
        return msgspec.structs.replace(known, id=record_id, has_document=has_document)

    def _source(self, record_id: str) -> str:
        try:
            return self._file(record_id, _SOURCE).read_text("utf-8").strip() or OriginSource.LEGACY
        except (FileNotFoundError, UnicodeDecodeError):
            return OriginSource.LEGACY

    def _included(self, record_id: str) -> Mapping[str, bytes]:
        try:
            content = self._file(record_id, _INCLUDED).read_bytes()
        except FileNotFoundError:
            return {}
        try:
            return msgspec.json.decode(content, type=_Included).files
        except msgspec.MsgspecError as error:
            name = self._file(record_id, _INCLUDED).name
            raise HistoryFailed(f"{name}: it does not say what files held") from error

    def _write(self, record: Record, document: Document | None) -> None:
        mark = self._file(record.id, _MARK)
        _create(mark, b"")
        self._sync()
        try:
            if document is not None:
                _create(self._file(record.id, _DOCUMENT), document.text)
                if document.included:
                    included = msgspec.json.encode(_Included(dict(document.included)))
                    _create(self._file(record.id, _INCLUDED), included)
            _create(self._file(record.id, _SOURCE), f"{record.origin.source}\n".encode())
            _create(self._file(record.id, _SNAPSHOT), msgspec.json.encode(record))
            self._sync()
        except BaseException:
            self._remove(record.id)
            raise
        mark.unlink()
        self._sync()

    def _forget(self, records: list[Record]) -> None:
        """Remove what is beyond the limit; the newest configuration that was served stays.

        One that is served again right after itself, as when it is read anew for its secrets, takes
        the place of its earlier record.
        """
        newest = next((each.id for each in records if each.version), None)
        if len(records) > 1 and records[0].version and records[0].hash == records[1].hash:
            self._remove(records.pop(1).id)
        for record in records[self.limit :]:
            if record.id != newest:
                self._remove(record.id)
        self._sync()

    def _remove(self, record_id: str) -> None:
        """Remove a record; what says that it is there goes last, so that a half one is told."""
        mark = self._file(record_id, _MARK)
        mark.touch(0o600)
        for suffix in _SUFFIXES:
            self._file(record_id, suffix).unlink(missing_ok=True)

    def _sync(self) -> None:
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _file(self, record_id: str, suffix: str) -> Path:
        return self.folder / f"{_PREFIX}{record_id}{suffix}"


def _create(file: Path, content: bytes) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb", closefd=False) as opened:
            opened.write(content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
