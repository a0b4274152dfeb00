"""What a phase wants changed, and the rules by which the change is applied.

Source: Envoy's ext_proc filter as measured (removals before sets; ignored, refused and limited
mutations); the reference's standalone mode applies the same rules in process.
"""

import re
from contextlib import suppress

import msgspec

from vsr.errors import RoutingFailed
from vsr.headers import HeaderLine, Headers, LineFilter

MAX_EDITS = 100
MAX_LINES = 100
MAX_HEAD_BYTES = 60 * 1024
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_PSEUDO = re.compile(rb":[a-z]+")
_BAD_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_PROTECTED = frozenset({b"host", b":authority", b":method", b":scheme"})
_ENVOY = b"x-envoy-"


class HeaderEdit(msgspec.Struct):
    """One header to set (all its lines are replaced) or, with `append`, one line to add.

    Raises:
        RoutingFailed: the name is not a lower-case token, or the value holds control bytes.
    """

    name: bytes
    value: bytes
    append: bool = False

    def __post_init__(self) -> None:
        grammar = _PSEUDO if self.name[:1] == b":" else _TOKEN
        if grammar.fullmatch(self.name) is None or _BAD_VALUE.search(self.value):
            raise RoutingFailed

    @property
    def is_ignored(self) -> bool:
        """Return whether the rules skip this edit without a word."""
        name = self.name
        if name in _PROTECTED or name.startswith(_ENVOY):
            return True
        if name[:1] != b":":
            return False
        return self.append or (name == b":status" and not _is_status(self.value))


class ImmediateResponse(msgspec.Struct, frozen=True):
    """An answer of the Router itself: the request goes no further."""

    status: int
    edits: tuple[HeaderEdit, ...] = ()
    body: bytes = b""


class Effect(msgspec.Struct, eq=False, gc=False):
    """What one phase wants; the default wants nothing. Not changed once made."""

    removes: frozenset[bytes] = frozenset()
    """Lower-case names; names that may not be removed are skipped."""
    edits: tuple[HeaderEdit, ...] = ()
    body: bytes | None = None
    """Replacement of the whole body, or of the current chunk while streaming; None keeps it."""
    clear_route_cache: bool = False
    """Let the route key be read again from the changed headers."""
    stream_response: bool = False
    """Deliver the response body chunk by chunk instead of whole."""
    immediate: ImmediateResponse | None = None
    last: HeaderLine | None = None
    """A header to set behind all edits; `removes` names it already. See `completed`."""
    known: "_Changes | None" = None
    """Its header part, once it was worked out; see `changes`."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Effect) and self._wants() == other._wants()

    __hash__ = None  # type: ignore[assignment]  # compared by value

    def _wants(self) -> tuple[object, ...]:
        """Return all but what was worked out."""
        return (
            self.removes,
            self.edits,
            self.body,
            self.clear_route_cache,
            self.stream_response,
            self.immediate,
            self.last,
        )

    def completed(self, value: bytes, *, body: bytes | None = None) -> "Effect":
        """Return this effect with the value of its last header, and with `body` if given.

        An effect made at activation names that header in `last` and in `removes`; per request it
        is completed at the price of one record, whatever the number of edits.

        Args:
            value: made by us, of printable bytes.
            body: replacement of the whole body.
        """
        if self.last is None:
            raise ValueError("the effect leaves no value open")
        return Effect(
            self.removes,
            self.edits,
            self.body if body is None else body,
            self.clear_route_cache,
            self.stream_response,
            self.immediate,
            (self.last[0], value),
            self.known or self.changes,
        )

    def all_edits(self) -> tuple[HeaderEdit, ...]:
        """Return the edits with the last header among them."""
        return self.edits if self.last is None else (*self.edits, HeaderEdit(*self.last))

    @property
    def reroutes(self) -> bool:
        """Return whether the route key is to be read again: a cleared cache and changed headers."""
        return self.clear_route_cache and bool(self.edits or self.removes)

    @property
    def changes(self) -> "_Changes":
        """Return the header part, worked out once."""
        if self.known is None:
            self.known = _work_out(self)
        return self.known


UNCHANGED = Effect()


class _Changes(msgspec.Struct):
    """The header part of an effect as one pass over the lines."""

    is_plain: bool
    """Whether one pass gives the same result as the edits in turn: no appends, no name twice."""
    names: frozenset[bytes]
    """Names that are edited, that of the last header included."""
    dropped: frozenset[bytes]
    """Names whose lines go: those edited and those removed."""
    pseudo: tuple[HeaderLine, ...]
    lines: tuple[HeaderLine, ...]
    stays: LineFilter
    """By `dropped`."""
    size_bytes: int
    """Of `pseudo` and `lines`."""
    merged: "_Merged | None" = None
    """With the changes that came before these last time: the same ones, as a rule."""


class _Merged(msgspec.Struct):
    """The header parts of a request's two effects as one pass."""

    before: _Changes
    is_plain: bool
    """Whether one pass gives the same result as one effect after the other."""
    has_edits: bool
    names: frozenset[bytes]
    """What is set."""
    stays: LineFilter
    lines: tuple[HeaderLine, ...]
    values: dict[bytes, bytes]
    """Of names that have one line, and that this one; of none where `is_plain` is not given."""
    size_bytes: int
    target: bytes | None
    """What `:path` is set to."""
    drops_length: bool
    """Whether no declared length is left for the body to agree with."""


def _merge(before: _Changes, after: _Changes) -> _Merged:
    paths = [value for name, value in before.pseudo + after.pseudo if name == b":path"]
    is_plain = before.is_plain and after.is_plain and before.names.isdisjoint(after.dropped)
    lines = before.lines + after.lines
    return _Merged(
        before,
        is_plain,
        bool(before.names or after.names),
        before.names | after.names,
        LineFilter(before.dropped | after.dropped),
        lines,
        dict(lines) if is_plain else {},
        before.size_bytes + after.size_bytes,
        paths[-1] if paths else None,
        drops_length=is_plain
        and b"content-length" in (before.dropped | after.dropped)
        and b"content-length" not in dict(lines),
    )


def _work_out(effect: Effect) -> _Changes:
    if len(effect.removes) > MAX_EDITS or len(effect.edits) > MAX_EDITS:
        raise RoutingFailed
    edits = [edit for edit in effect.edits if not edit.is_ignored]
    names = frozenset(edit.name for edit in edits)
    is_plain = len(names) == len(edits) and not any(edit.append for edit in edits)
    if effect.last is not None:
        is_plain = is_plain and effect.last[0] not in names
        names |= {effect.last[0]}
    dropped = names.union(name for name in effect.removes if not _is_protected(name))
    return _Changes(
        is_plain=is_plain,
        names=names,
        dropped=dropped,
        pseudo=tuple((edit.name, edit.value) for edit in edits if edit.name[:1] == b":"),
        lines=tuple((edit.name, edit.value) for edit in edits if edit.name[:1] != b":"),
        stays=LineFilter(dropped),
        size_bytes=sum(len(edit.name) + len(edit.value) for edit in edits),
    )


def apply_headers(headers: Headers, effect: Effect, *, streaming: bool = False) -> None:
    """Apply the header part of `effect` in place: all removals, then the edits in order.

    While a response is streamed, sets of `content-length` are skipped.

    Raises:
        RoutingFailed: too many edits, or the result exceeds 100 lines or 60 KiB.
    """
    changes, last = effect.known or effect.changes, effect.last
    if changes.is_plain and not (streaming and b"content-length" in changes.names):
        most_bytes = headers.most_bytes
        lines = changes.stays.kept(headers.lines)
        lines += changes.lines
        if last is not None:
            lines.append(last)
        if most_bytes is not None:
            most_bytes += changes.size_bytes
            if last is not None:
                most_bytes += len(last[0]) + len(last[1])
        headers.replace_lines(lines, most_bytes)
        if changes.pseudo:
            at = headers.pseudo_count()
            lines[at:at] = changes.pseudo
    else:
        _apply_in_turn(headers, effect, streaming=streaming)
    if (effect.edits or last) and not _fits(headers.lines, headers.most_bytes):
        _check_size(headers)


def applied(
    headers: Headers, target: bytes, first: Effect, second: Effect
) -> tuple[Headers, bytes]:
    """Return a request's headers and target after two effects, one after the other.

    Args:
        headers: without pseudo-headers; they are left as they are.
        target: value of `:path`, the one pseudo-header of a request that an effect may set.
        first: of the request-header phase.
        second: of the request-body phase. A `content-length` that completes it is left out: the
            upstream layer frames what it sends by the body itself.

    Raises:
        RoutingFailed: as `apply_headers`.
    """
    before = first.known or first.changes
    after = second.known or second.changes
    merged = after.merged
    if merged is None or merged.before is not before:
        merged = after.merged = _merge(before, after)
    if merged.target is not None:
        target = merged.target
    if merged.is_plain:
        lines = merged.stays.kept(headers.lines)
        lines += merged.lines
        most_bytes = headers.most_bytes
        if most_bytes is not None:
            most_bytes += merged.size_bytes
        if first.last or second.last:
            most_bytes = _add_last(lines, most_bytes, first.last, second.last)
        result = Headers(lines, None, most_bytes)
        if merged.has_edits and not _fits(lines, most_bytes):
            _check_size(result)
        return result, target
    result = headers.copy()
    apply_headers(result, first)
    apply_headers(result, second)
    result.remove(tuple([line[0] for line in result.lines if line[0][:1] == b":"]))
    return result, target


def _add_last(
    lines: list[HeaderLine], most_bytes: int | None, *last: HeaderLine | None
) -> int | None:
    """Add lines that complete effects, but no length; return what all lines are at most then."""
    for line in last:
        if line is not None and line[0] != b"content-length":
            lines.append(line)
            if most_bytes is not None:
                most_bytes += len(line[0]) + len(line[1])
    return most_bytes


def _fits(lines: list[HeaderLine], most_bytes: int | None) -> bool:
    """Return whether the lines are surely within the limits; if not, they must be counted."""
    return most_bytes is not None and most_bytes <= MAX_HEAD_BYTES and len(lines) <= MAX_LINES


def _check_size(headers: Headers) -> None:
    if len(headers.lines) > MAX_LINES or headers.size_bytes() > MAX_HEAD_BYTES:
        raise RoutingFailed


def names_set(second: Effect) -> frozenset[bytes]:
    """Return what two effects have set that `applied` applied together, by the second one."""
    merged = second.changes.merged
    return frozenset() if merged is None else merged.names


def value_set(second: Effect, name: bytes) -> bytes | None:
    """Return the only value that `name` has by two such effects; None: look at the headers."""
    merged = second.changes.merged
    return None if merged is None else merged.values.get(name)


def _apply_in_turn(headers: Headers, effect: Effect, *, streaming: bool) -> None:
    headers.remove({name for name in effect.removes if not _is_protected(name)})
    for edit in effect.all_edits():
        if edit.is_ignored or (streaming and edit.name == b"content-length"):
            continue
        if edit.append:
            headers.append(edit.name, edit.value)
        else:
            headers.set(edit.name, edit.value)


def _is_protected(name: bytes) -> bool:
    return name == b"host" or name.startswith((b":", _ENVOY))


def apply_body(headers: Headers, body: bytes, effect: Effect) -> bytes:
    """Return the body after `effect`; `headers` has the effect's edits already.

    Raises:
        RoutingFailed: the headers declare another length than the new body has.
    """
    if effect.body is None:
        return body
    declared = headers.get(b"content-length")
    if declared and declared != b"%d" % len(effect.body):
        raise RoutingFailed
    return effect.body


def changed_body(headers: Headers, body: bytes, second: Effect) -> bytes:
    """Return the body behind two effects that `applied` applied together; see `apply_body`."""
    merged = second.changes.merged
    if merged is not None and merged.drops_length:
        return body if second.body is None else second.body
    return apply_body(headers, body, second)


def render_immediate(response: ImmediateResponse) -> tuple[int, list[HeaderLine]]:
    """Return status and header lines of an immediate answer, its length included.

    An edit that cannot be applied is ignored here: the answer itself still goes out.
    """
    headers = Headers()
    with suppress(RoutingFailed):
        apply_headers(headers, Effect(edits=response.edits))
    headers.remove([name for name, _ in headers.lines if name[:1] == b":"])
    if response.body:
        if b"content-type" not in headers:
            headers.append(b"content-type", b"text/plain")
        headers.set(b"content-length", b"%d" % len(response.body))
    else:
        headers.remove((b"content-type", b"content-length"))
    return max(response.status, 200), headers.lines


def _is_status(value: bytes) -> bool:
    return value.isdigit() and int(value) >= 200  # noqa: PLR2004  # below are informational
