"""What goes over the wire for one answer, each fault included: steps, without I/O."""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from itertools import islice
from math import inf

import attrs
import msgspec

from vsr.demo.faults import Fault
from vsr.demo.reply import Reply
from vsr.demo.script import Script
from vsr.headers import HeaderLine
from vsr.http.framing import MAX_HEAD_BYTES
from vsr.http.h1_server import LAST_CHUNK, encode_chunk, encode_head

_WITHOUT_BODY = (204, 304)
_CHUNKED = (b"transfer-encoding", b"chunked")
_CLOSE = (b"connection", b"close")
_MISSING_BYTES = 16


class Wait(msgspec.Struct, frozen=True):
    """Do nothing for a while; infinity means until the client leaves."""

    seconds: float


class Ending(Enum):
    """What becomes of the connection; the last step."""

    KEEP_ALIVE = "keep alive"
    CLOSE = "close"
    CUT = "close with the answer unfinished"
    RESET = "reset with the answer unfinished"
    CLOSE_UNREAD = "end the answer, then close without having read the request"


Step = bytes | Wait | Ending


def steps(reply: Reply, script: Script) -> Iterator[Step]:
    """Return what to do in order; an `Ending` comes last.

    Args:
        reply: its events are read as the steps are taken.
        script: as `Script.for_call` settled it.
    """
    yield Wait(script.latency_s)
    fault = script.fault if isinstance(script.fault, Fault) else None
    yield from _PLAYS.get(fault, _whole)(reply, script)


def _whole(reply: Reply, script: Script) -> Iterator[Step]:
    head = _head(reply)
    if reply.events is None:
        yield head + _shown(reply)
    else:
        yield head
        yield from _events(reply, script)
    yield Ending.CLOSE if reply.is_last else Ending.KEEP_ALIVE


def _events(reply: Reply, script: Script) -> Iterator[Step]:
    for at, event in enumerate(reply.events or ()):
        if at:
            yield Wait(script.chunk_interval_s)
        yield encode_chunk(event)
    yield LAST_CHUNK


def _reset_before_head(_reply: Reply, _script: Script) -> Iterator[Step]:
    yield Ending.RESET


def _close_before_head(_reply: Reply, _script: Script) -> Iterator[Step]:
    yield Ending.CUT


def _reset_after_head(reply: Reply, _script: Script) -> Iterator[Step]:
    yield _head(reply)
    yield Ending.RESET


def _close_after_head(reply: Reply, _script: Script) -> Iterator[Step]:
    yield _head(reply)
    yield Ending.CUT


def _empty_stream(reply: Reply, _script: Script) -> Iterator[Step]:
    yield _head(reply, _CHUNKED) + LAST_CHUNK
    yield Ending.KEEP_ALIVE


def _drop_midstream(reply: Reply, script: Script) -> Iterator[Step]:
    yield from _beginning(reply, script)
    yield Ending.CUT


def _reset_midstream(reply: Reply, script: Script) -> Iterator[Step]:
    yield from _beginning(reply, script)
    yield Ending.RESET


def _stall_midstream(reply: Reply, script: Script) -> Iterator[Step]:
    yield from _beginning(reply, script)
    yield Wait(inf)
    yield Ending.CUT


def _beginning(reply: Reply, script: Script) -> Iterator[Step]:
    yield _head(reply)
    if reply.events is None:
        yield reply.body[: len(reply.body) // 2]
        return
    for event in islice(reply.events, script.cut_after):
        yield encode_chunk(event)
        yield Wait(script.chunk_interval_s)


def _length_too_long(reply: Reply, _script: Script) -> Iterator[Step]:
    body = reply.whole_body()
    yield _head(reply, _length(len(body) + _MISSING_BYTES)) + body
    yield Ending.CUT


def _length_too_short(reply: Reply, _script: Script) -> Iterator[Step]:
    body = reply.whole_body()
    yield _head(reply, _length(len(body))) + body + b"x"
    yield Ending.KEEP_ALIVE


def _slow_first_byte(reply: Reply, script: Script) -> Iterator[Step]:
    yield _head(reply)
    yield Wait(script.stall_s)
    if reply.events is None:
        yield _shown(reply)
    else:
        yield from _events(reply, script)
    yield Ending.CLOSE if reply.is_last else Ending.KEEP_ALIVE


def _silence(_reply: Reply, _script: Script) -> Iterator[Step]:
    yield Wait(inf)
    yield Ending.CUT


def _trickle(reply: Reply, script: Script) -> Iterator[Step]:
    for step in _whole(reply, attrs.evolve(script, chunk_interval_s=0.0)):
        if not isinstance(step, bytes):
            yield step
            continue
        for at in range(len(step)):
            # Before a byte, never behind the last: a client that has it all may leave.
            yield Wait(script.chunk_interval_s)
            yield step[at : at + 1]


def _bad_status_line(_reply: Reply, _script: Script) -> Iterator[Step]:
    yield b"HTTP/1.1 fine\r\ncontent-length: 0\r\n\r\n"
    yield Ending.KEEP_ALIVE


def _length_and_chunked(reply: Reply, _script: Script) -> Iterator[Step]:
    body = reply.whole_body()
    yield _head(reply, _length(len(body)), _CHUNKED) + encode_chunk(body) + LAST_CHUNK
    yield Ending.KEEP_ALIVE


def _bad_chunk_size(reply: Reply, _script: Script) -> Iterator[Step]:
    yield _head(reply, _CHUNKED) + b"0x10\r\n" + reply.whole_body() + b"\r\n" + LAST_CHUNK
    yield Ending.KEEP_ALIVE


def _folded_field(reply: Reply, _script: Script) -> Iterator[Step]:
    body = reply.whole_body()
    yield _head(reply, _length(len(body)), (b"x-demo-folded", b"one\r\n two")) + body
    yield Ending.KEEP_ALIVE


def _oversized_head(reply: Reply, _script: Script) -> Iterator[Step]:
    body = reply.whole_body()
    yield _head(reply, _length(len(body)), (b"x-demo-large", b"x" * MAX_HEAD_BYTES)) + body
    yield Ending.KEEP_ALIVE


def _informational(reply: Reply, script: Script) -> Iterator[Step]:
    yield encode_head(100, [])
    yield encode_head(103, [(b"link", b"</style.css>; rel=preload")])
    yield from _whole(reply, script)


def _connection_close(reply: Reply, script: Script) -> Iterator[Step]:
    yield from _whole(attrs.evolve(reply, is_last=True), script)


def _stale_keep_alive(reply: Reply, script: Script) -> Iterator[Step]:
    lines = (*reply.lines, (b"connection", b"keep-alive"), (b"keep-alive", b"timeout=60"))
    for step in _whole(attrs.evolve(reply, lines=lines, is_last=False), script):
        yield Ending.CLOSE if isinstance(step, Ending) else step


def _until_close(reply: Reply, script: Script) -> Iterator[Step]:
    yield _head(reply, _CLOSE)
    if reply.events is None:
        yield _shown(reply)
    for at, event in enumerate(reply.events or ()):
        if at:
            yield Wait(script.chunk_interval_s)
        yield event
    yield Ending.CLOSE


def _refuse_body(reply: Reply, _script: Script) -> Iterator[Step]:
    yield _head(reply, _length(len(reply.body)), _CLOSE) + reply.body
    yield Ending.CLOSE_UNREAD


_PLAYS: Mapping[Fault | None, Callable[[Reply, Script], Iterator[Step]]] = {
    Fault.STATUS: _whole,
    Fault.RESET_BEFORE_HEAD: _reset_before_head,
    Fault.CLOSE_BEFORE_HEAD: _close_before_head,
    Fault.RESET_AFTER_HEAD: _reset_after_head,
    Fault.CLOSE_AFTER_HEAD: _close_after_head,
    Fault.EMPTY_STREAM: _empty_stream,
    Fault.DROP_MIDSTREAM: _drop_midstream,
    Fault.RESET_MIDSTREAM: _reset_midstream,
    Fault.STALL_MIDSTREAM: _stall_midstream,
    Fault.LENGTH_TOO_LONG: _length_too_long,
    Fault.LENGTH_TOO_SHORT: _length_too_short,
    Fault.SLOW_FIRST_BYTE: _slow_first_byte,
    Fault.SILENCE: _silence,
    Fault.TRICKLE: _trickle,
    Fault.BAD_STATUS_LINE: _bad_status_line,
    Fault.LENGTH_AND_CHUNKED: _length_and_chunked,
    Fault.BAD_CHUNK_SIZE: _bad_chunk_size,
    Fault.FOLDED_FIELD: _folded_field,
    Fault.OVERSIZED_HEAD: _oversized_head,
    Fault.INFORMATIONAL: _informational,
    Fault.CONNECTION_CLOSE: _connection_close,
    Fault.STALE_KEEP_ALIVE: _stale_keep_alive,
    Fault.UNTIL_CLOSE: _until_close,
    Fault.REFUSE_BODY: _refuse_body,
}


def _head(reply: Reply, *framing: HeaderLine) -> bytes:
    """Return the head with `framing`, or with the fields that frame the reply rightly."""
    return encode_head(reply.status, [*reply.lines, *(framing or _framing(reply))])


def _framing(reply: Reply) -> list[HeaderLine]:
    lines = [_CLOSE] if reply.is_last else []
    if reply.status not in _WITHOUT_BODY:
        lines.append(_CHUNKED if reply.events is not None else _length(len(reply.body)))
    return lines


def _length(size: int) -> HeaderLine:
    return (b"content-length", b"%d" % size)


def _shown(reply: Reply) -> bytes:
    return reply.body if reply.shows_body and reply.status not in _WITHOUT_BODY else b""
