"""Edits of one request's body: collected as changes of its members, spliced once."""

from collections.abc import Callable, Iterator, Mapping

import attrs
import msgspec

from vsr.codec.envelope import Envelope, open_envelope

Changes = Mapping[str, bytes | None]
"""Member name to its new JSON value, or to None if the member goes."""


class Draft(msgspec.Struct):
    """A body with the changes made to it so far; whoever reads it sees them."""

    envelope: Envelope
    changes: dict[str, bytes | None] = {}

    def __contains__(self, name: str) -> bool:
        if name in self.changes:
            return self.changes[name] is not None
        return name in self.envelope

    def names(self) -> Iterator[str]:
        """Yield the members: the client's in its order, then those that were added."""
        members, changes = self.envelope.members, self.changes
        for name in members:
            if name not in changes or changes[name] is not None:
                yield name
        for name in changes:
            if name not in members:
                yield name

    def raw(self, name: str) -> bytes | None:
        """Return the bytes of a member's value, or None if there is no such member."""
        return self.changes[name] if name in self.changes else self.envelope.raw(name)

    def value(self, name: str) -> msgspec.Raw | None:
        """Return a member's value without copying it, or None if there is no such member."""
        if name in self.changes:
            changed = self.changes[name]
            return None if changed is None else msgspec.Raw(changed)
        return self.envelope.members.get(name)

    def merge(self, changes: Changes) -> None:
        """Add `changes`; the later of two for one member counts.

        A member of the client's that was removed and is set again returns to its old place.
        """
        for name, value in changes.items():
            if value is None and name not in self.envelope.members:
                self.changes.pop(name, None)
            else:
                self.changes[name] = value

    def body(self) -> bytes | None:
        """Return the body with all changes made, or None if they come to nothing."""
        if not self.changes:
            return None
        body = self.envelope.spliced(self.changes)
        return None if body == self.envelope.body else body


BodyEdit = Callable[[Draft], Changes]
"""What wants a body changed: it reads the draft and answers with changes to merge into it."""


@attrs.frozen
class ObjectEdit:
    """Changes inside one member that is an object; its other members keep their bytes.

    A member that is absent or no object gives way to a new object, one that loses its last member
    goes. Where nothing is set, an absent member stays absent and an odd one stays as it is.
    """

    member: str
    changes: Changes
    _fresh: bytes | None = attrs.field(init=False, repr=False)

    @_fresh.default
    def _render_fresh(self) -> bytes | None:
        body = open_envelope(b"{}").spliced(self.changes)
        return None if body == b"{}" else body

    def __call__(self, draft: Draft) -> Changes:
        """Return the change of the member.

        Raises:
            InvalidRequest: the object names one of its members twice.
        """
        raw = draft.raw(self.member)
        if raw is None or raw[:1] != b"{":
            return {} if self._fresh is None else {self.member: self._fresh}
        envelope = open_envelope(raw)
        inner = Draft(envelope)
        inner.merge(self.changes)
        body = inner.body()
        if body is None:
            return {}
        return {self.member: body if any(True for _ in inner.names()) else None}
