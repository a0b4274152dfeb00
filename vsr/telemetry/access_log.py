"""The access log: one JSON line per request, written in batches off the request's path."""

import logging
import os
import time
from collections.abc import Awaitable, Callable
from enum import StrEnum

import msgspec
import trio
from msgspec import UNSET, UnsetType

from vsr.telemetry.losses import Losses

_MAX_HELD_LINES = 100_000
"""Lines kept while the sink is stuck; beyond it lines are dropped and counted."""
_BATCH_WAIT_S = 0.2
_log = logging.getLogger("vsr.telemetry")


class TryLine(msgspec.Struct, frozen=True):
    """One attempt of a graph's call."""

    endpoint: str
    outcome: StrEnum
    cause: StrEnum | None
    status: int | None
    error: str | None


class CallLine(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a request's graph; what is not known is null."""

    step: str
    model: str | None
    """None for a verifier."""
    outcome: StrEnum
    cause: StrEnum | None
    status: int | None
    error: str | None
    duration_ms: int
    prompt_tokens: int | None
    completion_tokens: int | None
    attempts: list[TryLine]


class AccessLine(msgspec.Struct, kw_only=True, gc=False):
    """One request. No prompt, reply, key or credential is ever a member.

    Source: names and meanings of the reference's access event; the members from
    `response_flags` on are additions.
    """

    component: str = "gateway"
    event: str = "access"
    start_time: str
    method: str
    path: str
    protocol: str
    response_code: int = 0
    """0 when nothing was written."""
    bytes_received: int = 0
    bytes_sent: int = 0
    """Body bytes."""
    duration_ms: float = 0.0
    upstream_service_time: float | None = None
    """Milliseconds from sending the call to having its response head."""
    x_forwarded_for: str = ""
    user_agent: str = ""
    request_id: str = ""
    authority: str = ""
    upstream_host: str = ""
    response_flags: str = "-"
    outcome: StrEnum
    cause: StrEnum | None = None
    attempts: int = 0
    listener: str = ""
    recipe: str | None = None
    decision: str | None = None
    model: str | None = None
    config_version: int = 0
    prompt_tokens: int | None = None
    """None when the backend did not say."""
    completion_tokens: int | None = None
    first_byte_ms: float | None = None
    """Milliseconds to the first body byte written to the client."""
    algorithm: str | UnsetType = UNSET
    """Of the graph that answered for the decision, as what follows; not written for others."""
    calls: list[CallLine] | UnsetType = UNSET
    calls_dropped: int | UnsetType = UNSET


class AccessLog:
    """Collects lines and hands them to `sink` a batch at a time; `run` must be running."""

    def __init__(self, sink: Callable[[bytes], Awaitable[None]]) -> None:
        self._sink = sink
        self._encode = msgspec.json.Encoder().encode
        self._held: list[bytes] = []
        self._has_lines = trio.Event()
        self._second = 0
        self._second_text = ""
        self.dropped = 0
        self.losses = Losses()

    def add(self, line: AccessLine) -> None:
        """Take one line; never waits."""
        if not self._held:
            self._has_lines.set()
        elif len(self._held) >= _MAX_HELD_LINES:
            self.dropped += 1
            return
        self._held.append(self._encode(line))

    def stamp(self, wall_ns: int) -> str:
        """Return nanoseconds since 1970 as RFC 3339 in UTC."""
        second, nanoseconds = divmod(wall_ns, 1_000_000_000)
        if second != self._second:
            self._second = second
            self._second_text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._second_text}.{nanoseconds:09d}Z"

    async def run(self) -> None:
        """Write batches until cancelled; then `flush` writes what is left."""
        while True:
            await self._has_lines.wait()
            await trio.sleep(_BATCH_WAIT_S)
            self._has_lines = trio.Event()
            await self.flush()

    async def flush(self) -> None:
        """Write what is held."""
        if not self._held:
            return
        lines, self._held = self._held, []
        try:
            await self._sink(b"\n".join((*lines, b"")))
        except OSError as error:
            # Nobody reads the log, or the disk is full: requests are served all the same.
            if not self.dropped:
                _log.warning("access log lines are lost: %s", os.strerror(error.errno or 0))
            self.dropped += len(lines)
            self.losses = self.losses.failed(type(error).__name__)
        else:
            self.losses = self.losses.went_well()
