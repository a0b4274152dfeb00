"""Drives a session by callbacks and applies its effects, as a proxy in front of routing would.

The rules of application stand here a second time, written as plainly as they can be said: what
routing works out in advance, or in one pass, has to come to the same.
Source: Envoy's ext_proc filter as measured; the reference's rules of applying effects.
"""

from collections.abc import Sequence
from itertools import pairwise

import attrs

from vsr.errors import RoutingFailed, VsrError
from vsr.headers import HeaderLine
from vsr.routing.effect import Effect, HeaderEdit, ImmediateResponse
from vsr.routing.engine import Engine
from vsr.routing.parity.case import AUTHORITY, SCHEME, Case
from vsr.routing.parity.record import ClientResponse, Phase, Record, UpstreamMessage
from vsr.routing.ports import Tasks
from vsr.routing.session import Session

Lines = list[HeaderLine]
_ROUTE = b"x-selected-model"
_LENGTH = b"content-length"
_MAX_CHANGES = 100
_MAX_LINES = 100
_MAX_BYTES = 61_440


@attrs.frozen
class Split:
    """Where the two bodies are cut on their way; places are cut off at the body's length."""

    request: Sequence[int] = ()
    response: Sequence[int] | None = None
    """None leaves the response in the pieces in which the case gives it."""


@attrs.define
class PhaseDriver:
    """The callbacks of one engine's sessions, one session per case."""

    engine: Engine
    tasks: Tasks
    split: Split = Split()

    async def record(self, case: Case) -> Record:
        """Return what `case` comes to; the session is closed exactly once."""
        record = Record(case.name)
        # When the session opens, only the head has arrived.
        request = case.request(b"")
        session = self.engine.open(request, self.tasks)
        try:
            lines = [
                (b":method", case.method),
                (b":path", case.target),
                (b":authority", AUTHORITY),
                (b":scheme", SCHEME),
                *case.headers().lines,
            ]
            exchange = _Exchange(case, session, record, lines)
            exchange.take(record.note(Phase.REQUEST_HEADERS, session.request_headers()))
            if case.body and record.response is None:
                request.body = b"".join(cut(case.body, self.split.request))
                effect = await session.request_body()
                exchange.take(record.note(Phase.REQUEST_BODY, effect, case.body))
            if record.response is None:
                exchange.send()
                await exchange.answer(self.split.response)
        except VsrError as error:
            record.error = error.code
        finally:
            record.evidence = session.evidence()
            session.close()
        return record


@attrs.define
class _Exchange:
    """One request and its response, as the proxy holds them."""

    case: Case
    session: Session
    record: Record
    lines: Lines
    """Of the message under way: the request until it is sent, then the response."""
    body: bytes = attrs.field(init=False)
    """As `lines`; empty for a streamed response."""
    is_rerouted: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.body = self.case.body

    def take(self, effect: Effect) -> None:
        """Apply a whole message's effect; an immediate answer becomes the response."""
        if effect.immediate is not None:
            self.record.response = rendered(effect.immediate)
            return
        self.lines = mutated(self.lines, effect, is_streamed=effect.stream_response)
        if effect.clear_route_cache and (effect.removes or effect.all_edits()):
            self.is_rerouted = True
        if effect.body is not None:
            declared = values(self.lines, _LENGTH)
            if declared and declared[0] != str(len(effect.body)).encode():
                raise RoutingFailed
            self.body = effect.body

    def send(self) -> None:
        """Pass the request to the backend."""
        read_from = self.lines if self.is_rerouted else self.case.headers().lines
        self.record.route = (values(read_from, _ROUTE) or [b""])[0]
        self.record.upstream = UpstreamMessage(self.lines, self.body)

    async def answer(self, places: Sequence[int] | None) -> None:
        """Let the case's response through the response phases."""
        canned = self.case.canned
        if canned is None:
            return
        chunks = canned.chunks if places is None else cut(canned.body, places)
        headers = canned.headers()
        self.lines, self.body = [(b":status", b"%d" % canned.status), *headers], canned.body
        effect = self.session.response_headers(canned.status, headers)
        assert headers == canned.headers(), "a session changes nothing itself"
        self.take(self.record.note(Phase.RESPONSE_HEADERS, effect))
        if self.record.response is not None:
            return
        if not self.case.is_answered_with_body:
            self._deliver([b""])
        elif effect.stream_response:
            self._deliver([each for each in await self._stream(chunks) if each], is_streamed=True)
        else:
            whole = await self.session.response_body(b"".join(chunks), is_last=True)
            self.take(self.record.note(Phase.RESPONSE_BODY, whole, canned.body))
            if self.record.response is None:
                self._deliver([self.body])

    async def _stream(self, chunks: Sequence[bytes]) -> list[bytes]:
        """Return what goes out per chunk; headers are gone by then, so changes to them are lost."""
        delivered = []
        for index, chunk in enumerate([*chunks, b""]):
            effect = await self.session.response_body(chunk, is_last=index == len(chunks))
            self.record.note(Phase.RESPONSE_BODY, effect, chunk)
            if effect.immediate is not None:
                raise RoutingFailed
            delivered.append(chunk if effect.body is None else effect.body)
        return delivered

    def _deliver(self, chunks: list[bytes], *, is_streamed: bool = False) -> None:
        status = int(values(self.lines, b":status")[0])
        lines = [line for line in self.lines if not line[0].startswith(b":")]
        self.record.response = ClientResponse(status, lines, chunks, is_streamed)


def cut(body: bytes, places: Sequence[int]) -> list[bytes]:
    """Return the pieces of `body` between `places`; none of them is empty."""
    inside = {min(place, len(body)) for place in places}
    return [body[start:end] for start, end in pairwise(sorted({0, *inside, len(body)}))]


def values(lines: Lines, name: bytes) -> list[bytes]:
    """Return every value of `name`."""
    return [value for each, value in lines if each == name]


def mutated(lines: Lines, effect: Effect, *, is_streamed: bool = False) -> Lines:
    """Return `lines` after the header part of `effect`: removals first, then edits in turn.

    Raises:
        RoutingFailed: more changes than allowed, or what comes out is too large.
    """
    edits = effect.all_edits()
    if len(effect.removes) > _MAX_CHANGES or len(effect.edits) > _MAX_CHANGES:
        raise RoutingFailed
    for name in effect.removes:
        if name != b"host" and not name.startswith((b":", b"x-envoy-")):
            lines = [line for line in lines if line[0] != name]
    for edit in edits:
        if not _is_ignored(edit) and not (is_streamed and edit.name == _LENGTH):
            lines = _edited(lines, edit)
    size = sum(len(name) + len(value) for name, value in lines)
    if edits and (len(lines) > _MAX_LINES or size > _MAX_BYTES):
        raise RoutingFailed
    return lines


def _is_ignored(edit: HeaderEdit) -> bool:
    if edit.name in {b"host", b":authority", b":method", b":scheme"}:
        return True
    if edit.name.startswith(b"x-envoy-"):
        return True
    if edit.append and edit.name.startswith(b":"):
        return True
    is_final = edit.value.isdigit() and int(edit.value) >= 200
    return edit.name == b":status" and not is_final


def _edited(lines: Lines, edit: HeaderEdit) -> Lines:
    added = (edit.name, edit.value)
    if edit.append:
        return [*lines, added]
    rest = [line for line in lines if line[0] != edit.name]
    if not edit.name.startswith(b":"):
        return [*rest, added]
    pseudo = [line for line in rest if line[0].startswith(b":")]
    return [*pseudo, added, *rest[len(pseudo) :]]


def rendered(answer: ImmediateResponse) -> ClientResponse:
    """Return the response that an immediate answer is sent as."""
    lines: Lines = []
    try:
        lines = mutated(lines, Effect(edits=answer.edits))
    except RoutingFailed:
        lines = []
    lines = [line for line in lines if not line[0].startswith(b":")]
    if not answer.body:
        lines = [line for line in lines if line[0] not in {b"content-type", _LENGTH}]
    else:
        if not values(lines, b"content-type"):
            lines.append((b"content-type", b"text/plain"))
        lines = [line for line in lines if line[0] != _LENGTH]
        lines.append((_LENGTH, str(len(answer.body)).encode()))
    return ClientResponse(max(answer.status, 200), lines, [answer.body])
