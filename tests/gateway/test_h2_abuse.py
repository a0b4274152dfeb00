"""HTTP/2 clients that mean harm: bounded, parted with, and nothing left of them."""

import json
from collections.abc import Sequence

import pytest
import trio
import trio.testing
from hyperframe.frame import (
    DataFrame,
    Frame,
    PingFrame,
    PriorityFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from tests.fakes.h2_client import H2Client, continuation, data_frames, reset
from tests.gateway.h2_running import SOON_S, WHOLE, connect, start
from vsr.demo.script import Script
from vsr.headers import HeaderLine
from vsr.http.h2_frames import ErrorCode
from vsr.http.h2_library import MAX_STREAMS
from vsr.http.h2_server import NOISE, RESETS
from vsr.network.port import ConnectionBroken

REQUEST: list[HeaderLine] = [
    (b":method", b"GET"),
    (b":scheme", b"http"),
    (b":authority", b"router"),
    (b":path", b"/v1/models"),
]


async def test_rapid_reset_ends_the_connection(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """CVE-2023-44487: few of the requests begin, a client beside it is served, nothing is left."""
    router, backend = await start(nursery, Script(latency_s=10))
    hostile, other = [await connect(nursery, router) for _ in range(2)]
    served = await other.request(WHOLE)

    while not hostile.goaways:
        head = hostile.open(ends=True)
        await hostile.send(head, reset(head.stream_id))
    await hostile.closed.wait()
    hostile.connection.close()
    await served.done.wait()

    assert hostile.goaways[-1][1] == ErrorCode.ENHANCE_YOUR_CALM
    assert RESETS <= len(hostile.streams) <= RESETS + 400
    assert len(backend.calls) <= MAX_STREAMS
    assert served.is_whole
    assert await router.held() == (0, 0)
    assert router.router.server.open_connections == 1


async def test_cancelled_streams_leave_nothing_behind(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report L4: 1,000 streams cancelled at work, then 100 clean ones on the connection."""
    router, backend = await start(nursery, Script(latency_s=10))
    client = await connect(nursery, router)

    for _ in range(20):
        answers = [await client.request(WHOLE) for _ in range(50)]
        await trio.sleep(0.5)
        ids = sorted(client.streams)[-50:]
        await client.send(*[reset(stream_id) for stream_id in ids])
        assert not any(answer.status for answer in answers)
    await trio.sleep(SOON_S)
    ends = [str(call.end) for call in backend.calls]
    held = await router.held()
    clean = [await client.request(WHOLE) for _ in range(100)]
    for answer in clean:
        await answer.done.wait()

    assert ends == ["peer_gone"] * 1000
    assert held == (0, 0)
    assert all(answer.is_whole and answer.status == 200 for answer in clean)
    assert client.goaways == []


@pytest.mark.parametrize("piece", [b"", bytes(100), bytes(16_000)], ids=len)
async def test_header_block_without_end_ends_the_connection(
    piece: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """CVE-2024-27316: neither many frames nor many bytes are collected."""
    router, _ = await start(nursery)
    client = await connect(nursery, router)
    await trio.testing.wait_all_tasks_blocked()
    head = client.open()
    head.flags.discard("END_HEADERS")
    await client.send(head)
    sent = 0

    while not client.goaways:
        await client.send(continuation(head.stream_id, piece, ends=False))
        sent += 1
        await trio.testing.wait_all_tasks_blocked()
    await client.closed.wait()
    client.connection.close()
    await trio.testing.wait_all_tasks_blocked()

    assert sent <= 20
    assert client.goaways == [(0, ErrorCode.ENHANCE_YOUR_CALM)]
    assert router.router.server.open_connections == 0


@pytest.mark.parametrize(
    "frame",
    [
        PingFrame(0, b"12345678"),
        SettingsFrame(0, settings={4: 1000}),
        PriorityFrame(1, depends_on=3, stream_weight=5),
        WindowUpdateFrame(0, window_increment=1),
        DataFrame(1, b""),
        reset(1),
        b"\x00\x00\x01\x42\x00\x00\x00\x00\x00x",
    ],
    ids=lambda frame: type(frame).__name__,
)
async def test_flood_of_frames_that_carry_nothing_ends_the_connection(
    frame: Frame | bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """CVE-2019-9512 to 9518; some of them are ordinary, thousands at once are not."""
    router, _ = await start(nursery, Script(latency_s=10))
    client = await connect(nursery, router)
    await client.send(client.open())
    await trio.testing.wait_all_tasks_blocked()
    one = frame if isinstance(frame, bytes) else frame.serialize()
    some = b"".join([one] * (NOISE // 2))

    await client.send_bytes(some)
    await trio.testing.wait_all_tasks_blocked()
    is_spared = not client.closed.is_set()
    for _ in range(4):
        with trio.move_on_after(1):
            await send_ignoring_breakage(client, some)
    await client.closed.wait()

    assert is_spared
    assert client.goaways[-1][1] == ErrorCode.ENHANCE_YOUR_CALM
    client.connection.close()
    assert await router.held() == (0, 0)


async def send_ignoring_breakage(client: H2Client, data: bytes) -> None:
    """Send, whatever comes of it."""
    try:
        await client.send_bytes(data)
    except ConnectionBroken:
        return


async def test_pings_at_an_ordinary_pace_go_on_for_ever(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Ten a second for ten minutes, beside a request now and then."""
    router, _ = await start(nursery)
    client = await connect(nursery, router)

    for _ in range(60):
        for _ in range(100):
            await client.send(PingFrame(0, b"12345678"))
            await trio.sleep(0.1)
        assert (await client.ask(WHOLE)).status == 200

    assert client.goaways == []


async def test_streams_beyond_the_limit_are_refused_and_may_be_repeated(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """All in one write, before the client can know the limit: the first are served."""
    router, backend = await start(nursery, Script(latency_s=5))
    client = await connect(nursery, router)
    frames: list[Frame] = []
    for _ in range(MAX_STREAMS + 200):
        head = client.open()
        frames += [head, *data_frames(head.stream_id, WHOLE, ends=True)]

    await client.send(*frames)
    for answer in client.streams.values():
        await answer.done.wait()

    answers = list(client.streams.values())
    assert all(answer.status == 200 for answer in answers[:MAX_STREAMS])
    assert {answer.reset for answer in answers[MAX_STREAMS:]} == {ErrorCode.REFUSED_STREAM}
    assert len(backend.calls) == MAX_STREAMS
    assert (await client.ask(WHOLE)).status == 200
    assert client.goaways == []


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ([*REQUEST, (b"connection", b"close")], 400),
        ([*REQUEST, (b"transfer-encoding", b"chunked")], 400),
        ([*REQUEST, (b"Upper", b"x")], 400),
        (REQUEST[:3], 400),
        ([*REQUEST, (b"host", b"other")], 400),
        ([*REQUEST, (b"content-length", b"+1")], 400),
        ([*REQUEST, (b"x", b"a\r\nb: c")], 400),
        ([(b":method", b"TRACE"), *REQUEST[1:]], 405),
        ([(b":method", b"CONNECT"), (b":authority", b"a:1")], 405),
        ([*REQUEST, (b"expect", b"miracles")], 417),
        ([*REQUEST, (b"x", b"y" * 62_000)], 431),
        ([*REQUEST, *[(b"x%d" % n, b"y") for n in range(100)]], 431),
        ([*REQUEST[:3], (b":path", b"/" + b"y" * 62_000)], 414),
    ],
)
async def test_request_that_must_not_be_served_harms_its_own_stream_only(
    fields: Sequence[HeaderLine],
    status: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Answered in JSON; a malformed one is reset as such. No backend hears of it."""
    router, backend = await start(nursery, Script(latency_s=5))
    client = await connect(nursery, router)
    other = await client.request(WHOLE)
    await trio.testing.wait_all_tasks_blocked()
    head = client.open_raw(fields)
    encoded, head.data = head.data, head.data[:16_000]
    frames: list[Frame] = [head]
    for start_at in range(16_000, len(encoded), 16_000):
        head.flags.discard("END_HEADERS")
        piece = encoded[start_at : start_at + 16_000]
        frames.append(continuation(head.stream_id, piece, ends=start_at + 16_000 >= len(encoded)))

    await client.send(*frames)
    answer = client.streams[head.stream_id]
    await answer.done.wait()
    await trio.testing.wait_all_tasks_blocked()
    await other.done.wait()

    assert answer.status == status
    assert list(json.loads(answer.body)["error"]) == ["type", "code", "message", "param"]
    is_malformed = status == 400
    assert answer.reset == (ErrorCode.PROTOCOL_ERROR if is_malformed else ErrorCode.NO_ERROR)
    assert answer.has_ended is not is_malformed
    assert other.is_whole
    assert len(backend.calls) == 1
    assert [line["response_code"] for line in await router.log()] == [status, 200]
    assert client.goaways == []


@pytest.mark.parametrize("declared", [len(WHOLE) - 1, len(WHOLE) + 1])
async def test_body_of_another_length_than_declared_is_refused(
    declared: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Shorter or longer: what a backend would see is not what the client sent."""
    router, backend = await start(nursery)
    client = await connect(nursery, router)
    head = client.open([(b"content-length", b"%d" % declared)])
    await client.send(head, *data_frames(head.stream_id, WHOLE, ends=True))
    answer = client.streams[head.stream_id]

    await answer.done.wait()
    other = await client.ask(WHOLE)

    assert answer.status == 400
    assert other.status == 200
    assert len(backend.calls) == 1
    assert await router.held() == (0, 0)


async def test_malformed_requests_without_end_end_the_connection(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Resets that a client provokes count like those it sends (CVE-2025-8671)."""
    router, _ = await start(nursery)
    client = await connect(nursery, router)

    while not client.goaways:
        await client.send(client.open([(b"connection", b"close")], ends=True))
    await client.closed.wait()

    assert client.goaways[-1][1] == ErrorCode.ENHANCE_YOUR_CALM
    assert len(client.streams) <= RESETS + 1500


async def test_client_that_reads_no_answers_to_its_frames_is_parted_with(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What waits for it stays bounded, however patiently it asks."""
    router, _ = await start(nursery)
    client = H2Client(await router.connect())
    async with trio.open_nursery() as reading:
        await client.start(reading)
        reading.cancel_scope.cancel()
    pings = b"".join([PingFrame(0, b"12345678").serialize()] * 500)

    async def ask_patiently() -> None:
        for _ in range(1000):
            await client.send_bytes(pings)
            await trio.sleep(5)

    with pytest.raises(ConnectionBroken):
        await ask_patiently()

    assert trio.current_time() < 1000
    assert router.router.server.open_connections == 0
