"""Who wrote a document that the file source is about to find. Source: standalone-mode 5.1."""

import hashlib
from collections.abc import Callable

import attrs

from vsr.config.origin import Origin

EXPIRES_AFTER_S = 600.0


@attrs.define
class Attributions:
    """Origins of documents, by what they say, until they are found or too old."""

    now: Callable[[], float]
    """Monotonic seconds."""
    _origins: dict[str, tuple[Origin, float]] = attrs.field(factory=dict, init=False)

    def register(self, text: bytes, origin: Origin) -> None:
        """Take note of who is about to write `text`."""
        self._origins[_hash(text)] = origin, self.now() + EXPIRES_AFTER_S

    def withdraw(self, text: bytes) -> None:
        """Forget it: it could not be written."""
        self._origins.pop(_hash(text), None)

    def origin_of(self, text: bytes) -> Origin | None:
        """Return who wrote `text`, once; None if nobody said so in time."""
        now = self.now()
        self._origins = {key: each for key, each in self._origins.items() if each[1] > now}
        found = self._origins.pop(_hash(text), None)
        return None if found is None else found[0]


def _hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
