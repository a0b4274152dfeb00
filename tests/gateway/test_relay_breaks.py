"""Event streams that end before their time, or have nobody to read them."""

from contextlib import suppress
from typing import Any

import pytest
import trio
import trio.testing

from tests.codec.stream_folding import chat_stream, data_of
from tests.demo.raw_client import AnswerEnd, chat_body
from tests.engine.stepped_backend import Act, Steps
from tests.engine.streams import TRANSLATED, ask_stream
from tests.engine.wired import (
    CHAT_PIECES,
    MESSAGE_PIECES,
    OPENAI,
    PAIRS,
    Pair,
    Wired,
    chunked,
    wire,
)
from tests.fakes.backend import start_backend
from tests.fakes.router import document_of, model_of, read_large, start_router
from vsr.demo.script import Script
from vsr.gateway.h1_exchange import H1Exchange
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.network.port import NetworkError


async def leave_in_stream(wired: Wired, pair: Pair) -> MemoryConnection:
    """Ask for a stream that stalls after its first piece; return once that has arrived."""
    wired.backend(pair).steps = [*chunked(200, *pair.begun)[:-1], Act.HANG]
    client = await wired.router.connect()
    body = pair.body(stream=True)
    await client.send(
        b"POST %b HTTP/1.1\r\nhost: r\r\ncontent-length: %d\r\n\r\n%b"
        % (pair.target, len(body), body)
    )
    await client.receive()
    await trio.testing.wait_all_tasks_blocked()
    return client


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("act", [Act.CLOSE, Act.RESET])
async def test_stream_that_breaks_off_is_broken_for_the_client(
    act: Act, pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """After any number of events: no last chunk, no second call, and the log says so."""
    wired = await wire(nursery)

    for count in range(1, len(pair.pieces)):
        steps: Steps = [*chunked(200, *pair.pieces[:count])[:-1], 1.0, act]
        got = await ask_stream(wired, pair, steps)

        line = await wired.last_log()
        assert got.end in {AnswerEnd.CUT, AnswerEnd.RESET}, count
        assert not got.is_reusable
        assert (line["outcome"], line["response_flags"]) == ("failed", "UPE")
        assert line["attempts"] == 1  # field report R1
        assert len(wired.backend(pair).seen) == count
    assert await wired.router.held() == (0, 0)
    assert wired.router.network.open_connections == 0


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("act", [Act.CLOSE, Act.RESET])
async def test_stream_that_breaks_off_before_its_first_event_is_a_502(
    act: Act, pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nothing is out yet, so the client gets a whole answer."""
    wired = await wire(nursery)

    got = await ask_stream(wired, pair, [*chunked(200)[:-1], 1.0, act])

    assert (got.end, got.status, got.is_reusable) == (AnswerEnd.WHOLE, 502, True)


@pytest.mark.parametrize("pair", PAIRS)
async def test_broken_framing_inside_a_stream_breaks_it_for_the_client(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What stood before the fault is delivered; the backend's connection is dropped."""
    wired = await wire(nursery)
    steps: Steps = [*chunked(200, *pair.begun)[:-1], 1.0, b"not-a-size\r\n", Act.HANG]

    got = await ask_stream(wired, pair, steps)

    assert got.end in {AnswerEnd.CUT, AnswerEnd.RESET}
    assert b"Hello" in got.body
    assert len(wired.backend(pair).gone_at) == 1


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("limit", ["idle", "total"])
async def test_stream_that_takes_too_long_ends_with_an_error_event(
    limit: str, pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field reports S6, T1: the client's protocol has an event for it; then the stream breaks."""
    wired = await wire(nursery)
    ticks: list[bytes | float | Act] = [1.0, b"9\r\n: still\n\n\r\n"] * 60
    rest = [Act.HANG] if limit == "idle" else ticks

    got = await ask_stream(wired, pair, [*chunked(200, *pair.begun)[:-1], *rest])

    line = await wired.last_log()
    last = data_of(got.body)[-1]
    assert got.end in {AnswerEnd.CUT, AnswerEnd.RESET}
    assert trio.current_time() == (5 if limit == "idle" else 30)
    assert (line["outcome"], line["response_flags"]) == ("timed_out", "UT")
    assert await wired.router.held() == (0, 0)
    assert "error" in last
    assert (last.get("type") == "error") is pair.is_anthropic_client


@pytest.mark.parametrize("pair", PAIRS)
async def test_silence_behind_the_head_is_a_504(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report T2: nothing was sent, so a whole answer can be."""
    wired = await wire(nursery)

    got = await ask_stream(wired, pair, [*chunked(200)[:-1], Act.HANG])

    assert (got.end, got.status, trio.current_time()) == (AnswerEnd.WHOLE, 504, 5)


@pytest.mark.parametrize("pair", TRANSLATED)
async def test_translated_stream_without_its_end_is_a_failure(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field reports G1, O2: the client is told by an event, and the log does not say success."""
    wired = await wire(nursery)

    for count in (0, 1, 2):
        got = await ask_stream(wired, pair, chunked(200, *pair.pieces[:count]))

        line = await wired.last_log()
        assert b"stream ended before its answer did" in got.body, count
        assert b"message_stop" not in got.body
        assert b"[DONE]" not in got.body
        assert line["outcome"] == "failed", count


@pytest.mark.parametrize("pair", TRANSLATED)
async def test_backends_error_event_ends_a_translated_stream(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """With the backend's own message; nothing behind it counts, and no success is logged."""
    wired = await wire(nursery)
    error: dict[str, Any] = {"error": {"type": "overloaded_error", "message": "no room"}}
    event = chat_stream(error)
    if pair.model == "claude":
        event = b"event: error\n" + chat_stream({"type": "error", **error})

    got = await ask_stream(wired, pair, chunked(200, *pair.begun, event, *pair.pieces[3:]))

    line = await wired.last_log()
    last = data_of(got.body)[-1]
    assert last["error"]["message"] == "no room"
    assert (last.get("type") == "error") is pair.is_anthropic_client
    assert line["outcome"] == "failed"


@pytest.mark.parametrize("pair", PAIRS)
async def test_departure_in_a_stream_ends_the_backends_call(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field reports C1, R11: within 50 ms; what was used is unknown, not what was said so far."""
    wired = await wire(nursery)
    client = await leave_in_stream(wired, pair)
    left_at = trio.current_time()

    client.close()
    await trio.sleep(0.05)

    line = await wired.last_log()
    [gone_at] = wired.backend(pair).gone_at
    assert gone_at - left_at <= 0.05
    assert (line["outcome"], line["cause"], line["response_flags"]) == (
        "cancelled",
        "client_gone",
        "DC",
    )
    assert (line["prompt_tokens"], line["completion_tokens"]) == (None, None)
    assert await wired.router.held() == (0, 0)


@pytest.mark.parametrize("pair", PAIRS)
async def test_departure_before_a_whole_answer_ends_the_backends_call(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report C2: an answer that is collected has a reader that may leave, too."""
    wired = await wire(nursery)
    head = chunked(200, content_type=b"application/json")[0]
    wired.backend(pair).steps = [head, Act.HANG]
    client = await wired.router.connect()
    body = pair.body()
    await client.send(
        b"POST %b HTTP/1.1\r\nhost: r\r\ncontent-length: %d\r\n\r\n%b"
        % (pair.target, len(body), body)
    )
    await trio.testing.wait_all_tasks_blocked()

    client.close()
    await trio.sleep(0.05)

    assert wired.backend(pair).gone_at == [0]
    assert await wired.router.held() == (0, 0)


def _long_stream(pair: Pair, count: int) -> list[bytes]:
    """Return a stream with its text event repeated."""
    if pair.model == "claude":
        start, text, end = MESSAGE_PIECES[:2], MESSAGE_PIECES[2], MESSAGE_PIECES[3:]
    else:
        start, text, end = CHAT_PIECES[:1], CHAT_PIECES[1], CHAT_PIECES[2:]
    return chunked(200, *start, *[text * 50] * count, *end)


@pytest.mark.parametrize("pair", PAIRS)
async def test_slow_reader_holds_the_backend_back(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Once all buffers are full nothing grows, translated or not; then every event arrives."""
    wired = await wire(nursery)
    backend = wired.backend(pair)
    count = 200
    backend.steps = _long_stream(pair, count)
    client = await wired.router.connect()
    body = pair.body(stream=True)
    await client.send(
        b"POST %b HTTP/1.1\r\nhost: r\r\ncontent-length: %d\r\n\r\n%b"
        % (pair.target, len(body), body)
    )
    await trio.testing.wait_all_tasks_blocked()
    early, held = backend.sent_bytes, client.held_bytes
    await trio.sleep(4)
    late = backend.sent_bytes
    is_whole, received = await read_large(client)

    total = sum(len(step) for step in backend.steps if isinstance(step, bytes))
    assert early == late < total / 2
    assert held < 400_000
    assert is_whole
    assert received.count("\U0001f600".encode()) + received.count(b"\\ud83d") == count * 50


async def test_usage_so_far_of_a_stream_that_was_left_is_unknown(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report R11: a count in the middle is a lower bound, and budgets settle by the log's."""
    wired = await wire(nursery)
    event = data_of(CHAT_PIECES[0])[0] | {"usage": {"prompt_tokens": 7, "completion_tokens": 1}}
    wired.alpha.steps = [*chunked(200, chat_stream(event))[:-1], Act.CLOSE]

    got = await wired.ask(OPENAI, OPENAI.body(stream=True))

    line = await wired.last_log()
    assert got.end is AnswerEnd.CUT
    assert (line["prompt_tokens"], line["completion_tokens"]) == (None, None)


async def test_failure_is_not_told_inside_a_piece_that_is_half_sent(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A client that makes room just when time is up gets no bytes of ours amid the backend's."""
    network = MemoryNetwork()
    script = Script(chunks=20_000)
    backend = await start_backend(nursery, network, script)
    ref = model_of(backend.port, reliability="{total_timeout: 5s}")
    router = await start_router(nursery, network, document_of(ref))
    body = chat_body(model="auto", stream=True)
    client = await router.connect()
    flush, early = H1Exchange.flush, bytearray()

    async def flush_and_make_room(exchange: H1Exchange) -> None:
        try:
            await flush(exchange)
        except trio.Cancelled:
            with trio.CancelScope(shield=True):
                early.extend(await client.receive())
            raise

    monkeypatch.setattr(H1Exchange, "flush", flush_and_make_room)
    await client.send(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: r\r\nContent-Length: %d\r\n\r\n%b"
        % (len(body), body)
    )
    await trio.sleep(6)
    got = bytes(early)
    with suppress(NetworkError):
        while data := await client.receive():
            got += data

    assert early
    assert b'"error"' not in got
