"""Drain: what is under way finishes, nothing new begins, and it ends."""

from collections.abc import Callable

import attrs
import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd, Got, ask, chat_body, read_answer
from tests.fakes.backend import start_backend
from tests.fakes.router import RunningRouter, document_of, model_of, start_router
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.demo.server import DemoModel
from vsr.gateway.serve import DRAIN_GRACE_S
from vsr.network.memory import MemoryNetwork
from vsr.network.port import ConnectFailed, ConnectionBroken

FORCED_END_S = DRAIN_GRACE_S + 2
STREAM = chat_body(model="auto", stream=True)
LARGE = Script(chunks=20_000, piece_bytes=1000)


async def start(
    nursery: trio.Nursery, script: Script | None = None
) -> tuple[RunningRouter, DemoModel]:
    """Start a Router with one demo model."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, script)
    return await start_router(nursery, network, document_of(model_of(backend.port))), backend


@attrs.define
class Asked:
    """What a client got, and when."""

    got: Got | None = None
    at: float = 0.0

    async def run(self, router: RunningRouter, body: bytes) -> None:
        """Ask once."""
        self.got = await router.ask(body)
        self.at = trio.current_time()


async def test_streams_under_way_finish(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report O8: all of them, whole; then the drain ends at once, not at its limit."""
    router, backend = await start(nursery, Script(chunks=20, chunk_interval_s=1))
    asked = [Asked() for _ in range(5)]
    for each in asked:
        nursery.start_soon(each.run, router, STREAM)
    await trio.sleep(5)

    await router.router.server.drain()

    ended_at = trio.current_time()
    await trio.testing.wait_all_tasks_blocked()
    assert ended_at == pytest.approx(23)  # the Router asks for usage, which is one event more
    for each in asked:
        assert each.got is not None
        assert (each.got.end, each.got.status) == (AnswerEnd.WHOLE, 200)
        assert each.got.body.endswith(b"data: [DONE]\n\n")
    assert router.router.server.open_connections == 0
    assert await router.held() == (0, 0)
    assert {line["outcome"] for line in await router.log()} == {"succeeded"}
    router.generation.retire()
    await trio.testing.wait_all_tasks_blocked()
    assert backend.open_connections == 0


async def test_new_connections_are_refused(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """From the first moment on."""
    router, _ = await start(nursery, Script(latency_s=10))
    asked = Asked()
    nursery.start_soon(asked.run, router, STREAM)
    await trio.testing.wait_all_tasks_blocked()

    nursery.start_soon(router.router.server.drain)
    await trio.testing.wait_all_tasks_blocked()

    with pytest.raises(ConnectFailed):
        await router.connect()
    await trio.sleep(11)
    assert asked.got is not None
    assert asked.got.end is AnswerEnd.WHOLE


async def test_idle_connections_close_at_once(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Those that never sent anything, and those that wait for a next request."""
    router, _ = await start(nursery)
    fresh, used = await router.connect(), await router.connect()
    await ask(used, STREAM)

    await router.router.server.drain()

    assert trio.current_time() == 0
    assert (fresh.is_gone, used.is_gone) == (True, True)
    assert await fresh.receive() == b""


async def test_request_under_way_is_its_connections_last(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Also when its head was answered before the drain began, and more is pipelined or comes."""
    router, backend = await start(nursery, Script(chunks=10, chunk_interval_s=1))
    client = await router.connect()
    got = Asked()

    async def one() -> None:
        got.got = await ask(client, STREAM)

    nursery.start_soon(one)
    await trio.sleep(3)
    await router.router.server.drain()

    assert got.got is not None
    assert got.got.end is AnswerEnd.WHOLE
    assert client.is_gone
    assert len(backend.calls) == 1


async def test_answer_begun_in_a_drain_says_close(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The client need not find out by a failing next request."""
    router, _ = await start(nursery, Script(latency_s=10))
    asked = Asked()
    nursery.start_soon(asked.run, router, chat_body(model="auto"))
    await trio.sleep(1)

    await router.router.server.drain()

    await trio.testing.wait_all_tasks_blocked()
    assert asked.got is not None
    assert asked.got.status == 200
    assert asked.got.line(b"connection") == b"close"


async def _never_read(router: RunningRouter) -> None:
    client = await router.connect()
    await client.send(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: r\r\nContent-Length: %d\r\n\r\n%b"
        % (len(STREAM), STREAM)
    )
    await trio.sleep_forever()


async def _never_finish_the_head(router: RunningRouter) -> None:
    client = await router.connect()
    while True:
        await client.send(b"GET / HTTP/1.1\r\nx: ")
        await trio.sleep_forever()


async def _never_finish_the_body(router: RunningRouter) -> None:
    client = await router.connect()
    await client.send(b"POST / HTTP/1.1\r\nHost: r\r\nContent-Length: 9999\r\n\r\n")
    while True:
        await client.send(b"x")
        await trio.sleep(1)


async def _never_let_the_linger_end(router: RunningRouter) -> None:
    client = await router.connect()
    await client.send(b"POST / HTTP/1.1\r\nHost: r\r\nContent-Length: %d\r\n\r\n" % 2**50)
    while True:
        await client.send(b"x")
        await trio.sleep(0.1)


@pytest.mark.parametrize(
    ("script", "client"),
    [
        (LARGE, _never_read),
        (Script(fault=Fault.SILENCE), _never_read),
        (Script(fault=Fault.STALL_MIDSTREAM), _never_read),
        (Script(chunks=90_000, chunk_interval_s=1), _never_read),
        (Script(), _never_finish_the_head),
        (Script(), _never_finish_the_body),
        (Script(), _never_let_the_linger_end),
    ],
)
async def test_drain_ends_whatever_a_client_does(
    script: Script,
    client: Callable[[RunningRouter], object],
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """At most the grace and a moment; nothing is held afterwards and the server has returned."""
    router, backend = await start(nursery, script)
    async with trio.open_nursery() as clients:
        clients.start_soon(_suppress_broken, client, router)
        await trio.sleep(1)

        await router.router.server.drain()

        assert trio.current_time() <= 1 + FORCED_END_S
        assert router.router.server.open_connections == 0
        assert await router.held() == (0, 0)
        assert all(call.ended_at is not None for call in backend.calls)
        clients.cancel_scope.cancel()
    lines = await router.log()
    ends = {(line["outcome"], line["cause"]) for line in lines}
    assert len(lines) <= 1
    assert ends <= {("cancelled", "drain"), ("failed", None), ("cancelled", "client_gone")}
    if client is _never_read:
        assert ends == {("cancelled", "drain")}
        assert trio.current_time() == pytest.approx(1 + DRAIN_GRACE_S)


async def _suppress_broken(client: Callable[..., object], router: RunningRouter) -> None:
    try:
        await client(router)  # type: ignore[misc]  # a coroutine function of the table
    except ConnectionBroken:
        await trio.sleep_forever()


@pytest.mark.parametrize("version", [b"HTTP/1.1", b"HTTP/1.0"])
async def test_forced_end_breaks_a_stream_visibly(
    version: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A half answer must not look whole, whatever frames it: without chunks that takes a reset."""
    router, _ = await start(nursery, Script(chunks=1000, chunk_interval_s=1))
    client = await router.connect()
    await client.send(
        b"POST /v1/chat/completions %b\r\nHost: r\r\nContent-Length: %d\r\n\r\n%b"
        % (version, len(STREAM), STREAM)
    )
    got = Asked()

    async def read() -> None:
        got.got = await read_answer(client)

    nursery.start_soon(read)
    await trio.sleep(1)
    await router.router.server.drain()
    await trio.testing.wait_all_tasks_blocked()

    assert got.got is not None
    assert got.got.end in {AnswerEnd.CUT, AnswerEnd.RESET}
    assert b"[DONE]" not in got.got.body


async def test_server_returns_once_drained(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its task is what the process waits for; both may be asked again without harm."""
    router, _ = await start(nursery)
    await router.ask(STREAM)

    await router.router.server.drain()
    await router.router.server.drain()
    router.router.server.force_end()

    assert router.router.server.open_connections == 0
    assert trio.current_time() == 0
