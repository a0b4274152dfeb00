"""The fault table of the demo models: what a strict client meets, in both answer forms."""

from contextlib import suppress

import attrs
import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd, Got, ask, chat_body, read_answer
from tests.fakes.backend import start_backend
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.demo.server import Call, CallEnd
from vsr.network.memory import MemoryNetwork
from vsr.network.port import Connection, ConnectionBroken

PATIENCE_S = 1000
WHOLE, CUT, RESET = AnswerEnd.WHOLE, AnswerEnd.CUT, AnswerEnd.RESET
MALFORMED, SILENT = AnswerEnd.MALFORMED, AnswerEnd.SILENT


@attrs.frozen
class Row:
    """What both sides have of a call that met a fault."""

    end: AnswerEnd
    status: int
    call_end: CallEnd = CallEnd.COMPLETED
    is_reusable: bool = False
    """Whether the answer leaves the connection open and promises that it stays so."""
    waits_s: float = 0.0


TABLE = {
    Fault.STATUS: Row(WHOLE, 503, is_reusable=True),
    Fault.RESET_BEFORE_HEAD: Row(RESET, 0, CallEnd.FAULT),
    Fault.CLOSE_BEFORE_HEAD: Row(CUT, 0, CallEnd.FAULT),
    Fault.RESET_AFTER_HEAD: Row(RESET, 200, CallEnd.FAULT),
    Fault.CLOSE_AFTER_HEAD: Row(CUT, 200, CallEnd.FAULT),
    Fault.EMPTY_STREAM: Row(WHOLE, 200, is_reusable=True),
    Fault.DROP_MIDSTREAM: Row(CUT, 200, CallEnd.FAULT),
    Fault.RESET_MIDSTREAM: Row(RESET, 200, CallEnd.FAULT),
    Fault.STALL_MIDSTREAM: Row(SILENT, 200, CallEnd.PEER_GONE, waits_s=PATIENCE_S),
    Fault.LENGTH_TOO_LONG: Row(CUT, 200, CallEnd.FAULT),
    Fault.LENGTH_TOO_SHORT: Row(WHOLE, 200),
    Fault.SLOW_FIRST_BYTE: Row(WHOLE, 200, is_reusable=True, waits_s=30),
    Fault.SILENCE: Row(SILENT, 0, CallEnd.PEER_GONE, waits_s=PATIENCE_S),
    Fault.TRICKLE: Row(WHOLE, 200, is_reusable=True),
    Fault.BAD_STATUS_LINE: Row(MALFORMED, 0),
    Fault.LENGTH_AND_CHUNKED: Row(MALFORMED, 0),
    Fault.BAD_CHUNK_SIZE: Row(MALFORMED, 200),
    Fault.FOLDED_FIELD: Row(MALFORMED, 0),
    Fault.OVERSIZED_HEAD: Row(MALFORMED, 0),
    Fault.INFORMATIONAL: Row(WHOLE, 200, is_reusable=True),
    Fault.CONNECTION_CLOSE: Row(WHOLE, 200),
    Fault.STALE_KEEP_ALIVE: Row(WHOLE, 200),
    Fault.UNTIL_CLOSE: Row(WHOLE, 200),
    Fault.REFUSE_BODY: Row(WHOLE, 413),
}


@attrs.frozen
class Met:
    """One call as the client and as the server have it."""

    got: Got
    call: Call
    is_idle: bool
    """Whether the client's connection was open and silent after the answer."""


async def _meet(script: Script, *, stream: bool) -> Met:
    """Ask once, wait 1000 s at most, leave."""
    network = MemoryNetwork()
    async with trio.open_nursery() as nursery:
        backend = await start_backend(nursery, network, script)
        connection = await network.connect("backend", backend.port)
        got = await ask(connection, chat_body(stream=stream), patience_s=PATIENCE_S)
        is_idle = connection.is_idle()
        connection.close()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert (backend.open_connections, network.open_connections) == (0, 0)
    return Met(got, backend.calls[0], is_idle)


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
@pytest.mark.parametrize("fault", list(Fault))
async def test_fault_is_what_its_name_says(
    fault: Fault, *, stream: bool, autojump_clock: trio.testing.MockClock
) -> None:
    """A strict client meets its row of the table, and the server knows how the call ended."""
    start = autojump_clock.current_time()

    met = await _meet(Script(fault=fault), stream=stream)

    assert TABLE[fault] == Row(
        met.got.end,
        met.got.status,
        met.call.end or CallEnd.STOPPED,
        is_reusable=met.got.is_reusable and met.is_idle,
        waits_s=round(autojump_clock.current_time() - start, 6),
    )


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
@pytest.mark.parametrize(
    "fault", [f for f, row in TABLE.items() if row.end is WHOLE and f is not Fault.EMPTY_STREAM]
)
async def test_fault_with_a_whole_answer_loses_nothing(fault: Fault, *, stream: bool) -> None:
    """What a client takes for whole is the answer without the fault, errors apart."""
    plain = await _meet(Script(), stream=stream)

    met = await _meet(Script(fault=fault, stall_s=0), stream=stream)

    is_error = fault in {Fault.STATUS, Fault.REFUSE_BODY}
    assert (met.got.body == plain.got.body) is not is_error


async def test_drop_midstream_sends_the_events_before_the_cut() -> None:
    """`cut_after` events arrive, the rest never."""
    plain = await _meet(Script(), stream=True)

    met = await _meet(Script(fault=Fault.DROP_MIDSTREAM, cut_after=3), stream=True)

    assert met.got.body.count(b"data: ") == 3
    assert plain.got.body.startswith(met.got.body)


async def test_drop_midstream_sends_half_of_a_buffered_body() -> None:
    """A body with a length is cut within."""
    plain = await _meet(Script(), stream=False)

    met = await _meet(Script(fault=Fault.DROP_MIDSTREAM), stream=False)

    assert met.got.body == plain.got.body[: len(plain.got.body) // 2]


async def test_trickle_sends_single_bytes(autojump_clock: trio.testing.MockClock) -> None:
    """Every byte, of the head too, comes alone and after the interval."""
    start = autojump_clock.current_time()

    met = await _meet(Script(fault=Fault.TRICKLE, chunk_interval_s=1), stream=False)

    assert met.got.reads == met.call.bytes_sent > len(met.got.body)
    assert autojump_clock.current_time() - start == met.got.reads


async def test_stale_keep_alive_promises_and_closes() -> None:
    """The answer alone gives no hint that the connection is gone."""
    met = await _meet(Script(fault=Fault.STALE_KEEP_ALIVE), stream=False)

    assert met.got.is_reusable
    assert met.got.line(b"connection") == b"keep-alive"
    assert not met.is_idle


async def test_connection_close_says_so() -> None:
    """The announcement stands in the head."""
    met = await _meet(Script(fault=Fault.CONNECTION_CLOSE), stream=False)

    assert met.got.line(b"connection") == b"close"


async def test_status_429_tells_when_to_retry() -> None:
    """A number among the faults is a status."""
    met = await _meet(Script(faults=(429,), retry_after_s=3), stream=True)

    assert (met.got.status, met.got.line(b"retry-after")) == (429, b"3")


@pytest.mark.parametrize("status", [204, 304])
async def test_status_without_body_is_framed_without_one(status: int) -> None:
    """These statuses end with their head. Source: RFC 9110 section 6.4.1."""
    met = await _meet(Script(fault=status), stream=False)

    assert (met.got.end, met.got.status, met.got.body) == (WHOLE, status, b"")
    assert met.got.line(b"content-length") == b""


async def test_refuse_body_answers_while_the_client_still_sends(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The answer is there before the body is, and the server holds on for 5 s at most."""
    network = MemoryNetwork()
    start = autojump_clock.current_time()
    async with trio.open_nursery() as nursery:
        script = Script(fault=Fault.REFUSE_BODY)
        backend = await start_backend(nursery, network, script)
        connection = await network.connect("backend", backend.port)
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-length: 9999999\r\n\r\n"
        await connection.send(head)
        nursery.start_soon(_send_for_ever, connection)

        got = await read_answer(connection)

        answered_at = autojump_clock.current_time()
        await trio.sleep(4)
        was_open = backend.open_connections
        await trio.sleep(2)
        is_open = backend.open_connections
        nursery.cancel_scope.cancel()
    assert (got.status, got.end, got.line(b"connection")) == (413, WHOLE, b"close")
    assert answered_at == start
    assert not backend.seen[0].is_complete
    assert (was_open, is_open) == (1, 0)


async def _send_for_ever(connection: Connection) -> None:
    with suppress(ConnectionBroken):
        while True:
            await connection.send(b"x" * 65_536)
