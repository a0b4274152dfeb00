"""What was changed and by whom: a ring of entries, each of which proves the one before.

Source of members, limits and actions: standalone-mode 5.4.
"""

import hashlib
from collections import deque
from collections.abc import Callable

import attrs
import msgspec

from vsr.admin.answer import Invalid, rfc3339
from vsr.config.attempt import Attempt, AttemptStatus

CAPACITY = 10_000
MAX_PATH = 256
"""Characters of a path that are held: names in it are of any length."""
_DEFAULT_LIMIT, _MAX_LIMIT = 100, 1000
_ACTIONS = {
    AttemptStatus.ACTIVE: "config.activate",
    AttemptStatus.FAILED: "config.reject",
    AttemptStatus.SUPERSEDED: "config.supersede",
}


class AuditConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a configuration."""

    version: int
    """0: it does not serve."""
    hash: str
    source: str
    result: str
    stage: str
    codes: tuple[str, ...] = ()


class AuditEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was done, or that happened.

    `hash` is the SHA-256 of the entry as compact JSON without `hash`, its members in this order.
    """

    sequence: int
    timestamp: str
    action: str
    request_id: str
    role: str
    previous_hash: str
    """Empty: it is the first."""
    method: str = ""
    path: str = ""
    status: int = 0
    config: AuditConfig | None = None
    hash: str = ""


class AuditPage(msgspec.Struct, frozen=True):
    """A part of the entries, oldest first."""

    entries: tuple[AuditEntry, ...]
    next_sequence: int
    """To ask for what is behind them."""
    oldest_sequence: int
    """0: there is none."""
    has_more: bool
    truncated: bool
    """Whether entries behind the one that was asked for are gone."""
    retention: str = "process"
    capacity: int = CAPACITY


@attrs.define(eq=False)
class Audit:
    """Holds the last entries; nothing of it outlives the process."""

    unix: Callable[[], float]
    """Now, in seconds since 1970."""
    capacity: int = CAPACITY
    _entries: deque[AuditEntry] = attrs.field(init=False)
    _last_hash: str = attrs.field(default="", init=False)
    _last_sequence: int = attrs.field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._entries = deque(maxlen=self.capacity)

    def note_request(
        self, action: str, *, request_id: str, role: str, place: tuple[str, str], status: int
    ) -> None:
        """Take note of a change that somebody asked for.

        Args:
            action: what it was.
            request_id: of the request.
            role: of who asked.
            place: method and path.
            status: it was answered with.
        """
        method, path = place[0], place[1][:MAX_PATH]
        entry = self._next(action, request_id, role)
        self._add(msgspec.structs.replace(entry, method=method, path=path, status=status))

    def note_attempt(self, attempt: Attempt) -> None:
        """Take note of how a change of the configuration ended; an observer of the lifecycle."""
        action = _ACTIONS.get(attempt.status)
        if action is None:
            return
        config = AuditConfig(
            attempt.version,
            attempt.document_hash,
            attempt.origin.source,
            attempt.status,
            attempt.stage,
            tuple(dict.fromkeys(str(reason.code) for reason in attempt.reasons)),
        )
        origin = attempt.origin
        entry = self._next(action, origin.request_id, origin.principal)
        self._add(msgspec.structs.replace(entry, config=config))

    def page(self, query: dict[str, str]) -> AuditPage:
        """Return the entries that are asked for: `action`, `after_sequence`, `limit`.

        Raises:
            Invalid: a member of the query is no number, or out of range.
        """
        after = _number(query, "after_sequence", 0, "INVALID_AUDIT_CURSOR")
        limit = _number(query, "limit", _DEFAULT_LIMIT, "INVALID_AUDIT_LIMIT")
        if not 1 <= limit <= _MAX_LIMIT:
            raise Invalid(f"limit must be from 1 to {_MAX_LIMIT}.", "INVALID_AUDIT_LIMIT")
        action = query.get("action", "")
        found = [
            each
            for each in self._entries
            if each.sequence > after and (not action or each.action == action)
        ]
        entries = tuple(found[:limit])
        oldest = self._entries[0].sequence if self._entries else 0
        next_sequence = entries[-1].sequence if len(found) > limit else self._last_sequence
        return AuditPage(
            entries,
            max(after, next_sequence),
            oldest,
            has_more=len(found) > limit,
            truncated=bool(oldest) and after + 1 < oldest,
        )

    def _next(self, action: str, request_id: str, role: str) -> AuditEntry:
        now = rfc3339(self.unix())
        return AuditEntry(self._last_sequence + 1, now, action, request_id, role, self._last_hash)

    def _add(self, entry: AuditEntry) -> None:
        self._last_sequence = entry.sequence
        self._last_hash = hashlib.sha256(msgspec.json.encode(entry)).hexdigest()
        self._entries.append(msgspec.structs.replace(entry, hash=self._last_hash))


def _number(query: dict[str, str], name: str, default: int, code: str) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 18:  # noqa: PLR2004  # of 64 bits
        raise Invalid(f"{name} must be a whole number.", code)
    return int(text)
