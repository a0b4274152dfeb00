"""Liveness and readiness."""

import pytest
import trio
import trio.testing

from tests.demo.raw_client import ask, chat_body, read_answer
from tests.fakes.backend import start_backend
from tests.fakes.router import RunningRouter, document_of, model_of, start_router
from vsr.demo.script import Script
from vsr.network.memory import MemoryNetwork
from vsr.routing.generation import ActiveGeneration


async def start(nursery: trio.Nursery, script: Script | None = None) -> RunningRouter:
    """Start a Router that asks for a key, with one demo model."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, script)
    document = document_of(model_of(backend.port), listener="api_keys: [key]")
    return await start_router(nursery, network, document)


@pytest.mark.parametrize(
    ("target", "body"), [(b"/health", b'{"status":"ok"}'), (b"/ready", b'{"status":"ready"}')]
)
async def test_probe_needs_no_key_and_leaves_no_line(
    target: bytes,
    body: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """GET and HEAD alike; HEAD without the body that its length describes."""
    router = await start(nursery)
    client = await router.connect()

    got = await ask(client, method=b"GET", target=target)
    head = await ask(client, method=b"HEAD", target=target)
    again = await ask(client, method=b"GET", target=target)

    assert [got.status, head.status, again.status] == [200, 200, 200]
    assert [got.body, head.body, again.body] == [body, b"", body]
    assert got.head is not None
    assert got.head.lines == [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
    ]
    assert await router.log() == []


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
async def test_ready_is_503_before_a_generation_serves(
    method: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Alive all the same; other requests are told that nothing serves yet."""
    router = await start(nursery)
    router.router.gateway.active = ActiveGeneration()
    client = await router.connect()

    ready = await ask(client, method=method, target=b"/ready")
    health = await ask(client, method=b"GET", target=b"/health")
    chat = await ask(client, chat_body(model="auto"))

    assert (ready.status, health.status, chat.status) == (503, 200, 503)
    assert ready.body == (b"" if method == b"HEAD" else b'{"status":"not_ready"}')
    assert chat.json() == {
        "error": {
            "type": "server_error",
            "code": "unavailable",
            "message": "The router is not serving.",
            "param": None,
        }
    }


async def test_request_before_a_generation_serves_leaves_a_line(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One line per request that is no probe, the refused ones included."""
    router = await start(nursery)
    router.router.gateway.active = ActiveGeneration()

    await router.ask(chat_body(model="auto"))

    [line] = await router.log()
    assert (line["response_code"], line["path"]) == (503, "/v1/chat/completions")


async def test_ready_is_503_while_draining(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Seen on a connection whose request had begun to arrive when the drain began."""
    router = await start(nursery)
    clients = [await router.connect() for _ in range(2)]
    await clients[0].send(b"GET /ready HTTP/1.1\r\nHost: r\r\n")
    await clients[1].send(b"GET /health HTTP/1.1\r\nHost: r\r\n")
    await trio.testing.wait_all_tasks_blocked()

    nursery.start_soon(router.router.server.drain)
    await trio.testing.wait_all_tasks_blocked()
    for client in clients:
        await client.send(b"\r\n")
    ready, health = [await read_answer(client) for client in clients]

    assert (ready.status, ready.body) == (503, b'{"status":"not_ready"}')
    assert (health.status, health.body) == (200, b'{"status":"ok"}')
    assert (ready.line(b"connection"), health.line(b"connection")) == (b"close", b"close")
