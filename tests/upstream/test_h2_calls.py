"""Calls over HTTP/2: what a backend gets, what a client gets, what streams share and what not."""

import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd, chat_body
from tests.fakes.h2_backend import (
    EVENT,
    OK,
    STREAM_HEAD,
    Act,
    Head,
    Raw,
    Reset,
    streaming,
)
from tests.upstream.h2_scene import BODY, NOTHING, STREAM, read_on, start_h2_scene
from vsr.http.h2_client import STREAMS_AT_MOST
from vsr.http.h2_library import STREAM_WINDOW_BYTES
from vsr.routing.outcome import TransportFact
from vsr.routing.ports import Journal

LARGE = chat_body("x" * 1_000_000, model="auto")


async def test_call_is_asked_and_answered(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Pseudo-header fields of the endpoint, no hop-by-hop fields, the body whole."""
    scene = await start_h2_scene(nursery)

    got = await scene.router.ask(
        BODY,
        lines=[(b"te", b"trailers"), (b"cookie", b"a=1; b=2"), (b"x-mine", b"Kept")],
    )

    [call] = scene.backend.calls
    assert (got.status, got.body, got.end) == (200, b"{}", AnswerEnd.WHOLE)
    assert call.fields[:4] == [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":authority", b"127.0.0.1:%d" % scene.backend.port),
        (b":path", b"/v1/chat/completions"),
    ]
    assert (call.field(b"cookie"), call.field(b"x-mine")) == (b"a=1; b=2", b"Kept")
    assert {b"te", b"host", b"connection"}.isdisjoint(name for name, _ in call.fields)
    assert call.field(b"content-length") == b"%d" % len(call.body)
    assert b'"model": "alpha"' in call.body
    assert await scene.held() == NOTHING


async def test_calls_in_turn_share_one_connection(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It is kept while nobody uses it."""
    scene = await start_h2_scene(nursery)

    statuses = [(await scene.ask()).status for _ in range(5)]
    await trio.sleep(3600)
    statuses.append((await scene.ask()).status)

    assert statuses == [200] * 6
    assert len(scene.backend.sessions) == 1
    assert await scene.open_streams() == 0
    assert (scene.pool.in_use, scene.pool.idle) == (0, 1)


async def test_calls_at_a_time_share_one_connection(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Also those that come while it is being dialled; none waits for another."""
    scene = await start_h2_scene(nursery, (5.0, Head(), b"{}"), settings_after_s=1.0)

    async with trio.open_nursery() as clients:
        for _ in range(50):
            clients.start_soon(scene.ask)

    assert trio.current_time() == pytest.approx(6.0)
    assert (len(scene.backend.sessions), len(scene.backend.calls)) == (1, 50)


@pytest.mark.parametrize(("allowed", "calls"), [(1, 12), (5, 12), (None, 2 * STREAMS_AT_MOST + 1)])
async def test_full_connections_get_a_sibling(
    allowed: int | None,
    calls: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """MAX_CONCURRENT_STREAMS is kept, and so is ours; nobody has to wait for an answer."""
    settings = {} if allowed is None else {3: allowed}
    scene = await start_h2_scene(nursery, (5.0, Head(), b"{}"), settings=settings)
    most = allowed or STREAMS_AT_MOST

    async with trio.open_nursery() as clients:
        for _ in range(calls):
            clients.start_soon(scene.ask)

    assert trio.current_time() == pytest.approx(5.0)
    assert len(scene.backend.sessions) == -(-calls // most)
    assert max(session.most_open for session in scene.backend.sessions) == min(most, calls)
    assert await scene.held() == NOTHING


async def test_calls_wait_where_no_more_connections_are_allowed(
    monkeypatch: pytest.MonkeyPatch,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """In turn, and each as long as its own limits say."""
    monkeypatch.setattr("vsr.upstream.h2_pool.MAX_CONNECTIONS_PER_HOST", 2)
    scene = await start_h2_scene(
        nursery, (5.0, Head(), b"{}"), settings={3: 1}, reliability="total_timeout: 12s"
    )
    ended: list[tuple[int, float]] = []

    async def ask() -> None:
        status = (await scene.ask()).status
        ended.append((status, trio.current_time()))

    async with trio.open_nursery() as clients:
        for _ in range(7):
            clients.start_soon(ask)

    assert [status for status, _ in ended] == [200] * 4 + [504] * 3
    assert [at for _, at in ended] == pytest.approx([5, 5, 10, 10, 12, 12, 12])
    assert len(scene.backend.sessions) == 2
    assert await scene.held() == NOTHING


async def test_backend_that_wants_no_calls_is_not_dialled_again(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """MAX_CONCURRENT_STREAMS may be 0 for a while: calls wait on the one connection."""
    scene = await start_h2_scene(nursery, settings={3: 0})
    status: list[int] = []

    async def ask() -> None:
        status.append((await scene.ask()).status)

    async with trio.open_nursery() as clients:
        for _ in range(3):
            clients.start_soon(ask)
        await trio.sleep(7)
        waiting = (len(scene.backend.sessions), list(status))
        await scene.session.update(max_concurrent_streams=2)

    assert waiting == (1, [])
    assert status == [200] * 3
    assert trio.current_time() == pytest.approx(7)


async def test_streamed_body_is_relayed_as_it_comes(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Events reach the client when the backend sends them."""
    scene = await start_h2_scene(nursery, streaming(2.0, 3.0))
    client = await scene.begin(STREAM)
    times: list[float] = []

    data = b""
    while not data.endswith(b"0\r\n\r\n"):
        data += await client.receive()
        times.append(trio.current_time())

    assert data.count(EVENT) == 3
    assert sorted(set(times)) == pytest.approx([0, 2, 5])
    assert await scene.held() == NOTHING


async def test_large_request_goes_out_under_flow_control(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """As the backend reads; another call is not held up by it."""
    scene = await start_h2_scene(nursery, gives_credit=False, is_early=False)
    client = await scene.begin(LARGE)
    [call] = scene.backend.calls
    stuck_at = len(call.body)

    scene.session.h2.increment_flow_control_window(2_000_000)
    await scene.session.flush()
    other = await scene.ask()
    scene.session.h2.increment_flow_control_window(2_000_000, call.stream_id)
    await scene.session.flush()
    answer = await client.receive()

    assert stuck_at == 65_535
    assert other.status == 200
    assert answer.startswith(b"HTTP/1.1 200")
    assert len(call.body) > 1_000_000


@pytest.mark.parametrize("play", [(Head(413), b"{}"), (Head(413), 1.0, b"{}")])
async def test_early_answer_ends_a_large_request(
    play: tuple[Head | bytes | float, ...],
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The rest is not sent, the stream is reset, the connection stays."""
    scene = await start_h2_scene(nursery, play, OK, gives_credit=False, is_early=True)

    got = await scene.ask(LARGE)
    await trio.testing.wait_all_tasks_blocked()
    sent = len(scene.backend.calls[0].body)

    assert (got.status, got.end) == (413, AnswerEnd.WHOLE)
    assert sent <= 65_535
    assert scene.backend.calls[0].reset == 8
    assert await scene.held() == NOTHING
    assert scene.backend.open_sessions == 1
    assert await scene.open_streams() == 0


async def test_early_answer_that_is_reset_without_error_is_whole(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """RST_STREAM with NO_ERROR behind a response asks for no more body. Source: RFC 9113, 8.1."""
    play = (Head(413), b"{}", Act.END, Reset(0))
    scene = await start_h2_scene(nursery, play, OK, gives_credit=False, is_early=True)

    got = await scene.ask(LARGE)
    again = await scene.ask()

    assert (got.status, got.end, again.status) == (413, AnswerEnd.WHOLE, 200)
    assert len(scene.backend.sessions) == 1
    assert await scene.open_streams() == 0
    assert await scene.held() == NOTHING


async def test_slow_client_stops_its_own_stream_alone(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The backend can send it a window and no more; another call on the connection goes on."""
    piece = b"data: " + b"x" * 20_000 + b"\n\n"
    scene = await start_h2_scene(
        nursery, (STREAM_HEAD, *[piece] * 100), (Head(), b"y" * 3_000_000), OK
    )
    slow = await scene.begin(STREAM)
    await trio.testing.wait_all_tasks_blocked()
    stuck = scene.session.h2.local_flow_control_window(1)

    large = await scene.ask()
    small = await scene.ask()
    stuck_still = not scene.backend.calls[0].done
    slow_body = await _all_of(slow)

    assert stuck == 0
    assert (len(large.body), small.status, stuck_still) == (3_000_000, 200, True)
    assert slow_body.count(piece[:-2]) >= 90
    assert len(scene.backend.sessions) == 1
    assert await scene.held() == NOTHING


async def _all_of(client: object) -> bytes:
    data = b""
    while not data.endswith(b"0\r\n\r\n"):
        data += await client.receive()  # type: ignore[attr-defined]  # a connection
    return data


async def test_unread_body_is_bounded_by_its_window(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Credit is given back when the reader asks for more."""
    scene = await start_h2_scene(nursery, (Head(), b"z" * 2_000_000))

    response = await scene.send(Journal([]))
    await trio.testing.wait_all_tasks_blocked()
    held = sum(map(len, response._pooled.http.body))
    body = response.take()
    while not response.is_complete:
        body += await response.receive()
    response.close()

    assert held == STREAM_WINDOW_BYTES
    assert body == b"z" * 2_000_000
    assert response.attempt.fact is TransportFact.BODY_RECEIVED


async def test_hanging_stream_is_reset_when_its_client_leaves(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """At once, by RST_STREAM CANCEL; the connection is left to the others."""
    scene = await start_h2_scene(nursery, (3.0, Head(), b"{}"), (Act.HANG,), streaming(1.0, 1.0))
    kept = await scene.begin()
    clients = [await scene.begin(), await scene.begin(STREAM)]
    await trio.sleep(0.5)

    for client in clients:
        client.close()
    await trio.sleep(0.05)
    resets = [(call.reset, call.reset_at) for call in scene.backend.calls]

    assert resets == [(None, None), (8, pytest.approx(0.5)), (8, pytest.approx(0.5))]
    assert (await kept.receive()).startswith(b"HTTP/1.1 200")
    assert len(scene.backend.sessions) == 1
    assert await scene.held() == NOTHING
    kept.close()
    assert await read_on(kept) == b""


async def test_health_checks_go_over_http2(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """On the same connection; a failing one takes the endpoint out."""
    scene = await start_h2_scene(
        nursery, reliability="health_check_path: /health, health_check_interval: 2s"
    )
    await trio.sleep(3)
    first = [check.field(b":method") for check in scene.backend.checks]
    scene.backend.health = (Head(503),)

    await scene.ask()
    await trio.sleep(3600)

    assert first[:1] == [b"GET"]
    assert len(scene.backend.sessions) == 1
    assert not scene.cluster.state.hosts[0].is_rotating
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("count", [98, 99, 100, 101, 250, 1000])
async def test_many_small_frames_are_taken_in_turns(
    count: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """All of them, in order, wherever a turn ends; other tasks get theirs in between."""
    frames = b"".join(b"\0\0\4\0\0\0\0\0\1" + b"%04d" % number for number in range(count))
    scene = await start_h2_scene(nursery, (Head(), Raw(frames), Act.END))
    turns = 0
    response = await scene.send(Journal([]))

    async def count_turns() -> None:
        nonlocal turns
        while not response._pooled.http.is_complete:
            await trio.lowlevel.checkpoint()
            turns += 1

    nursery.start_soon(count_turns)
    body = b""
    while not response.is_complete:
        body += await response.receive()
    response.close()

    assert body == b"".join(b"%04d" % number for number in range(count))
    assert turns >= count // 200
    assert await scene.held() == NOTHING


async def test_head_request_has_no_body(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its response may declare any length."""
    scene = await start_h2_scene(nursery, (Head(200, ((b"content-length", b"99"),)),))

    got = await scene.router.ask(method=b"HEAD", target=b"/v1/files/x")

    assert (got.status, got.end, got.line(b"content-length")) == (200, AnswerEnd.WHOLE, b"99")
    assert scene.backend.calls[0].field(b":method") == b"HEAD"
    assert await scene.held() == NOTHING
