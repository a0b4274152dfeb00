"""Suspended runs for tests."""

import msgspec

from vsr.codec.chat_reply import ReplyUsage
from vsr.graph.account import Account
from vsr.graph.suspend.run import RunIdentity, SuspendedCall, SuspendedRun

STATE = "0123456789abcdef01234567"
OWNER = RunIdentity("alice", "hash", "route", msgspec.Raw(b'{"a":1,"b":[2]}'))


def suspended(
    state_id: str = STATE, *, at_unix_s: float = 1000.0, request: bytes = b"{}"
) -> SuspendedRun:
    """Return a run that was suspended at `at_unix_s`."""
    call = SuspendedCall(
        "rounds.0.agents.1",
        msgspec.Raw(b'[{"role":"user","content":"\\u00e4"}]'),
        msgspec.Raw(b'{"role":"assistant"}'),
        (f"flowtool_{state_id}__0__c",),
        1,
        (("earlier",),),
    )
    return SuspendedRun(
        state_id,
        at_unix_s,
        OWNER,
        7,
        msgspec.Raw(request),
        msgspec.Raw(b"[1,2]"),
        Account(ReplyUsage(1, 2, 3), ["a"], 1),
        call,
    )
