"""Every fault of a backend, buffered and streamed: what the client gets, what is kept."""

import attrs
import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd, Got, chat_body, read_answer
from tests.fakes.backend import start_backend
from tests.fakes.router import clusters_of, document_of, model_of, start_router
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.network.memory import MemoryNetwork

WHOLE, CUT = AnswerEnd.WHOLE, AnswerEnd.CUT
PREFIX = b"upstream connect error or disconnect/reset before headers. reset reason: "
TERMINATED = PREFIX + b"connection termination"
PROTOCOL = PREFIX + b"protocol error ("
TIMED_OUT = b"upstream request timeout"


@attrs.frozen
class Row:
    """What a client gets of a call that met a fault."""

    status: int
    body: bytes = b""
    """How the body begins; empty where it is the backend's own."""
    flag: str = "-"
    outcome: str = "succeeded"
    end: AnswerEnd = WHOLE
    is_empty: bool = False
    """Whether the backend's own answer has no body."""
    is_kept: bool = False
    """Whether the backend connection is used again."""
    at: float = 0.0


def _local(status: int, text: bytes, flag: str, *, at: float = 0.0) -> Row:
    return Row(status, text, flag, "timed_out" if status == 504 else "failed", at=at)


def _broken(reason: bytes) -> Row:
    return _local(502, PROTOCOL + reason, "UPE")


RESET, EARLY_END = b"connection reset inside", b"connection closed inside"
BREAK = Row(200, b"data: ", "UPE", "failed", CUT)
SERVED, SERVED_AND_KEPT = Row(200), Row(200, is_kept=True)

TABLE: dict[Fault, tuple[Row, Row]] = {
    # fault: buffered, streamed
    Fault.STATUS: (Row(503, outcome="failed", is_kept=True),) * 2,
    Fault.RESET_BEFORE_HEAD: (_local(503, TERMINATED, "UC"),) * 2,
    Fault.CLOSE_BEFORE_HEAD: (_local(503, TERMINATED, "UC"),) * 2,
    Fault.RESET_AFTER_HEAD: (_broken(RESET),) * 2,
    Fault.CLOSE_AFTER_HEAD: (_broken(EARLY_END),) * 2,
    Fault.EMPTY_STREAM: (Row(200, is_empty=True, is_kept=True),) * 2,
    Fault.DROP_MIDSTREAM: (_broken(EARLY_END), BREAK),
    Fault.RESET_MIDSTREAM: (_broken(RESET), BREAK),
    Fault.STALL_MIDSTREAM: (
        _local(504, TIMED_OUT, "UT", at=200),
        Row(200, b"data: ", "UT", "timed_out", CUT, at=200),
    ),
    Fault.LENGTH_TOO_LONG: (_broken(EARLY_END),) * 2,
    Fault.LENGTH_TOO_SHORT: (SERVED,) * 2,
    Fault.SLOW_FIRST_BYTE: (Row(200, is_kept=True, at=30),) * 2,
    Fault.SILENCE: (_local(504, TIMED_OUT, "UT", at=300),) * 2,
    Fault.TRICKLE: (SERVED_AND_KEPT,) * 2,
    Fault.BAD_STATUS_LINE: (_broken(b"malformed"),) * 2,
    Fault.LENGTH_AND_CHUNKED: (_broken(b""),) * 2,
    Fault.BAD_CHUNK_SIZE: (_broken(b"malformed"),) * 2,
    Fault.FOLDED_FIELD: (_broken(b"malformed"),) * 2,
    Fault.OVERSIZED_HEAD: (_broken(b""),) * 2,
    Fault.INFORMATIONAL: (SERVED_AND_KEPT,) * 2,
    Fault.CONNECTION_CLOSE: (SERVED,) * 2,
    Fault.STALE_KEEP_ALIVE: (SERVED,) * 2,
    Fault.UNTIL_CLOSE: (SERVED,) * 2,
    Fault.REFUSE_BODY: (Row(413, outcome="failed"),) * 2,
}


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
@pytest.mark.parametrize("fault", list(Fault))
async def test_fault_is_answered_as_the_table_says(
    fault: Fault,
    stream: bool,  # noqa: FBT001  # a parameter of the table
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Before a byte went out a local reply, afterwards a visible break; the next call is served."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, Script(faults=(fault,)))
    ref = model_of(backend.port, reliability="{idle_timeout: 200s, total_timeout: 300s}")
    router = await start_router(nursery, network, document_of(ref))
    row = TABLE[fault][stream]

    got = await router.ask(chat_body(model="auto", stream=stream))
    at = trio.current_time()
    held = await router.held()
    after = await router.ask(chat_body(model="auto", stream=stream))

    assert (got.end, got.status) == (row.end, row.status)
    assert at == pytest.approx(row.at)
    assert held == (0, 0)
    _check_body(got, row, after)
    assert (after.end, after.status) == (WHOLE, 200)
    assert backend.accepted_connections == (1 if row.is_kept else 2)
    assert backend.open_connections == clusters_of(router.generation).idle_connections == 1
    line = (await router.log())[0]
    assert (line["outcome"], line["response_flags"]) == (row.outcome, row.flag)
    assert line["response_code"] == row.status
    assert (line["attempts"], line["bytes_sent"]) == (1, len(got.body))


def _check_body(got: Got, row: Row, sound: Got) -> None:
    if row.status == 200 and row.end is WHOLE:
        assert got.body == (b"" if row.is_empty else sound.body)
    elif row.status == 200:
        assert got.body.startswith(row.body)
        begun, event, error = got.body.rpartition(b'data: {"error":')
        assert sound.body.startswith(begun)
        assert event, "a client is told in the stream, and then by the break"
        assert b"[DONE]" not in got.body
        assert error.endswith(b"}\n\n")
    elif row.body:
        assert got.line(b"content-type") == b"text/plain"
        assert got.body.startswith(row.body)
        assert got.line(b"x-vsr-response-path") == b""
        assert got.is_reusable
    else:
        assert got.json()["error"]
        assert got.line(b"x-vsr-response-path") == b"upstream"


@pytest.mark.parametrize("cut_after", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("fault", [Fault.DROP_MIDSTREAM, Fault.RESET_MIDSTREAM])
async def test_nothing_is_asked_again_once_a_byte_is_out(
    fault: Fault,
    cut_after: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Field report R1: after any number of events the backend was called once."""
    network = MemoryNetwork()
    script = Script(faults=(fault,), cut_after=cut_after, chunk_interval_s=0.1)
    backend = await start_backend(nursery, network, script)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))

    got = await router.ask(chat_body(model="auto", stream=True))

    assert got.status == (502 if cut_after == 0 else 200)
    assert got.end is (WHOLE if cut_after == 0 else CUT)
    told = b"" if cut_after == 0 else b"the backend's stream ended before its answer did"
    assert got.body.count(b"data: ") == cut_after + bool(told)
    assert told in got.body
    assert len(backend.calls) == 1


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
async def test_broken_answer_to_an_http_1_0_client_ends_in_a_reset(
    stream: bool,  # noqa: FBT001  # a parameter of the table
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Without chunks only a reset tells it from a whole answer."""
    network = MemoryNetwork()
    script = Script(fault=Fault.DROP_MIDSTREAM, chunk_interval_s=1)
    backend = await start_backend(nursery, network, script)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))
    client = await router.connect()
    body = chat_body(model="auto", stream=stream)

    await client.send(
        b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    got = await read_answer(client)

    assert (got.end, got.status) == ((AnswerEnd.RESET, 200) if stream else (WHOLE, 502))
