"""A client's connection that fails in writing before its end was seen."""

import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.backend import start_backend
from tests.fakes.router import RunningRouter, document_of, model_of, start_router
from tests.faults.moments import request_of
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.network.memory import MemoryNetwork
from vsr.network.port import ConnectionBroken

STREAM = chat_body(model="auto", stream=True)


async def _fail_writes(router: RunningRouter, after: int) -> None:
    """Let the Router's writes to its one client fail, but for the first `after` of them."""
    await trio.testing.wait_all_tasks_blocked()
    [server] = router.router.server._listeners
    [served] = server.connections
    connection = served.connection
    real_send = connection.send
    left = after

    async def send(data: bytes | memoryview) -> None:
        nonlocal left
        await trio.lowlevel.checkpoint()
        left -= 1
        if left < 0:
            raise ConnectionBroken
        await real_send(data)

    connection.send = send  # type: ignore[method-assign]  # what a real socket may do at any time
    connection.try_send = _take_nothing  # type: ignore[method-assign]  # as above


def _take_nothing(data: bytes) -> int:
    del data
    return 0


@pytest.mark.parametrize(
    ("sent", "script", "after"),
    [
        (request_of(chat_body(model="auto")), Script(), 0),
        (request_of(chat_body(model="nope")), Script(), 0),
        (request_of(chat_body(model="auto")), Script(fault=Fault.RESET_BEFORE_HEAD), 0),
        (request_of(chat_body(model="auto")), Script(fault=Fault.SILENCE), 0),
        (request_of(STREAM), Script(chunks=5, chunk_interval_s=1), 0),
        (request_of(STREAM), Script(chunks=5, chunk_interval_s=1), 1),
        (request_of(STREAM), Script(chunks=5, chunk_interval_s=1), 2),
        (b"POST /x HTTP/1.1\r\nHost: r\r\nContent-Length: 9999\r\n\r\n", Script(), 0),
        (b"POST /x HTTP/1.1\r\nHost: r\r\nContent-Length: 90\r\n\r\n", Script(), 0),
    ],
    ids=[
        "answer",
        "refusal",
        "local reply",
        "deadline",
        "stream head",
        "stream piece",
        "later piece",
        "413",
        "408",
    ],
)
async def test_failed_write_is_a_client_that_left(
    sent: bytes,
    script: Script,
    after: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is no bug of ours, no traceback, and holds nothing, whatever was being written."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, script)
    document = document_of(
        model_of(backend.port, reliability="{total_timeout: 20s}"),
        listener="max_body_bytes: 1000, timeout: 30s",
    )
    router = await start_router(nursery, network, document)
    client = await router.connect()
    await _fail_writes(router, after)

    await client.send(sent)
    await trio.sleep(100)

    assert caplog.text == ""
    assert client.is_gone
    assert await router.held() == (0, 0)
    assert router.router.server.open_connections == 0
    [line] = await router.log()
    is_late = script.fault is Fault.SILENCE
    ended = ("timed_out", "deadline") if is_late else ("cancelled", "client_gone")
    assert (line["outcome"], line["cause"]) == ended, "the first cause counts"
    assert all(call.ended_at is not None for call in backend.calls)
