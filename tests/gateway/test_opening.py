"""Which HTTP version a connection gets: by its first bytes, or by what TLS agreed on."""

import ssl
import sys
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing
import trustme

from tests.demo.raw_client import AnswerEnd, ask, read_answer
from tests.fakes.h2_client import H2Client
from tests.fakes.router import ROUTER_PORT, RunningRouter
from tests.gateway.h2_running import IDLE_S, SOON_S, STREAM, WHOLE, start
from vsr.demo.script import Script
from vsr.demo.server import CallEnd, DemoModel
from vsr.gateway.connection import HEAD_TIMEOUT_S
from vsr.gateway.serve import Server
from vsr.http.h2_frames import PREFACE, ErrorCode
from vsr.network.port import Connection, ConnectionBroken
from vsr.network.tls import TlsConnection, start_client_tls
from vsr.network.tls_server import HANDSHAKE_TIMEOUT_S, ServerCertificate
from vsr.resources.listener import Listener

NAME = "router.example"
TLS_PORT = ROUTER_PORT + 1


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Return a certificate authority."""
    return trustme.CA()


def client_context(authority: trustme.CA, *protocols: str) -> ssl.SSLContext:
    """Return a client context that offers `protocols`."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


def write_pair(authority: trustme.CA, folder: Path) -> tuple[Path, Path]:
    """Write a certificate chain and its key; return their files."""
    issued = authority.issue_cert(NAME)
    chain, key = folder / "tls.crt", folder / "tls.key"
    chain.write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    return chain, key


@attrs.define
class TlsRouter:
    """A Router with a TLS listener beside the one in clear text."""

    router: RunningRouter
    backend: DemoModel
    server: Server

    async def dial(self) -> Connection:
        """Open a connection that is not encrypted yet."""
        return await self.router.network.connect("router", TLS_PORT)


async def start_tls(
    nursery: trio.Nursery, authority: trustme.CA, folder: Path, script: Script | None = None
) -> TlsRouter:
    """Start it."""
    router, backend = await start(nursery, script)
    chain, key = write_pair(authority, folder)
    certificate = ServerCertificate("http", chain, key)
    server = Server(router.network, router.router.gateway, {"http": certificate})
    await server.bind([Listener("http", "127.0.0.1", TLS_PORT, timeout_s=float(IDLE_S))])
    await nursery.start(server.run)
    return TlsRouter(router, backend, server)


@pytest.mark.parametrize("cut", [1, 2, 13, 23])
async def test_preface_is_recognised_in_pieces(
    cut: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its beginning alone could be a request's."""
    router, _ = await start(nursery)
    connection = await router.connect()
    await connection.send(PREFACE[:cut])
    await trio.sleep(1)

    client = H2Client(connection)
    client.preface = PREFACE[cut:]
    await client.start(nursery)

    assert (await client.ask(WHOLE)).status == 200


@pytest.mark.parametrize("cut", [1, 2, 3, 20])
async def test_request_is_recognised_in_pieces(
    cut: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """`P` begins most requests, and the preface too."""
    router, _ = await start(nursery)
    connection = await router.connect()
    request = b"PROPFIND /x HTTP/1.1\r\nHost: router\r\nContent-Length: 3\r\n\r\nabc"

    await connection.send(request[:cut])
    await trio.sleep(1)
    await connection.send(request[cut:])
    got = await read_answer(connection)

    assert got.status == 200


async def test_almost_a_preface_is_refused_as_a_request(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """No client means that; it gets an answer that it can read."""
    router, _ = await start(nursery)
    connection = await router.connect()

    await connection.send(b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n")
    got = await read_answer(connection)

    assert 400 <= got.status <= 505
    assert got.end is AnswerEnd.WHOLE


async def test_request_behind_a_preface_is_none(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Who began with HTTP/2 goes on with it; nothing is served that one party does not see."""
    router, backend = await start(nursery)
    client = H2Client(await router.connect(), preface=PREFACE)
    await client.start(nursery)

    await client.send_bytes(b"GET /smuggled HTTP/1.1\r\nHost: r\r\n\r\n")
    await client.closed.wait()

    assert client.goaways == [(0, ErrorCode.FRAME_SIZE_ERROR)]
    assert backend.seen == []


async def test_client_that_says_nothing_is_closed_after_the_idle_limit(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Before its first byte as between requests."""
    router, _ = await start(nursery)
    connection = await router.connect()

    assert await connection.receive() == b""
    assert trio.current_time() == pytest.approx(IDLE_S)
    assert router.router.server.open_connections == 0


async def test_beginning_of_a_preface_is_not_waited_for_long(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It is a head that does not arrive in time."""
    router, _ = await start(nursery)
    connection = await router.connect()

    await connection.send(b"P")
    got = await read_answer(connection)

    assert got.status == 408
    assert trio.current_time() <= 2 * HEAD_TIMEOUT_S


@pytest.mark.parametrize("offered", [(), ("http/1.1",), ("h3", "http/1.1")])
async def test_tls_without_h2_speaks_http1(
    offered: tuple[str, ...],
    authority: trustme.CA,
    tmp_path: Path,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Whole and streamed, several on a connection; the backend is told of `https`."""
    running = await start_tls(nursery, authority, tmp_path)
    tls = await start_client_tls(await running.dial(), client_context(authority, *offered), NAME)

    first, second = await ask(tls, WHOLE), await ask(tls, STREAM)

    assert (first.status, second.status) == (200, 200)
    assert second.body.endswith(b"data: [DONE]\n\n")
    assert running.backend.seen[0].headers.get(b"x-forwarded-proto") == b"https"


async def test_tls_with_h2_speaks_http2(
    authority: trustme.CA,
    tmp_path: Path,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Streams side by side; a reset and a lost connection end their calls as in clear text."""
    script = Script(chunks=10, chunk_interval_s=1)
    running = await start_tls(nursery, authority, tmp_path, script)
    tls = await start_client_tls(
        await running.dial(), client_context(authority, "h2", "http/1.1"), NAME
    )
    client = await H2Client(tls).start(nursery)

    answers = [await client.request(STREAM) for _ in range(20)]
    for answer in answers:
        await answer.done.wait()
    took_s = trio.current_time()
    await client.request(STREAM)
    await trio.sleep(2)
    tls.close()
    await trio.sleep(SOON_S)

    assert tls.application_protocol == "h2"
    assert all(answer.is_whole for answer in answers)
    assert took_s == pytest.approx(12, abs=2)
    assert running.backend.calls[-1].end is CallEnd.PEER_GONE
    assert running.backend.seen[0].headers.get(b"x-forwarded-proto") == b"https"
    assert running.server.open_connections == 0
    assert await running.router.held() == (0, 0)


async def test_large_bodies_cross_over_tls(
    authority: trustme.CA,
    tmp_path: Path,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Reading and writing at once on one encrypted connection."""
    script = Script(chunks=2000, piece_bytes=1000)
    running = await start_tls(nursery, authority, tmp_path, script)
    tls = await start_client_tls(await running.dial(), client_context(authority, "h2"), NAME)
    client = await H2Client(tls).start(nursery)

    answers = [await client.request(STREAM) for _ in range(3)]
    for answer in answers:
        await answer.done.wait()

    assert [answer.body.count(b"data: ") for answer in answers] == [2003] * 3


async def test_end_of_a_tls_answer_is_told(
    authority: trustme.CA,
    tmp_path: Path,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Without the closing alert a client can't tell the end from a cut."""
    running = await start_tls(nursery, authority, tmp_path)
    tls = await start_client_tls(await running.dial(), client_context(authority), NAME)

    await tls.send(b"GET /health HTTP/1.0\r\n\r\n")
    data = b""
    while piece := await tls.receive():
        data += piece

    assert data.endswith(b'{"status":"ok"}')


@pytest.mark.parametrize("first", [b"", b"\x16\x03\x01"])
async def test_handshake_is_not_waited_for_long(
    first: bytes,
    authority: trustme.CA,
    tmp_path: Path,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """10 s, whatever part of it has arrived."""
    running = await start_tls(nursery, authority, tmp_path)
    connection = await running.dial()
    await connection.send(first)

    assert await connection.receive() == b""
    assert trio.current_time() == pytest.approx(HANDSHAKE_TIMEOUT_S)
    assert running.server.open_connections == 0


async def test_clear_text_on_a_tls_listener_is_closed(
    authority: trustme.CA,
    tmp_path: Path,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """At once; nothing is served without encryption."""
    running = await start_tls(nursery, authority, tmp_path)
    connection = await running.dial()

    await connection.send(b"GET /health HTTP/1.1\r\nHost: r\r\n\r\n")
    data = b""
    try:
        while piece := await connection.receive():
            data += piece
    except ConnectionBroken:
        pass

    assert b"status" not in data
    assert trio.current_time() == 0
    assert running.server.open_connections == 0


async def test_drain_closes_a_handshake_under_way(
    authority: trustme.CA,
    tmp_path: Path,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Nothing has been asked for."""
    running = await start_tls(nursery, authority, tmp_path)
    connection = await running.dial()
    await trio.testing.wait_all_tasks_blocked()

    await running.server.drain()

    assert connection.is_gone
    assert trio.current_time() == 0


async def test_new_certificate_serves_new_connections(
    authority: trustme.CA,
    tmp_path: Path,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Without a restart; a connection that is open goes on."""
    running = await start_tls(nursery, authority, tmp_path)
    context = client_context(authority)
    old = await start_client_tls(await running.dial(), context, NAME)
    await ask(old, WHOLE)
    other_authority = trustme.CA()

    write_pair(other_authority, tmp_path)
    await trio.sleep(2)
    new = await start_client_tls(await running.dial(), client_context(other_authority), NAME)

    assert (await ask(new, WHOLE)).status == 200
    assert (await ask(old, WHOLE)).status == 200
    assert isinstance(new, TlsConnection)


async def test_http2_is_loaded_behind_the_start() -> None:
    """Loading it is a twentieth of the start, and `load_http2` runs once the Router is ready."""
    code = "import sys, vsr.compose.process; print(sorted({'h2', 'hpack'} & set(sys.modules)))"

    found = await trio.run_process([sys.executable, "-c", code], capture_stdout=True)

    assert found.stdout == b"[]\n"
