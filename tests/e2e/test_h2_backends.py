"""HTTP/2 to backends on real sockets: in clear text, over TLS with ALPN, and another's server."""

import shutil
import ssl
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import attrs
import pytest
import trio
import trustme

from tests.demo.raw_client import AnswerEnd, Got, ask, chat_body
from tests.e2e.process import free_port
from tests.e2e.standalone import start_document, until
from tests.fakes.backend import BACKEND_HOST
from tests.fakes.h2_backend import OK, Act, H2Backend, Head, Play, streaming
from tests.fakes.router import clusters_of, document_of
from tests.upstream.raw_backend import reply
from vsr.compose.router import Router
from vsr.network.epoll import EpollNetwork
from vsr.network.port import ConnectFailed, Connection, Listener, NetworkError
from vsr.network.tls import start_server_tls
from vsr.upstream.clusters import Clusters
from vsr.upstream.tls_contexts import _system_context

PATIENCE_S = 20
BODY, STREAM = chat_body(model="auto"), chat_body(model="auto", stream=True)
LARGE = chat_body("x" * 2_000_000, model="auto")
ANSWER = b'{"id":"x","choices":[]}'


@pytest.fixture
def certified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[trustme.CA]:
    """Return an authority that the Router trusts as it trusts the system's."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    _system_context.cache_clear()
    yield authority
    _system_context.cache_clear()


def server_context(authority: trustme.CA, *alpn: str) -> ssl.SSLContext:
    """Return a server's context that chooses from these protocols; none: it knows no ALPN."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context


@attrs.define(eq=False)
class Running:
    """A Router on real sockets."""

    network: EpollNetwork
    router: Router

    @property
    def clusters(self) -> Clusters:
        """Return its clusters."""
        generation = self.router.active.current
        assert generation is not None
        return clusters_of(generation)

    async def connect(self) -> Connection:
        """Open a client's connection."""
        return await self.network.connect(BACKEND_HOST, self.router.server.ports["public"])

    async def ask(self, body: bytes = BODY) -> Got:
        """Make one request and read its answer."""
        client = await self.connect()
        with trio.fail_after(PATIENCE_S):
            got = await ask(client, body)
        client.close()
        return got

    async def settled(self) -> None:
        """Wait until no call is left."""
        await until(lambda: not self.clusters.connections_in_use)


async def start(
    nursery: trio.Nursery, network: EpollNetwork, port: int, version: str, *, tls: bool
) -> Running:
    """Start a Router over a backend."""
    url = f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
    ref = f"{{base_url: '{url}', http_version: '{version}'}}"
    reliability = "{retry_count: 3, max_retries: 64, retry_on: refused-stream}"
    model = f"{{name: alpha, reliability: {reliability}, backend_refs: [{ref}]}}"
    router, _, _ = await start_document(nursery, network, document_of(model))
    return Running(network, router)


async def start_h2(
    nursery: trio.Nursery,
    *plays: Play,
    version: str = "2",
    tls: ssl.SSLContext | None = None,
    is_early: bool = False,
) -> tuple[Running, H2Backend]:
    """Start a Router and a backend that speaks HTTP/2."""
    network = EpollNetwork()
    await nursery.start(network.run)
    backend = await H2Backend(network, plays, tls=tls, is_early=is_early).start(nursery)
    running = await start(nursery, network, backend.port, version, tls=tls is not None)
    return running, backend


@pytest.mark.parametrize("kind", ["clear", "tls", "auto"])
async def test_calls_of_every_kind_share_a_connection(
    kind: str, certified: trustme.CA, nursery: trio.Nursery
) -> None:
    """Whole and streamed, small and large, at a time; in clear text and as agreed over TLS."""
    running, backend = await start_h2(
        nursery,
        (Head(), b"y" * 1_000_000),
        OK,
        streaming(0.01, 0.01),
        OK,
        version="auto" if kind == "auto" else "2",
        tls=None if kind == "clear" else server_context(certified, "h2", "http/1.1"),
    )

    first = await running.ask()
    large = await running.ask(LARGE)
    streamed = await running.ask(STREAM)
    rest: list[Got] = []

    async def one() -> None:
        rest.append(await running.ask())

    async with trio.open_nursery() as clients:
        for _ in range(30):
            clients.start_soon(one)

    assert (len(first.body), large.status) == (1_000_000, 200)
    assert streamed.body.endswith(b"[DONE]\n\n")
    assert [(got.status, got.end) for got in rest] == [(200, AnswerEnd.WHOLE)] * 30
    assert len(backend.sessions) == 1
    assert backend.calls[0].field(b":scheme") == (b"http" if kind == "clear" else b"https")
    assert len(backend.calls[1].body) > 2_000_000
    await running.settled()
    assert running.clusters.idle_connections == 1


@pytest.mark.parametrize("tls", [False, True])
async def test_leaving_client_resets_its_stream_at_once(
    tls: bool,  # noqa: FBT001  # a column
    certified: trustme.CA,
    nursery: trio.Nursery,
) -> None:
    """Within 50 ms; a large request that the backend does not read included."""
    context = server_context(certified, "h2") if tls else None
    running, backend = await start_h2(nursery, (Act.HANG,), tls=context, is_early=True)
    clients = []
    for body in (BODY, LARGE):
        client = await running.connect()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: r\r\ncontent-length: %d\r\n\r\n"
        await client.send(head % len(body) + body)
        clients.append(client)
    await until(lambda: len(backend.calls) == 2)

    sessions = backend.open_sessions
    left_at = trio.current_time()
    for client in clients:
        client.abort()
    await until(lambda: all(call.reset is not None for call in backend.calls))

    assert trio.current_time() - left_at < 1, "a busy machine"
    assert {call.reset for call in backend.calls} == {8}
    assert backend.open_sessions == sessions
    await running.settled()


@attrs.define(eq=False)
class Http1Backend:
    """A backend that speaks HTTP/1.1 over TLS."""

    context: ssl.SSLContext
    asked: int = 0
    accepted: int = 0
    port: int = 0

    async def start(self, nursery: trio.Nursery, network: EpollNetwork) -> "Http1Backend":
        """Listen, and serve until `nursery` is cancelled."""
        listener = await network.listen(BACKEND_HOST, 0)
        self.port = listener.port
        nursery.start_soon(self._accept, nursery, listener)
        return self

    async def _accept(self, nursery: trio.Nursery, listener: Listener) -> None:
        try:
            while True:
                nursery.start_soon(self._serve, await listener.accept())
        finally:
            listener.close()

    async def _serve(self, connection: Connection) -> None:
        with closing(connection), suppress(NetworkError):
            tls = await start_server_tls(connection, self.context)
            self.accepted += 1
            while data := await tls.receive():
                if data.startswith(b"POST"):
                    self.asked += 1
                    await tls.send(reply(200, ANSWER))


@pytest.mark.parametrize("alpn", [(), ("http/1.1",)], ids=["no ALPN", "http/1.1"])
async def test_auto_takes_http_1_where_the_backend_chooses_it(
    alpn: tuple[str, ...], certified: trustme.CA, nursery: trio.Nursery
) -> None:
    """A connection per call then, kept and used again; none is dialled in vain."""
    network = EpollNetwork()
    await nursery.start(network.run)
    backend = Http1Backend(server_context(certified, *alpn))
    await backend.start(nursery, network)
    running = await start(nursery, network, backend.port, "auto", tls=True)
    statuses: list[int] = []

    async def one() -> None:
        statuses.append((await running.ask()).status)

    async with trio.open_nursery() as clients:
        for _ in range(5):
            clients.start_soon(one)
    at_once = backend.accepted
    for _ in range(5):
        await one()

    assert statuses == [200] * 10
    assert at_once == backend.accepted <= 5
    await running.settled()
    assert running.clusters.idle_connections == at_once


@pytest.mark.parametrize("alpn", [(), ("http/1.1",)], ids=["no ALPN", "http/1.1"])
async def test_backend_that_does_not_agree_on_http2_is_a_failed_connection(
    alpn: tuple[str, ...], certified: trustme.CA, nursery: trio.Nursery
) -> None:
    """`"2"` over TLS needs ALPN `h2`; nothing is sent to who chose something else."""
    network = EpollNetwork()
    await nursery.start(network.run)
    backend = Http1Backend(server_context(certified, *alpn))
    await backend.start(nursery, network)
    running = await start(nursery, network, backend.port, "2", tls=True)

    got = await running.ask()

    assert got.status == 503
    assert got.body.endswith(b"TLS_error:|NO_APPLICATION_PROTOCOL:TLS_error_end")
    assert backend.asked == 0


_NGINX = """\
daemon off; master_process off; worker_processes 1; pid {folder}/pid; error_log {folder}/errors;
events {{ worker_connections 256; }}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder};
  fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  keepalive_requests 50; http2_max_concurrent_streams 16; client_max_body_size 8m;
  server {{
    listen 127.0.0.1:{clear} http2;
    listen 127.0.0.1:{tls} ssl http2;
    ssl_certificate {folder}/tls.crt; ssl_certificate_key {folder}/tls.key;
    location = /v1/chat/completions {{ default_type application/json; return 200 '{answer}'; }}
    location / {{ root {folder}; }}
  }}
}}
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
@pytest.mark.parametrize("tls", [False, True])
async def test_nginx_serves_every_call(
    tls: bool,  # noqa: FBT001  # a column
    certified: trustme.CA,
    tmp_path: Path,
    nursery: trio.Nursery,
) -> None:
    """It says GOAWAY behind every 50th request of a connection and takes 16 at a time."""
    issued = certified.issue_cert("localhost")
    issued.private_key_pem.write_to_path(str(tmp_path / "tls.key"))
    (tmp_path / "tls.crt").write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    (tmp_path / "large.bin").write_bytes(b"z" * 5_000_000)
    ports = {"clear": free_port(), "tls": free_port()}
    config = _NGINX.format(folder=tmp_path, answer=ANSWER.decode(), **ports)
    (tmp_path / "nginx.conf").write_text(config)
    command = ["nginx", "-c", str(tmp_path / "nginx.conf"), "-p", str(tmp_path)]
    network = EpollNetwork()
    await nursery.start(network.run)
    process = await nursery.start(partial(trio.run_process, command, check=False))
    await _listens(network, ports["clear"])
    running = await start(nursery, network, ports["tls" if tls else "clear"], "2", tls=tls)
    answers: list[tuple[int, bytes]] = []

    async def some() -> None:
        for _ in range(20):
            got = await running.ask()
            answers.append((got.status, got.body))

    async with trio.open_nursery() as clients:
        for _ in range(40):
            clients.start_soon(some)
    large = await running.ask(LARGE)
    client = await running.connect()
    file = await ask(client, target=b"/large.bin", method=b"GET")
    client.close()
    await running.settled()
    process.terminate()

    assert answers == [(200, ANSWER)] * 800
    assert large.status == 200
    assert (file.status, len(file.body)) == (200, 5_000_000)


async def _listens(network: EpollNetwork, port: int) -> None:
    """Wait until another process does."""
    with trio.fail_after(PATIENCE_S):
        while True:
            with suppress(ConnectFailed):
                (await network.connect(BACKEND_HOST, port)).close()
                return
            await trio.sleep(0.02)
