"""The demo model server on a network in memory: connections, calls, what it remembers."""

from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd, ask, chat_body, read_answer
from tests.fakes.backend import start_backend
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.demo.server import CallEnd, DemoModel
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.network.port import READ_AHEAD_BYTES, ConnectFailed, ConnectionBroken

Act = Callable[[DemoModel, MemoryNetwork, MemoryConnection], Awaitable[None]]


async def _with_backend(script: Script, act: Act) -> DemoModel:
    """Run `act` with a backend and one connection to it; afterwards nothing may be open."""
    network = MemoryNetwork()
    async with trio.open_nursery() as nursery:
        backend = await start_backend(nursery, network, script)
        connection = await network.connect("backend", backend.port)
        await act(backend, network, connection)
        connection.close()
        nursery.cancel_scope.cancel()
    assert (backend.open_connections, network.open_connections) == (0, 0)
    return backend


async def test_connection_carries_calls_one_after_the_other() -> None:
    """Kept alive, in order, and remembered with all that arrived."""

    async def act(_model: DemoModel, _network: MemoryNetwork, client: MemoryConnection) -> None:
        for text in ("one", "two"):
            got = await ask(client, chat_body(text), lines=[(b"x-n", text.encode())])
            assert got.is_reusable
            assert text.encode() in got.body

    backend = await _with_backend(Script(), act)

    assert [seen.index for seen in backend.seen] == [0, 1]
    assert [seen.body for seen in backend.seen] == [chat_body("one"), chat_body("two")]
    assert [seen.headers.get(b"x-n") for seen in backend.seen] == [b"one", b"two"]
    assert all(seen.is_complete for seen in backend.seen)
    assert {(seen.method, seen.target) for seen in backend.seen} == {
        (b"POST", b"/v1/chat/completions")
    }
    assert backend.accepted_connections == 1


async def test_pipelined_requests_are_answered_in_order() -> None:
    """Both requests arrive in one read."""
    answers: list[bytes] = []

    async def act(_model: DemoModel, _network: MemoryNetwork, client: MemoryConnection) -> None:
        await client.send(b"GET /a HTTP/1.1\r\nhost: h\r\n\r\nGET /b HTTP/1.1\r\nhost: h\r\n\r\n")
        for _ in range(2):
            answers.append((await read_answer(client)).body)  # noqa: PERF401  # one by one

    await _with_backend(Script(), act)

    assert [b'"path":"/a"' in answers[0], b'"path":"/b"' in answers[1]] == [True, True]


async def test_head_request_is_answered_without_body() -> None:
    """The length describes what GET would send."""
    lengths: list[tuple[bytes, bytes]] = []

    async def act(_model: DemoModel, _network: MemoryNetwork, client: MemoryConnection) -> None:
        got = await ask(client, method=b"HEAD", target=b"/x")
        lengths.append((got.line(b"content-length"), got.body))
        assert (await ask(client, chat_body())).status == 200

    await _with_backend(Script(), act)

    assert int(lengths[0][0]) > 0
    assert lengths[0][1] == b""


async def test_latency_and_interval_pace_a_stream(autojump_clock: trio.testing.MockClock) -> None:
    """The head comes after the latency, each event but the first after one interval."""
    start = autojump_clock.current_time()
    script = Script(reply="a b c", latency_s=10, chunk_interval_s=2)

    async def act(_model: DemoModel, _network: MemoryNetwork, client: MemoryConnection) -> None:
        await ask(client, chat_body(stream=True))

    backend = await _with_backend(script, act)

    # Role, three pieces, finish reason and the end mark are six events.
    assert backend.calls[0].ended_at == start + 10 + 5 * 2


async def test_faults_are_met_in_order_and_probes_do_not_count() -> None:
    """One fails, the next is fine, whatever is probed before and between."""
    statuses: list[int] = []

    async def act(_model: DemoModel, _network: MemoryNetwork, client: MemoryConnection) -> None:
        for target in (b"/health", b"/v1/models"):
            assert (await ask(client, method=b"GET", target=target)).status == 200
            statuses.append((await ask(client, chat_body())).status)

    await _with_backend(Script(faults=(503,)), act)

    assert statuses == [503, 200]


async def test_request_header_asks_for_a_fault() -> None:
    """Only that request meets it; nonsense is told."""
    statuses: list[int] = []

    async def act(_model: DemoModel, _network: MemoryNetwork, client: MemoryConnection) -> None:
        for line in ((b"x-demo-status", b"418"), (b"x-demo-fault", b"?"), (b"x-other", b"1")):
            statuses.append((await ask(client, chat_body(), lines=[line])).status)  # noqa: PERF401

    await _with_backend(Script(), act)

    assert statuses == [418, 400, 200]


async def test_script_may_be_replaced_between_calls() -> None:
    """The next call follows the new script."""
    statuses: list[int] = []

    async def act(model: DemoModel, _network: MemoryNetwork, client: MemoryConnection) -> None:
        statuses.append((await ask(client, chat_body())).status)
        model.script = Script(fault=500)
        statuses.append((await ask(client, chat_body())).status)

    await _with_backend(Script(), act)

    assert statuses == [200, 500]


@pytest.mark.parametrize("way", ["close", "abort", "shutdown_send"])
@pytest.mark.parametrize(
    "script",
    [
        Script(latency_s=100),
        Script(chunk_interval_s=100),
        Script(fault=Fault.SILENCE),
        Script(fault=Fault.STALL_MIDSTREAM),
        Script(fault=Fault.SLOW_FIRST_BYTE),
        Script(fault=Fault.TRICKLE, chunk_interval_s=100),
    ],
    ids=["latency", "interval", "silence", "stall", "slow_first_byte", "trickle"],
)
async def test_client_that_leaves_ends_the_call_at_once(
    script: Script, way: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Whatever the server waits for, a client that closes, resets or half-closes ends it."""
    start = autojump_clock.current_time()
    left_open: list[int] = []

    async def act(model: DemoModel, _network: MemoryNetwork, client: MemoryConnection) -> None:
        await ask(client, chat_body(stream=True), patience_s=7)
        getattr(client, way)()
        await trio.testing.wait_all_tasks_blocked()
        left_open.append(model.open_connections)

    backend = await _with_backend(script, act)

    assert left_open == [0]
    assert [(call.end, call.ended_at) for call in backend.calls] == [(CallEnd.PEER_GONE, start + 7)]


async def test_client_that_leaves_within_the_body_leaves_an_incomplete_request() -> None:
    """What is not whole is never answered, and can be told from what is."""

    async def act(_model: DemoModel, _network: MemoryNetwork, client: MemoryConnection) -> None:
        await client.send(b"POST /x HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nab")
        client.close()
        await trio.testing.wait_all_tasks_blocked()

    backend = await _with_backend(Script(), act)

    assert [(call.seen.is_complete, call.end) for call in backend.calls] == [
        (False, CallEnd.PEER_GONE)
    ]
    assert backend.calls[0].bytes_sent == 0


async def test_client_that_has_left_already_gets_no_answer() -> None:
    """A whole request whose client is gone is remembered and dropped."""

    async def act(_model: DemoModel, _network: MemoryNetwork, client: MemoryConnection) -> None:
        await client.send(b"GET /x HTTP/1.1\r\nhost: h\r\n\r\n")
        client.shutdown_send()
        await trio.testing.wait_all_tasks_blocked()

    backend = await _with_backend(Script(), act)

    assert [(call.seen.is_complete, call.end) for call in backend.calls] == [
        (True, CallEnd.PEER_GONE)
    ]


async def test_client_that_does_not_read_stops_the_stream() -> None:
    """What was taken is counted, and no more is produced than the connection holds."""
    sent: list[int] = []

    async def act(model: DemoModel, _network: MemoryNetwork, client: MemoryConnection) -> None:
        await client.send(_request(chat_body(stream=True)))
        await trio.testing.wait_all_tasks_blocked()
        sent.append(model.calls[0].bytes_sent)
        for _ in range(40):
            await client.receive()
        await trio.testing.wait_all_tasks_blocked()
        sent.append(model.calls[0].bytes_sent)

    await _with_backend(Script(chunks=10_000, piece_bytes=4096), act)

    assert READ_AHEAD_BYTES // 2 < sent[0] <= READ_AHEAD_BYTES + 2 * 4096
    assert sent[1] > sent[0] + 30 * 4096


def _request(body: bytes) -> bytes:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


async def test_large_bodies_pass_both_ways() -> None:
    """Requests up to 64 MiB are taken, larger ones refused while they are read."""
    statuses: list[int] = []

    async def act(_model: DemoModel, network: MemoryNetwork, client: MemoryConnection) -> None:
        statuses.append((await ask(client, b"x" * (64 * 2**20), target=b"/echo")).status)
        second = await network.connect("backend", _model.port)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_send_too_much, second)
            statuses.append((await read_answer(second)).status)
            second.close()

    backend = await _with_backend(Script(), act)

    assert statuses == [200, 413]
    assert len(backend.seen[0].body) == 64 * 2**20
    assert not backend.seen[1].is_complete


async def _send_too_much(connection: MemoryConnection) -> None:
    await connection.send(b"POST /x HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n")
    try:
        while True:
            await connection.send(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
    except ConnectionBroken:
        pass


async def test_expectation_is_met_when_the_body_is_read() -> None:
    """The client that waits for it gets 100 and then the answer."""
    received: list[bytes] = []

    async def act(_model: DemoModel, _network: MemoryNetwork, client: MemoryConnection) -> None:
        head = b"POST /x HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
        await client.send(head)
        received.append(await client.receive())
        await client.send(b"ok")
        received.append((await read_answer(client)).body)

    await _with_backend(Script(), act)

    assert received[0] == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert b'"body_bytes":2' in received[1]


@pytest.mark.parametrize("stream", [False, True], ids=["buffered", "streamed"])
async def test_http_1_0_client_gets_a_body_that_ends_at_close(*, stream: bool) -> None:
    """HTTP/1.0 knows no chunks."""
    got: list[object] = []

    async def act(_model: DemoModel, _network: MemoryNetwork, client: MemoryConnection) -> None:
        await client.send(_request(chat_body(stream=stream)).replace(b"HTTP/1.1", b"HTTP/1.0"))
        answer = await read_answer(client)
        got.extend((answer.end, answer.line(b"transfer-encoding"), client.is_gone))

    await _with_backend(Script(), act)

    assert got == [AnswerEnd.WHOLE, b"", True]


async def test_client_that_asks_to_close_is_obeyed() -> None:
    """The answer says so, and the connection goes."""
    got: list[object] = []

    async def act(_model: DemoModel, _network: MemoryNetwork, client: MemoryConnection) -> None:
        answer = await ask(client, chat_body(), lines=[(b"connection", b"close")])
        await trio.testing.wait_all_tasks_blocked()
        got.extend((answer.line(b"connection"), answer.end, client.is_gone))

    await _with_backend(Script(), act)

    assert got == [b"close", AnswerEnd.WHOLE, True]


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
    ],
)
async def test_malformed_request_is_refused_and_noted(request_bytes: bytes) -> None:
    """It is no call: a test that looks for smuggled requests finds none by accident."""
    got: list[object] = []

    async def act(_model: DemoModel, _network: MemoryNetwork, client: MemoryConnection) -> None:
        await client.send(request_bytes)
        answer = await read_answer(client)
        got.extend((answer.status, answer.line(b"connection"), answer.end))

    backend = await _with_backend(Script(), act)

    assert got == [400, b"close", AnswerEnd.WHOLE]
    assert (len(backend.malformed), len(backend.calls)) == (1, 0)


async def test_malformed_body_breaks_the_call_off() -> None:
    """The request is never taken for whole."""
    ends: list[AnswerEnd] = []

    async def act(_model: DemoModel, _network: MemoryNetwork, client: MemoryConnection) -> None:
        await client.send(
            b"POST /x HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"
        )
        ends.append((await read_answer(client)).end)

    backend = await _with_backend(Script(), act)

    assert ends == [AnswerEnd.CUT]
    assert (len(backend.malformed), backend.seen[0].is_complete) == (1, False)


async def test_stop_listening_keeps_connections_and_refuses_new_ones() -> None:
    """As a server that drains."""
    statuses: list[int] = []

    async def act(model: DemoModel, network: MemoryNetwork, client: MemoryConnection) -> None:
        assert (await ask(client, chat_body())).status == 200
        model.stop_listening()
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(ConnectFailed):
            await network.connect("backend", model.port)
        statuses.append((await ask(client, chat_body())).status)

    await _with_backend(Script(), act)

    assert statuses == [200]


async def test_drop_connections_ends_calls_and_idle_connections(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Both kinds go at once; the call knows that it was not the client who left."""
    start = autojump_clock.current_time()
    is_gone: list[bool] = []

    async def act(model: DemoModel, network: MemoryNetwork, client: MemoryConnection) -> None:
        idle = await network.connect("backend", model.port)
        await client.send(_request(chat_body()))
        await trio.sleep(3)
        model.drop_connections()
        await trio.testing.wait_all_tasks_blocked()
        is_gone.extend((client.is_gone, idle.is_gone))
        idle.close()

    backend = await _with_backend(Script(latency_s=100), act)

    assert is_gone == [True, True]
    assert [(call.end, call.ended_at) for call in backend.calls] == [(CallEnd.STOPPED, start + 3)]


async def test_history_is_bounded() -> None:
    """The oldest calls are forgotten, and indexes still count all."""
    network = MemoryNetwork()
    async with trio.open_nursery() as nursery:
        backend = DemoModel(network, history=2)
        await nursery.start(backend.run, "127.0.0.1", 0)
        client = await network.connect("backend", backend.port)
        for _ in range(5):
            await ask(client, chat_body())
        nursery.cancel_scope.cancel()

    assert [seen.index for seen in backend.seen] == [3, 4]
