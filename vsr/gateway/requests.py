"""The requests of a process that are under way, and those that have ended last."""

from collections import deque
from typing import TYPE_CHECKING

import attrs
import msgspec

from vsr.routing.outcome import Outcome
from vsr.routing.session import Grounds
from vsr.telemetry.access_log import AccessLine

if TYPE_CHECKING:
    from vsr.gateway.handler import RequestRun

KEPT = 200
"""Requests that are kept when they have ended."""


class EndedRequest(msgspec.Struct, frozen=True, gc=False):
    """What is kept of a request: its line in the access log, and what led there."""

    line: AccessLine
    started_at: float
    """Monotonic seconds."""
    outcome: Outcome
    grounds: Grounds | None
    """None where it came to no routing."""
    error: str
    """Code of what the client was told; empty: none."""


@attrs.define(eq=False)
class Requests:
    """Knows the requests of one process; what operators see of them is made when they ask."""

    under_way: "set[RequestRun]" = attrs.field(factory=set)
    ended: deque[EndedRequest] = attrs.field(factory=lambda: deque(maxlen=KEPT))
    """The newest last."""

    def end(self, run: "RequestRun", line: AccessLine, outcome: Outcome) -> None:
        """Take note of the end of a request, which has been accounted for."""
        self.under_way.discard(run)
        plan, error = run.journal.plan, run.error
        grounds = None if plan is None else plan.session.grounds
        code = "" if grounds is None else grounds.refusal
        self.ended.append(
            EndedRequest(
                line,
                run.started_at,
                outcome,
                grounds,
                code if error is None else error.code,
            )
        )
