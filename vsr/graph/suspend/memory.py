"""Suspended runs in memory: gone with the process."""

import attrs

from vsr.graph.suspend.run import SuspendedRun, decode_run, encode_run
from vsr.graph.suspend.store import is_state_id, not_kept


@attrs.define
class _Kept:
    created_unix_s: float
    encoded: bytes


@attrs.define
class MemoryStore:
    """One per process; past a bound the oldest runs are forgotten.

    Every method does its work between two awaits, so it needs no lock.
    """

    ttl_s: float = 1800
    max_runs: int = 1000
    max_bytes: int = 256 * 1024 * 1024
    """Of all runs together, as JSON."""
    _kept: dict[str, _Kept] = attrs.field(factory=dict, init=False)
    """Oldest put first."""
    _bytes: int = attrs.field(default=0, init=False)

    async def put(self, run: SuspendedRun, *, now_unix_s: float) -> None:
        """Keep a run, in the place of one with its id.

        Raises:
            GraphFailed: the id is none, or the run alone is larger than the bound.
        """
        if not is_state_id(run.state_id):
            raise not_kept(run.state_id, "bad id")
        encoded = encode_run(run)
        if len(encoded) > self.max_bytes:
            raise not_kept(run.state_id, "too large")
        self._forget(run.state_id)
        self._forget_expired(now_unix_s)
        while self._kept and (
            len(self._kept) >= self.max_runs or self._bytes + len(encoded) > self.max_bytes
        ):
            self._forget(next(iter(self._kept)))
        self._kept[run.state_id] = _Kept(run.created_unix_s, encoded)
        self._bytes += len(encoded)

    async def put_back(self, run: SuspendedRun, *, now_unix_s: float) -> None:
        """Keep a run that was taken; see `put`."""
        await self.put(run, now_unix_s=now_unix_s)

    async def take(self, state_id: str, *, now_unix_s: float) -> SuspendedRun | None:
        """Return a run and forget it; None where it is unknown or expired."""
        self._forget_expired(now_unix_s)
        kept = self._forget(state_id)
        return None if kept is None else decode_run(kept.encoded)

    async def clear(self) -> None:
        """Forget all runs."""
        self._kept.clear()
        self._bytes = 0

    def _forget(self, state_id: str) -> _Kept | None:
        kept = self._kept.pop(state_id, None)
        self._bytes -= len(kept.encoded) if kept else 0
        return kept

    def _forget_expired(self, now_unix_s: float) -> None:
        expired = [
            state_id
            for state_id, kept in self._kept.items()
            if now_unix_s - kept.created_unix_s > self.ttl_s
        ]
        for state_id in expired:
            self._forget(state_id)
