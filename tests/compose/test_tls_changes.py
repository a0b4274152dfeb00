"""Listeners that begin or cease to speak TLS while clients are served."""

import ssl
from math import inf
from pathlib import Path

import pytest
import trio
import trio.testing
import trustme

from tests.compose.world import SLOW, World, start_world, version_of, with_setting
from tests.demo.raw_client import Got, ask, chat_body
from tests.faults.moments import request_of
from tests.network.ends import read_all
from tests.upstream.scenes import OK
from vsr.gateway.listener_server import LAST_REQUEST_S
from vsr.network.port import Connection
from vsr.network.tls import start_client_tls


@pytest.fixture
async def world(nursery: trio.Nursery) -> World:
    """Return one that serves version 1."""
    return await start_world(nursery)


@pytest.fixture
def tls(tmp_path: Path) -> str:
    """Return the setting of a listener with a certificate."""
    issued = trustme.CA().issue_cert("router")
    (tmp_path / "chain.pem").write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
    (tmp_path / "key.pem").write_bytes(issued.private_key_pem.bytes())
    return f"tls: {{cert_file: {tmp_path}/chain.pem, key_file: {tmp_path}/key.pem}}"


async def serve(clock: trio.testing.MockClock, world: World, document: str) -> None:
    """Serve another document; no time passes while a thread loads certificates."""
    clock.autojump_threshold = inf
    await world.serve(document)
    clock.autojump_threshold = 0


async def shake_hands(world: World) -> Connection:
    """Connect by TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return await start_client_tls(await world.running.connect(), context, "router")


async def test_tls_comes_and_goes(
    tls: str, world: World, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Open connections go on as they began, to their last answer; new ones do as is said now."""
    world.backend.plays = [SLOW, OK]
    under_way = await world.running.connect()
    await under_way.send(request_of(chat_body(model="small")))
    silent = await world.running.connect()
    await trio.testing.wait_all_tasks_blocked()

    await serve(autojump_clock, world, with_setting(world, tls))
    encrypted = [await shake_hands(world) for _ in range(2)]
    clear = await ask(silent, chat_body(model="small"))
    first = await ask(encrypted[0], chat_body(model="small"))
    await serve(autojump_clock, world, world.document())
    last = await ask(encrypted[1], chat_body(model="small"))
    after = await world.ask()
    await trio.sleep(6)

    answers = [first, clear, last, after]
    assert [(got.status, version_of(got)) for got in answers] == [
        (200, b"2"),
        (200, b"2"),
        (200, b"3"),
        (200, b"3"),
    ]
    assert [got.line(b"connection") for got in answers] == [b"", b"close", b"close", b""]
    raw = await read_all(under_way)
    assert raw.startswith(b"HTTP/1.1 200")
    assert b"x-vsr-config-version: 1" in raw.lower()


async def test_client_that_waits_while_tls_comes_is_served_as_it_connected(
    tls: str, world: World, autojump_clock: trio.testing.MockClock
) -> None:
    """Its request is on its way, in clear text."""
    await serve(autojump_clock, world, with_setting(world, "max_connections: 1"))
    first, waiting = await world.running.connect(), await world.running.connect()
    await waiting.send(request_of(chat_body(model="small")))
    await trio.testing.wait_all_tasks_blocked()

    await serve(autojump_clock, world, with_setting(world, tls))
    raw = await read_all(waiting)

    assert raw.startswith(b"HTTP/1.1 200")
    first.close()


async def test_handshake_under_way_ends_when_its_listener_does(
    tls: str, world: World, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A client that has begun it is not cut off, and has its request."""
    await serve(autojump_clock, world, with_setting(world, tls))
    got: list[Got] = []

    async def be_slow() -> None:
        connection = await world.running.connect()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        await trio.sleep(LAST_REQUEST_S + 1)
        encrypted = await start_client_tls(connection, context, "router")
        got.append(await ask(encrypted, chat_body(model="small")))

    nursery.start_soon(be_slow)
    await trio.testing.wait_all_tasks_blocked()
    await serve(
        autojump_clock, world, with_setting(world, tls).replace("name: main,", "name: other,")
    )
    await trio.sleep(LAST_REQUEST_S + 2)

    assert [(each.status, each.line(b"connection")) for each in got] == [(200, b"close")]
