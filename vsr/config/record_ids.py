"""Ids of recorded configurations: local time to the second, and a number where that is taken."""

import re
from collections.abc import Iterable
from datetime import datetime

_FORM = re.compile(r"(?a)([0-9]{8}-[0-9]{6})(?:-([0-9]{3,9}))?")


def is_record_id(text: str) -> bool:
    """Return whether `text` has the form of an id. Source: standalone-mode 5.4, rollback."""
    return _FORM.fullmatch(text) is not None


def next_record_id(local: datetime, taken: Iterable[str]) -> str:
    """Return the id of a record made at `local`; it is greater than every one that is taken.

    A clock that went back, and a second record within a second, get the newest time there is and
    the next number.

    Args:
        local: the local time.
        taken: ids of records that are there.
    """
    own = local.strftime("%Y%m%d-%H%M%S"), 0
    newest = max(map(record_order, taken), default=None)
    if newest is None or own > newest:
        return own[0]
    return f"{newest[0]}-{newest[1] + 1:03d}"


def record_order(record_id: str) -> tuple[str, int]:
    """Return what sorts ids from the oldest to the newest.

    Raises:
        ValueError: it is no id.
    """
    match = _FORM.fullmatch(record_id)
    if match is None:
        raise ValueError(f"no record id: {record_id!r}")
    return match[1], int(match[2] or 0)
