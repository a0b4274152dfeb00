"""What only a restart brings."""

import pytest

from vsr.config.attempt import Code
from vsr.config.restart import only_by_restart
from vsr.resources.listener import Listener
from vsr.resources.snapshot import Snapshot
from vsr.resources.tracing import SpanExporter, Tracing

LISTENER = Listener("public", "127.0.0.1", 8899, 30.0)
TRACING = Tracing(SpanExporter.STDOUT)


@pytest.mark.parametrize(
    ("snapshot", "codes"),
    [
        (Snapshot("a", listeners=(LISTENER,)), []),
        (Snapshot("a"), [Code.INVALID_RESOURCE]),
        (
            Snapshot("a", listeners=(LISTENER,), tracing=TRACING),
            [Code.RESTART_REQUIRED],
        ),
        (
            Snapshot("a", tracing=TRACING),
            [Code.INVALID_RESOURCE, Code.RESTART_REQUIRED],
        ),
    ],
)
def test_every_reason_is_told(snapshot: Snapshot, codes: list[Code]) -> None:
    """No listener, and tracing that is set up otherwise."""
    reasons = only_by_restart(snapshot, None)

    assert [reason.code for reason in reasons] == codes
