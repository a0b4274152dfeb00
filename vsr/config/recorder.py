"""Recording what serves, and the version that a process begins with."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime

import attrs
import trio

from vsr.config.attempt import ActiveConfiguration
from vsr.config.history import Document, History, HistoryFailed, Record

_log = logging.getLogger("vsr.config")


@attrs.define(eq=False)
class DiskRecorder:
    """Implements `config.lifecycle.Recorder`: a history that fails stops nothing."""

    history: History
    local: Callable[[], datetime]
    """Now, with the offset of local time."""

    async def record(self, document: Document | None, active: ActiveConfiguration) -> None:
        """Record what serves now."""
        await trio.to_thread.run_sync(self.record_now, document, active, abandon_on_cancel=True)

    def record_now(self, document: Document | None, active: ActiveConfiguration) -> None:
        """Do so at once; blocks on the disk."""
        try:
            self.history.add(
                document,
                content_hash=active.hash,
                origin=active.origin,
                local=self.local(),
                version=active.version,
            )
        except HistoryFailed as error:
            _log.warning("config_history_record_failed: version %d: %s", active.version, error)

    def records_now(self) -> list[Record]:
        """Return what is recorded, newest first; nothing where it cannot be read."""
        try:
            return self.history.records()
        except HistoryFailed as error:
            _log.warning("config_history_read_failed: %s", error)
            return []


def first_version(records: Sequence[Record], document_hash: str) -> tuple[int, bool]:
    """Return the version that a process begins with, and whether it is a new one.

    The newest recorded document keeps its version; any other is the next one.
    Source: standalone-mode 5.3.

    Args:
        records: newest first.
        document_hash: of what is to be served.
    """
    served = [record for record in records if record.version]
    if served and served[0].hash == document_hash:
        return served[0].version, False
    return max((record.version for record in served), default=0) + 1, True
