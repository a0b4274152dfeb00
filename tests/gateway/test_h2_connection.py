"""HTTP/2 connections of a whole Router: many requests at once, each with its own end."""

import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.h2_client import H2Client, data_frames, reset
from tests.fakes.router import document_of, model_of, start_router
from tests.gateway.h2_running import IDLE_S, SOON_S, STREAM, WHOLE, connect, start
from tests.upstream.raw_backend import RawBackend, reply
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.demo.server import CallEnd
from vsr.gateway.connection import HEAD_TIMEOUT_S
from vsr.http.framing import RequestHead
from vsr.http.h2_frames import PREFACE, ErrorCode
from vsr.http.h2_library import MAX_STREAMS
from vsr.network.memory import MemoryNetwork


async def test_whole_answer_is_as_over_http1(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Head, length and body; the log names the protocol."""
    router, backend = await start(nursery)
    client = await connect(nursery, router)

    answer = await client.ask(WHOLE)
    plain = await router.ask(WHOLE)

    assert answer.is_whole
    assert answer.status == plain.status == 200
    assert answer.line(b"content-length") == plain.line(b"content-length")
    assert bytes(answer.body) == plain.body
    first, second = [call.seen for call in backend.calls]
    assert first.body == second.body
    assert {name for name, _ in first.headers} == {name for name, _ in second.headers}
    line, _ = await router.log()
    assert (line["protocol"], line["response_code"], line["authority"]) == ("HTTP/2", 200, "router")
    assert await router.held() == (0, 0)


async def test_connection_carries_requests_of_every_kind(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Routed, passed on, own answers and errors alike leave it usable."""
    router, _ = await start(nursery)
    client = await connect(nursery, router)

    answers = [
        await client.ask(WHOLE),
        await client.ask(method=b"GET", target=b"/v1/models"),
        await client.ask(chat_body(model="nope")),
        await client.ask(STREAM),
        await client.ask(method=b"GET", target=b"/health"),
        await client.ask(b"{}", target=b"/v1/nothing"),
        await client.ask(method=b"HEAD", target=b"/health"),
        await client.ask(WHOLE),
    ]

    assert [answer.status for answer in answers] == [200, 200, 400, 200, 200, 200, 200, 200]
    assert all(answer.is_whole and answer.reset is None for answer in answers)
    assert answers[6].body == b""
    assert client.goaways == []
    assert await router.held() == (0, 0)


async def test_stream_comes_event_by_event(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nothing waits for more, and the end is a clean one."""
    router, _ = await start(nursery, Script(chunks=10, chunk_interval_s=2))
    client = await connect(nursery, router)
    answer = await client.request(STREAM)

    await trio.sleep(7)
    events_by_then = answer.body.count(b"data: ")
    await answer.done.wait()

    assert 3 <= events_by_then <= 5
    assert answer.is_whole
    assert answer.body.endswith(b"data: [DONE]\n\n")
    assert answer.line(b"transfer-encoding") == b""
    assert await router.held() == (0, 0)


async def test_requests_run_side_by_side(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """100 at once take as long as one, and a fast one overtakes the slow."""
    router, _ = await start(nursery, Script(latency_s=3))
    client = await connect(nursery, router)

    slow = [await client.request(chat_body(f"number {n}", model="auto")) for n in range(100)]
    await client.ask(method=b"GET", target=b"/health")
    overtaken_at = trio.current_time()
    for answer in slow:
        await answer.done.wait()

    assert overtaken_at == 0
    assert trio.current_time() == pytest.approx(3)
    assert all(f"number {n}".encode() in answer.body for n, answer in enumerate(slow))
    assert await router.held() == (0, 0)


@pytest.mark.parametrize("body", [WHOLE, STREAM], ids=["before", "amid"])
async def test_reset_ends_its_backend_call_and_no_other(
    body: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Within 50 ms, before the answer or amid it; the log says that the client left."""
    latency_s = 30.0 if body == WHOLE else 0.0
    script = Script(latency_s=latency_s, chunks=20, chunk_interval_s=2)
    router, backend = await start(nursery, script)
    client = await connect(nursery, router)
    first, second = [await client.request(body) for _ in range(2)]
    await trio.sleep(11)

    await client.send(reset(1))
    await trio.sleep(SOON_S)
    ends = [call.end for call in backend.calls]
    await second.done.wait()

    assert sorted(map(str, ends)) == ["None", "peer_gone"]
    assert not first.has_ended
    assert second.is_whole
    outcomes = {line["outcome"]: line for line in await router.log()}
    assert outcomes["cancelled"]["cause"] == "client_gone"
    assert outcomes["cancelled"]["response_flags"] == "DC"
    assert outcomes["succeeded"]["response_code"] == 200
    assert await router.held() == (0, 0)


@pytest.mark.parametrize("leave", ["close", "abort", "shutdown_send"])
async def test_lost_connection_ends_all_its_calls(
    leave: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Half-closed counts as lost, as on HTTP/1.1."""
    router, backend = await start(nursery, Script(latency_s=30))
    client = await connect(nursery, router)
    for _ in range(20):
        await client.request(WHOLE)
    await trio.sleep(1)

    getattr(client.connection, leave)()
    await trio.sleep(SOON_S)

    assert {call.end for call in backend.calls} == {CallEnd.PEER_GONE}
    assert len(backend.calls) == 20
    assert router.router.server.open_connections == 0
    assert await router.held() == (0, 0)
    assert {line["cause"] for line in await router.log()} == {"client_gone"}


async def test_answer_that_breaks_off_resets_its_stream(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A cut answer never looks whole, and the connection goes on."""
    router, _ = await start(nursery, Script(faults=(Fault.RESET_MIDSTREAM,)))
    client = await connect(nursery, router)

    cut = await client.ask(STREAM)
    whole = await client.ask(STREAM)

    assert (cut.status, cut.has_ended, cut.reset) == (200, False, ErrorCode.INTERNAL_ERROR)
    assert whole.is_whole
    assert await router.held() == (0, 0)


async def test_deadline_is_answered_and_spares_the_others(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The 504 of one stream, while another that began later is still served."""
    router, backend = await start(
        nursery, Script(latency_s=8), reliability="{total_timeout: 10s, idle_timeout: 0s}"
    )
    client = await connect(nursery, router)
    backend.script = Script(latency_s=1000)
    late = await client.request(WHOLE)
    await trio.sleep(5)
    backend.script = Script(latency_s=8)
    good = await client.request(WHOLE)

    await late.done.wait()
    late_at = trio.current_time()
    await good.done.wait()

    assert late.is_whole
    assert late.status == 504
    assert late_at == pytest.approx(10)
    assert (good.status, good.is_whole) == (200, True)
    assert await router.held() == (0, 0)


@pytest.mark.parametrize("size", [0, 1, 16_384, 3_000_000])
async def test_request_body_of_any_size_arrives(
    size: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Windows are given back as it is read, so it may be larger than they are."""
    network = MemoryNetwork()

    def answer(head: RequestHead, body: bytes) -> bytes:
        assert head.fields[b"content-length"] == b"%d" % len(body)
        return reply(200, b"%d" % len(body))

    backend = await RawBackend(network, answer).start(nursery)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))
    client = await connect(nursery, router)
    head = client.open(target=b"/upload")
    await client.send(head)

    await send_as_windows_allow(client, head.stream_id, bytes(size))
    got = client.streams[head.stream_id]
    await got.done.wait()

    assert got.body == b"%d" % size
    assert await router.held() == (0, 0)


async def send_as_windows_allow(client: H2Client, stream_id: int, body: bytes) -> None:
    """Send a body and its end, waiting for the windows like a well-behaved client."""
    await trio.testing.wait_all_tasks_blocked()
    stream_window = client.told[4]
    sent = 0
    while sent < len(body):
        room = min(
            65_535 + client.windows[0] - sent,
            stream_window + client.windows.get(stream_id, 0) - sent,
            16_384,
        )
        if room > 0:
            await client.send(*data_frames(stream_id, body[sent : sent + room], ends=False))
            sent += room
        await trio.testing.wait_all_tasks_blocked()
    (end,) = data_frames(stream_id, b"x", ends=True)
    end.data = b""
    await client.send(end)


async def test_continue_is_said_when_the_body_is_asked_for(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Once, before the answer, and only if the body has not come along."""
    router, backend = await start(nursery)
    client = await connect(nursery, router)
    head = client.open([(b"expect", b"100-continue")])
    await client.send(head)
    answer = client.streams[head.stream_id]

    await trio.testing.wait_all_tasks_blocked()
    told_before = list(answer.informational)
    await client.send(*data_frames(head.stream_id, WHOLE, ends=True))
    await answer.done.wait()
    eager = await client.ask(WHOLE, [(b"expect", b"100-continue")])

    assert told_before == answer.informational == [100]
    assert answer.status == eager.status == 200
    assert eager.informational == []
    assert len(backend.calls) == 2


async def test_body_that_stops_is_answered_in_time(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The limit counts from the last bytes; another stream is not disturbed."""
    router, _ = await start(nursery)
    client = await connect(nursery, router)
    head = client.open([(b"content-length", b"%d" % len(WHOLE))])
    await client.send(head)
    await trio.sleep(IDLE_S - 1)
    await client.send(*data_frames(head.stream_id, WHOLE[:5], ends=False))
    answer = client.streams[head.stream_id]

    await answer.done.wait()
    other = await client.ask(WHOLE)

    assert answer.status == 408
    assert answer.reset == ErrorCode.NO_ERROR or answer.has_ended
    assert trio.current_time() == pytest.approx(2 * IDLE_S - 1)
    assert other.status == 200


async def test_silent_connection_is_closed_after_the_idle_limit(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Counted from the last request's end; the client is told, and a stream keeps it open."""
    router, _ = await start(
        nursery, Script(latency_s=2 * IDLE_S), reliability="{total_timeout: 0s}"
    )
    client = await connect(nursery, router)
    answer = await client.ask(WHOLE)
    answered_at = trio.current_time()

    await client.closed.wait()

    assert answer.status == 200
    assert answered_at == pytest.approx(2 * IDLE_S)
    assert trio.current_time() == pytest.approx(3 * IDLE_S)
    assert client.goaways == [(1, ErrorCode.NO_ERROR)]
    assert router.router.server.open_connections == 0


@pytest.mark.parametrize(
    "start_bytes", [PREFACE[:10], PREFACE, PREFACE + b"\x00\x00\x06\x04"], ids=len
)
async def test_preface_that_stops_is_not_waited_for(
    start_bytes: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """10 s, like the head of a request."""
    router, _ = await start(nursery)
    connection = await router.connect()
    await connection.send(start_bytes)

    while await connection.receive():
        pass
    connection.close()
    await trio.testing.wait_all_tasks_blocked()

    assert HEAD_TIMEOUT_S <= trio.current_time() <= 2 * HEAD_TIMEOUT_S + 2
    assert router.router.server.open_connections == 0


async def test_header_block_that_stops_is_not_waited_for(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nothing else can be sent meanwhile, so the connection is lost anyway."""
    router, _ = await start(nursery, Script(latency_s=100))
    client = await connect(nursery, router)
    await client.request(WHOLE)
    await trio.testing.wait_all_tasks_blocked()
    head = client.open()
    head.flags.discard("END_HEADERS")

    await client.send(head)
    await client.closed.wait()
    client.connection.close()

    assert trio.current_time() <= HEAD_TIMEOUT_S + 2
    assert client.goaways == [(1, ErrorCode.ENHANCE_YOUR_CALM)]
    assert await router.held() == (0, 0)


async def test_thousand_streams_come_to_their_end(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One connection, as many at a time as the server says it takes, the rest queued."""
    router, backend = await start(nursery, Script(latency_s=1))
    client = await connect(nursery, router)
    await trio.testing.wait_all_tasks_blocked()
    limiter = trio.CapacityLimiter(client.told[3])
    statuses: list[int] = []

    async def ask() -> None:
        async with limiter:
            statuses.append((await client.ask(WHOLE)).status)

    async with trio.open_nursery() as asking:
        for _ in range(1000):
            asking.start_soon(ask)

    assert client.told[3] == MAX_STREAMS
    assert statuses == [200] * 1000
    assert trio.current_time() == pytest.approx(1000 / MAX_STREAMS)
    assert len(backend.calls) == 1000
    assert await router.held() == (0, 0)
    assert len(await router.log()) == 1000
