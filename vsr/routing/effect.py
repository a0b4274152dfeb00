"""What a phase wants changed, and the rules by which the change is applied.

Source: Envoy's ext_proc filter as measured (removals before sets; ignored, refused and limited
mutations); the reference's standalone mode applies the same rules in process.
"""

import re

import attrs

from vsr.errors import RoutingFailed
from vsr.headers import HeaderLine, Headers

MAX_EDITS = 100
MAX_LINES = 100
MAX_HEAD_BYTES = 60 * 1024
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9a-z]+")
_PSEUDO = re.compile(rb":[a-z]+")
_BAD_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_PROTECTED = frozenset({b"host", b":authority", b":method", b":scheme"})
_ENVOY = b"x-envoy-"


@attrs.define
class HeaderEdit:
    """One header to set (all its lines are replaced) or, with `append`, one line to add.

    Raises:
        RoutingFailed: the name is not a lower-case token, or the value holds control bytes.
    """

    name: bytes
    value: bytes
    append: bool = False

    def __attrs_post_init__(self) -> None:
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


@attrs.frozen
class ImmediateResponse:
    """An answer of the Router itself: the request goes no further."""

    status: int
    edits: tuple[HeaderEdit, ...] = ()
    body: bytes = b""


@attrs.define
class Effect:
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
    _changes: "_Changes | None" = attrs.field(default=None, init=False, repr=False, eq=False)

    def extended(self, edit: HeaderEdit, *, body: bytes | None = None) -> "Effect":
        """Return this effect with one more edit at the end, and with `body` if given.

        What was worked out for the edits so far is kept, so that an effect made at activation can
        be completed per request at the price of the new edit alone.
        """
        longer = Effect(
            self.removes,
            (*self.edits, edit),
            self.body if body is None else body,
            self.clear_route_cache,
            self.stream_response,
            self.immediate,
        )
        changes = self.changes
        if changes.is_plain and edit.name not in changes.names and _is_plain(edit):
            longer._changes = changes.followed_by(edit)
        return longer

    @property
    def changes(self) -> "_Changes":
        """Return the header part, worked out once."""
        if self._changes is None:
            self._changes = _work_out(self)
        return self._changes


UNCHANGED = Effect()


@attrs.define
class _Changes:
    """The header part of an effect as one pass over the lines."""

    is_plain: bool
    """Whether one pass gives the same result as the edits in turn: no appends, no name twice."""
    names: frozenset[bytes]
    """Names that are edited."""
    dropped: frozenset[bytes]
    """Names whose lines go: those edited and those removed."""
    pseudo: tuple[HeaderLine, ...]
    lines: tuple[HeaderLine, ...]

    def followed_by(self, edit: HeaderEdit) -> "_Changes":
        """Return these changes with a plain edit of a new name at the end."""
        name = edit.name
        return _Changes(
            self.is_plain,
            self.names | {name},
            self.dropped | {name},
            self.pseudo,
            (*self.lines, (name, edit.value)),
        )


def _work_out(effect: Effect) -> _Changes:
    if len(effect.removes) > MAX_EDITS or len(effect.edits) > MAX_EDITS:
        raise RoutingFailed
    edits = [edit for edit in effect.edits if not edit.is_ignored]
    names = frozenset(edit.name for edit in edits)
    return _Changes(
        is_plain=len(names) == len(edits) and not any(edit.append for edit in edits),
        names=names,
        dropped=names.union(name for name in effect.removes if not _is_protected(name)),
        pseudo=tuple((edit.name, edit.value) for edit in edits if edit.name[:1] == b":"),
        lines=tuple((edit.name, edit.value) for edit in edits if edit.name[:1] != b":"),
    )


def apply_headers(headers: Headers, effect: Effect, *, streaming: bool = False) -> None:
    """Apply the header part of `effect`: all removals, then the edits in order.

    While a response is streamed, sets of `content-length` are skipped.

    Raises:
        RoutingFailed: too many edits, or the result exceeds 100 lines or 60 KiB.
    """
    changes = effect.changes
    if not changes.is_plain or (streaming and b"content-length" in changes.dropped):
        _apply_in_turn(headers, effect, streaming=streaming)
    elif changes.dropped:
        dropped = changes.dropped
        lines = [line for line in headers.lines if line[0] not in dropped]
        lines += changes.lines
        headers.replace_lines(lines)
        if changes.pseudo:
            at = headers.pseudo_count()
            lines[at:at] = changes.pseudo
    if len(headers.lines) > MAX_LINES or headers.size_bytes() > MAX_HEAD_BYTES:
        raise RoutingFailed


def _apply_in_turn(headers: Headers, effect: Effect, *, streaming: bool) -> None:
    headers.remove({name for name in effect.removes if not _is_protected(name)})
    for edit in effect.edits:
        if edit.is_ignored or (streaming and edit.name == b"content-length"):
            continue
        if edit.append:
            headers.append(edit.name, edit.value)
        else:
            headers.set(edit.name, edit.value)


def _is_plain(edit: HeaderEdit) -> bool:
    return not edit.append and edit.name[:1] != b":" and not edit.is_ignored


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


def render_immediate(response: ImmediateResponse) -> tuple[int, list[HeaderLine]]:
    """Return status and header lines of an immediate answer, its length included."""
    headers = Headers()
    apply_headers(headers, Effect(edits=response.edits))
    if response.body:
        if b"content-type" not in headers:
            headers.append(b"content-type", b"text/plain")
        headers.set(b"content-length", b"%d" % len(response.body))
    else:
        headers.remove((b"content-type", b"content-length"))
    return max(response.status, 200), headers.lines


def _is_status(value: bytes) -> bool:
    return value.isdigit() and int(value) >= 200  # noqa: PLR2004  # below are informational
