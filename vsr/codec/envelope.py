"""The top-level members of a JSON object, by byte span, and edits that splice."""

import re
from collections.abc import Iterator, Mapping

import msgspec

from vsr.codec.strict_json import decode, invalid_json

Span = tuple[int, int]
"""First byte of a value and the one behind its last."""

Cut = tuple[int, int, bytes]
"""A span and what comes in its place."""

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NAME = rb'[ \t\n\r]*"[^"\\]*(?:\\.[^"\\]*)*"[ \t\n\r]*:[ \t\n\r]*'
_FIRST_NAME = re.compile(rb"[ \t\n\r]*{" + _NAME)
_NEXT_NAME = re.compile(rb"[ \t\n\r]*," + _NAME)
_OPENING = re.compile(rb"[ \t\n\r]*{[ \t\n\r]*")
_SEPARATOR = re.compile(rb"[ \t\n\r]*,[ \t\n\r]*")
_END = re.compile(rb"[ \t\n\r]*}[ \t\n\r]*\Z")
_EMPTY = re.compile(rb"[ \t\n\r]*{[ \t\n\r]*}[ \t\n\r]*\Z")


class Envelope(msgspec.Struct, gc=False):
    """A JSON object as it came; reading a member decodes nothing inside it."""

    body: bytes
    members: Mapping[str, msgspec.Raw]
    """Raw value of each member, in the client's order; views into `body`."""
    _spans: dict[str, Span] | None = None

    def __contains__(self, name: str) -> bool:
        return name in self.members

    def raw(self, name: str) -> bytes | None:
        """Return the bytes of a member's value, or None if there is no such member."""
        value = self.members.get(name)
        return None if value is None else bytes(value)

    def spliced(self, changes: Mapping[str, bytes | None]) -> bytes:
        """Return the body with the named members' values replaced by those JSON values.

        None takes a member out, and with it the comma and the white space that part it from the
        member before it (behind it, for the first). Every other byte stays as it came; members
        that are new go behind the last one, in the order given.
        """
        spans = self._spans
        if spans is None:
            if len(changes) == 1:
                [(name, value)] = changes.items()
                if value is not None and name in self.members:
                    start, end = _compact_span(self.members, name)
                    return b"".join((self.body[:start], value, self.body[end:]))
            spans = self._spans = _compact_spans(self.members)
        body = memoryview(self.body)  # whose slices don't copy
        pieces: list[bytes | memoryview] = []
        copied_to = 0
        for start, end, replacement in _cuts(self.body, spans, changes):
            pieces += (body[copied_to:start], replacement)
            copied_to = end
        pieces.append(body[copied_to:])
        return b"".join(pieces)


def open_envelope(body: bytes) -> Envelope:
    """Find the members of the JSON object `body`.

    Raises:
        InvalidRequest: `body` is anything but one JSON object, or names a member twice.
    """
    try:
        members = decode(_MEMBERS, body)
    except msgspec.ValidationError as error:
        raise invalid_json() from error
    # The least room these members take: `{"name":value,...}`. A body of just that size has no
    # white space and no escaped name, and, since every member decoded stands in it, no other one.
    least_bytes = len("".join(members)) + sum(map(len, members.values())) + 4 * len(members) + 1
    if least_bytes == len(body):
        return Envelope(body, members)
    return Envelope(body, members, _walk(body, members))


def _cuts(body: bytes, spans: dict[str, Span], changes: Mapping[str, bytes | None]) -> list[Cut]:
    """Return what to cut out of `body` and what to put there, from the front to the back."""
    added: list[bytes] = []
    cuts: list[Cut] = []
    for name, value in changes.items():
        if value is None:
            continue
        if name in spans:
            start, end = spans[name]
            cuts.append((start, end, value))
        else:
            added += (b",", msgspec.json.encode(name), b":", value)
    has_first = bool(spans)
    if None in changes.values():
        has_first = any(changes.get(name, b"") is not None for name in spans)
        cuts += _removals(body, spans, changes)
    cuts.sort()
    if added:
        at = next(reversed(spans.values()))[1] if spans else body.rindex(b"}")
        cuts.append((at, at, b"".join(added if has_first else added[1:])))
    return cuts


def _removals(
    body: bytes, spans: dict[str, Span], changes: Mapping[str, bytes | None]
) -> Iterator[Cut]:
    """Yield what goes with the members that go, from the front to the back."""
    behind = 0  # the end of the member before; all are gone until there is a first
    has_first = False
    for name, (_, end) in spans.items():
        if changes.get(name, b"") is None:
            if has_first:
                yield behind, end, b""
        elif not has_first:
            has_first = True
            if behind:
                yield _behind(_OPENING, body, 0), _behind(_SEPARATOR, body, behind), b""
        behind = end
    if behind and not has_first:
        yield _behind(_OPENING, body, 0), behind, b""


def _behind(pattern: re.Pattern[bytes], body: bytes, at: int) -> int:
    """Return the place behind what `pattern` matches at `at`."""
    found = pattern.match(body, at)
    if found is None:
        raise ValueError("the spans are not this body's")
    return found.end()


def _compact_span(members: Mapping[str, msgspec.Raw], wanted: str) -> Span:
    """Return one member's span in such a body as `_compact_spans` reads."""
    at = 1
    for name, value in members.items():
        start = at + len(name) + 3
        at = start + len(value)
        if name == wanted:
            return start, at
        at += 1
    raise KeyError(wanted)


def _compact_spans(members: Mapping[str, msgspec.Raw]) -> dict[str, Span]:
    """Return the spans in a body without white space and escaped or non-ASCII names."""
    spans: dict[str, Span] = {}
    at = 1
    for name, value in members.items():
        start = at + len(name) + 3
        at = start + len(value)
        spans[name] = (start, at)
        at += 1
    return spans


def _walk(body: bytes, members: Mapping[str, msgspec.Raw]) -> dict[str, Span]:
    """Return the spans of `members`, found one behind the other.

    The decoder keeps the place of a repeated name's first value and the bytes of its last, so a
    repetition is what does not add up: other bytes at that place, or members left at the end.
    """
    spans: dict[str, Span] = {}
    at = 0
    find_name = _FIRST_NAME
    for name, value in members.items():
        found = find_name.match(body, at)
        if found is None or not body.startswith(value, found.end()):
            raise invalid_json()
        start = found.end()
        at = start + len(value)
        spans[name] = (start, at)
        find_name = _NEXT_NAME
    end = _END if members else _EMPTY
    if end.match(body, at) is None:
        raise invalid_json()
    return spans
