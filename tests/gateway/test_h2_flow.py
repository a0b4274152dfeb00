"""Windows of HTTP/2 connections: who gives none waits alone, and what comes late harms nobody."""

import trio
import trio.testing

from tests.fakes.h2_client import WINDOW_BYTES, H2Client, credit_frames, data_frames, reset
from tests.fakes.router import document_of, model_of, start_router
from tests.gateway.h2_running import SOON_S, STREAM, WHOLE, connect, start
from tests.upstream.raw_backend import RawBackend, reply
from vsr.demo.script import Script
from vsr.demo.server import CallEnd
from vsr.gateway.h2_exchange import LINGER_S
from vsr.http.h2_frames import ErrorCode
from vsr.http.h2_library import CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES
from vsr.network.memory import MemoryNetwork

INITIAL_WINDOW = 4
"""Number of the setting. Source: RFC 9113 section 6.5.2."""
BUFFERS_BYTES = 1_000_000
"""More than all buffers between backend and client hold together, and far less than a stream."""
LONG = Script(chunks=4000, piece_bytes=1000)
NO_LIMITS = "{total_timeout: 0s, idle_timeout: 0s}"


async def test_stream_without_a_window_waits_alone(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its backend stops too and nothing grows; others are served, and it goes on when it may."""
    router, backend = await start(nursery, LONG, reliability=NO_LIMITS)
    client = await connect(nursery, router, settings={INITIAL_WINDOW: 1000}, gives_credit=False)
    await client.send(*credit_frames(0, 100_000_000)[:1])
    starved = await client.request(STREAM)
    sent: list[int] = []

    for _ in range(3):
        await trio.sleep(10)
        sent.append(backend.calls[0].bytes_sent)
    before = len(starved.body)
    client.gives_credit = True
    other = await client.ask(method=b"GET", target=b"/v1/models")
    other_at = trio.current_time()
    await client.send(credit_frames(1, 10_000_000)[1])
    await starved.done.wait()

    assert before == 1000
    assert len(set(sent)) == 1
    assert 0 < sent[0] < BUFFERS_BYTES
    assert (other.is_whole, other_at) == (True, 30)
    assert starved.is_whole
    assert starved.body.count(b"data: ") == 4000 + 3
    assert await router.held() == (0, 0)


async def test_connection_window_is_shared_in_turns(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Ten long answers share what the client gives: none is left out, whoever came first."""
    router, _ = await start(nursery, LONG, reliability=NO_LIMITS)
    client = await connect(nursery, router, settings={INITIAL_WINDOW: 10**8}, gives_credit=False)
    answers = [await client.request(STREAM) for _ in range(10)]
    await trio.testing.wait_all_tasks_blocked()
    first = sum(len(answer.body) for answer in answers)

    await client.send(*credit_frames(0, 40 * 16_384)[:1])
    await trio.testing.wait_all_tasks_blocked()
    got = [len(answer.body) for answer in answers]

    assert first == WINDOW_BYTES
    assert sum(got) == WINDOW_BYTES + 40 * 16_384
    assert min(got) > 1000
    for answer in answers:
        assert not answer.done.is_set()


async def test_client_that_does_not_read_stops_its_backends(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Windows as wide as they get: the socket is what is full then; reset and loss are seen."""
    router, backend = await start(nursery, LONG, reliability=NO_LIMITS)
    client = H2Client(await router.connect(), settings={INITIAL_WINDOW: 10**8})
    silent = trio.CancelScope()

    async def read_until_told() -> None:
        with silent:
            async with trio.open_nursery() as reading:
                await client.start(reading)
                await client.send(*credit_frames(0, 10**8)[:1])
                await client.request(STREAM)
                await client.request(STREAM)
                silent.cancel()

    await read_until_told()
    await trio.sleep(10)
    sent = [call.bytes_sent for call in backend.calls]
    await trio.sleep(10)

    assert [call.bytes_sent for call in backend.calls] == sent
    assert max(sent) < BUFFERS_BYTES
    await client.send(reset(1))
    await trio.sleep(SOON_S)
    assert sorted(str(call.end) for call in backend.calls) == ["None", "peer_gone"]
    client.connection.close()
    await trio.sleep(SOON_S)
    assert {call.end for call in backend.calls} == {CallEnd.PEER_GONE}
    assert await router.held() == (0, 0)


async def test_data_after_an_early_answer_is_dropped_and_credited(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The answer comes, soon the client is asked to stop, and uploads of others go on."""
    network = MemoryNetwork()
    backend = await RawBackend(network, lambda _, body: reply(200, b"%d" % len(body))).start(
        nursery
    )
    document = document_of(model_of(backend.port), listener="api_keys: [secret]")
    router = await start_router(nursery, network, document)
    client = await connect(nursery, router)
    refused = client.open(target=b"/upload")
    allowed = client.open([(b"authorization", b"Bearer secret")], target=b"/upload")
    await client.send(refused, allowed)
    early = client.streams[refused.stream_id]
    await early.done.wait()
    given_before = client.windows[0]
    piece = bytes(16_000)
    was_asked = True

    for number in range(200):
        await client.send(*data_frames(refused.stream_id, piece, ends=False))
        if number == 10:
            was_asked = early.reset is not None
            await trio.sleep(LINGER_S)
    await trio.testing.wait_all_tasks_blocked()
    await client.send(*data_frames(allowed.stream_id, piece, ends=True))
    answer = client.streams[allowed.stream_id]
    await answer.done.wait()

    assert (early.status, early.has_ended) == (401, True)
    assert (was_asked, early.reset) == (False, ErrorCode.NO_ERROR)
    resets = [frame for frame in client.seen if type(frame).__name__ == "RstStreamFrame"]
    assert len(resets) == 1
    assert 200 * 16_000 - client.windows[0] + given_before < CONNECTION_WINDOW_BYTES
    assert answer.body == b"16000"
    assert client.goaways == []
    assert await router.held() == (0, 0)


async def test_unread_body_holds_up_no_other_stream(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Bodies that lie about fill the windows of their streams, never the connection's."""
    router, _ = await start(nursery)
    client = await connect(nursery, router)
    heads = [client.open() for _ in range(10)]
    await client.send(*heads)

    for head in heads:
        for frame in data_frames(head.stream_id, bytes(STREAM_WINDOW_BYTES // 2), ends=False):
            await client.send(frame)
            await trio.testing.wait_all_tasks_blocked()
    other = await client.ask(WHOLE)

    assert other.status == 200
    assert client.goaways == []
    assert client.windows[0] >= 5 * STREAM_WINDOW_BYTES


async def test_connection_window_beyond_its_limit_ends_the_connection(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nobody could count it any more; the calls under way end."""
    router, backend = await start(nursery, Script(latency_s=5))
    client = await connect(nursery, router)
    await client.request(WHOLE)
    await trio.testing.wait_all_tasks_blocked()

    await client.send(credit_frames(0, 2**31 - 1)[0])
    await client.closed.wait()

    assert client.goaways == [(1, ErrorCode.FLOW_CONTROL_ERROR)]
    assert [call.end for call in backend.calls] == [CallEnd.PEER_GONE]
    client.connection.close()
    assert await router.held() == (0, 0)


async def test_stream_window_beyond_its_limit_resets_that_stream(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A stream's fault stays its own."""
    router, backend = await start(nursery, Script(latency_s=5))
    client = await connect(nursery, router)
    bad = await client.request(WHOLE)
    good = await client.request(WHOLE)
    await trio.testing.wait_all_tasks_blocked()

    await client.send(credit_frames(1, 2**31 - 1)[1])
    await bad.done.wait()
    await good.done.wait()

    assert (bad.status, bad.reset) == (0, ErrorCode.FLOW_CONTROL_ERROR)
    assert good.is_whole
    assert sorted(str(call.end) for call in backend.calls) == ["completed", "peer_gone"]


async def test_early_answer_leaves_nothing_once_its_client_has_left(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """While it could still be asked to stop sending."""
    router, _ = await start(nursery)
    client = await connect(nursery, router)
    answer = await client.request(b"", target=b"/health", method=b"GET")
    head = client.open(target=b"/health", method=b"GET")
    await client.send(head)
    await answer.done.wait()

    client.connection.close()
    await trio.sleep(2 * LINGER_S)

    assert client.streams[head.stream_id].is_whole
    assert router.router.server.open_connections == 0
    assert await router.held() == (0, 0)
