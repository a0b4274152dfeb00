"""TLS over connections of the port, against a TLS server that is not ours."""

import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import trio
import trustme

from tests.network.ends import LOCALHOST, PATIENCE_S, eventually, read, read_all
from vsr.network.epoll import EpollNetwork
from vsr.network.memory import MemoryNetwork
from vsr.network.port import Connection, ConnectionBroken, ReceiveTimedOut, TlsFailed
from vsr.network.tls import TlsConnection, _reason_in, start_client_tls

NAME = "backend.example"
Serve = Callable[["trio.SSLStream[trio.SocketStream]"], Awaitable[None]]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Return a certificate authority."""
    return trustme.CA()


@pytest.fixture
def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """Return a client context that trusts it."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@asynccontextmanager
async def dialled(authority: trustme.CA, serve: Serve) -> AsyncIterator[Connection]:
    """Start a TLS server whose connections run `serve`, and connect to it in cleartext."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(NAME).configure_cert(context)
    network = EpollNetwork()

    async def handle(stream: trio.SocketStream) -> None:
        tls = trio.SSLStream(stream, context, server_side=True)
        try:
            await serve(tls)
        except trio.BrokenResourceError:
            pass  # the client is gone
        finally:
            await trio.aclose_forcefully(tls)

    async with trio.open_nursery() as nursery:
        await nursery.start(network.run)
        listeners = await trio.open_tcp_listeners(0, host=LOCALHOST)
        await nursery.start(trio.serve_listeners, handle, listeners)
        port = listeners[0].socket.getsockname()[1]
        with trio.fail_after(4 * PATIENCE_S):
            connection = await network.connect(LOCALHOST, port)
            try:
                yield connection
            finally:
                connection.close()
        assert network.open_sockets == 0
        nursery.cancel_scope.cancel()


async def echo(stream: "trio.SSLStream[trio.SocketStream]") -> None:
    """Send back what comes, and close properly at the end."""
    async for data in stream:
        await stream.send_all(data)
    await stream.aclose()


async def test_bytes_pass_encrypted(authority: trustme.CA, trusting: ssl.SSLContext) -> None:
    """Handshake, there and back, and an idle connection at the end."""
    async with dialled(authority, echo) as connection:
        tls = await start_client_tls(connection, trusting, NAME)

        await tls.send(b"over TLS")
        assert await read(tls, 8) == b"over TLS"
        await tls.send(memoryview(b""))
        await tls.send(memoryview(b"again"))
        assert await read(tls, 5) == b"again"

        assert tls.is_idle()
        assert not tls.is_gone
        assert tls.peer == connection.peer


async def test_wrong_name_fails_the_handshake(
    authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    """The certificate is somebody else's; the reason is OpenSSL's word."""
    async with dialled(authority, echo) as connection:
        with pytest.raises(TlsFailed) as caught:
            await start_client_tls(connection, trusting, "other.example")

        assert caught.value.reason == "CERTIFICATE_VERIFY_FAILED"


async def test_untrusted_authority_fails_the_handshake(authority: trustme.CA) -> None:
    """Nobody vouches for it."""
    async with dialled(authority, echo) as connection:
        with pytest.raises(TlsFailed) as caught:
            await start_client_tls(connection, ssl.create_default_context(), NAME)

        assert caught.value.reason == "CERTIFICATE_VERIFY_FAILED"


async def test_server_that_speaks_no_tls_fails_the_handshake(
    authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    """It answers with something else."""

    async def answer(stream: "trio.SSLStream[trio.SocketStream]") -> None:
        await stream.transport_stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with dialled(authority, answer) as connection:
        with pytest.raises(TlsFailed):
            await start_client_tls(connection, trusting, NAME)


async def test_alert_that_python_has_no_name_for_is_told_in_the_words_of_openssl(
    trusting: ssl.SSLContext,
) -> None:
    """As from a server that speaks none of the protocols that we offer. Source: RFC 7301, 3.2."""
    network = MemoryNetwork()

    async with trio.open_nursery() as nursery:
        await nursery.start(network.run)
        listener = await network.listen(LOCALHOST, 0)
        connection = await network.connect(LOCALHOST, listener.port)
        server = await listener.accept()
        await server.send(bytes.fromhex("15 0303 0002 02 78"))

        with pytest.raises(TlsFailed) as caught:
            await start_client_tls(connection, trusting, NAME)

        nursery.cancel_scope.cancel()
    assert caught.value.reason == "TLSV1_ALERT_NO_APPLICATION_PROTOCOL"


@pytest.mark.parametrize(
    "args",
    [
        (),
        (1,),
        (1, "Hostname mismatch, certificate is not valid for 'private.test'. (_ssl.c:992)"),
        (1, "[SSL] certificate of private.test (_ssl.c:992)"),
    ],
)
def test_reason_never_quotes_anything_else(args: tuple[object, ...]) -> None:
    """Texts may hold names of a certificate; what is not a plain word of OpenSSL is left out."""
    assert _reason_in(ssl.SSLError(*args)) == "handshake failed"


async def test_close_during_the_handshake_fails_it(
    authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    """By end of stream or reset."""

    async def leave(stream: "trio.SSLStream[trio.SocketStream]") -> None:
        await stream.transport_stream.receive_some(10)

    async with dialled(authority, leave) as connection:
        with pytest.raises(TlsFailed):
            await start_client_tls(connection, trusting, NAME)


async def test_handshake_can_be_cancelled(authority: trustme.CA, trusting: ssl.SSLContext) -> None:
    """The connect timeout covers it."""

    async def be_silent(stream: "trio.SSLStream[trio.SocketStream]") -> None:
        await trio.sleep_forever()

    async with dialled(authority, be_silent) as connection:
        with trio.move_on_after(0.05) as scope:
            await start_client_tls(connection, trusting, NAME)

        assert scope.cancelled_caught


async def test_closing_alert_is_the_end_of_stream(
    authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    """A whole answer, however often it is asked for more."""

    async def say_and_close(stream: "trio.SSLStream[trio.SocketStream]") -> None:
        await stream.send_all(b"all of it")
        await stream.aclose()

    async with dialled(authority, say_and_close) as connection:
        tls = await start_client_tls(connection, trusting, NAME)

        assert await read_all(tls) == b"all of it"
        assert await tls.receive() == b""


async def test_end_without_closing_alert_is_a_break(
    authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    """Anybody on the way could have cut the answer; what came before it is still given out."""

    async def say_and_vanish(stream: "trio.SSLStream[trio.SocketStream]") -> None:
        await stream.send_all(b"half of it")
        await stream.transport_stream.aclose()

    async with dialled(authority, say_and_vanish) as connection:
        tls = await start_client_tls(connection, trusting, NAME)

        assert await read(tls, 10) == b"half of it"
        for _ in range(2):
            with pytest.raises(ConnectionBroken):
                await tls.receive()


async def test_departure_is_seen_while_nobody_reads(
    authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    """`on_gone` is the connection's below."""
    leave = trio.Event()

    async def wait_and_leave(stream: "trio.SSLStream[trio.SocketStream]") -> None:
        await stream.do_handshake()
        await leave.wait()

    async with dialled(authority, wait_and_leave) as connection:
        tls = await start_client_tls(connection, trusting, NAME)
        calls: list[str] = []
        tls.on_gone = lambda: calls.append("gone")
        assert tls.on_gone is not None

        leave.set()
        await eventually(lambda: bool(calls))

        assert tls.is_gone
        assert not tls.is_idle()


async def test_large_transfers_cross_each_other(
    authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    """8 MiB there and back at once, in one send."""
    data = os.urandom(4096) * 2048

    async with dialled(authority, echo) as connection:
        tls = await start_client_tls(connection, trusting, NAME)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tls.send, data)
            got = await read(tls, len(data))

    assert got == data


async def test_receive_gives_up_in_time_and_the_connection_lives(
    authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    """As without TLS."""
    async with dialled(authority, echo) as connection:
        tls = await start_client_tls(connection, trusting, NAME)
        await tls.send(b"a")
        await read(tls, 1)

        with pytest.raises(ReceiveTimedOut):
            await tls.receive(until=trio.current_time() + 0.02)
        await tls.send(b"late")

        assert await read(tls, 4) == b"late"


@pytest.mark.parametrize("surplus", ["data", "closing alert"])
async def test_connection_with_unread_records_is_not_idle(
    authority: trustme.CA, trusting: ssl.SSLContext, surplus: str
) -> None:
    """Records that arrived together with the last answer count, although the socket is silent."""

    async def say_more(stream: "trio.SSLStream[trio.SocketStream]") -> None:
        await stream.do_handshake()
        await stream.receive_some(1)
        wire = CollectingStream()
        await send_through(stream, wire, surplus)
        await stream.transport_stream.send_all(bytes(wire.data))
        await trio.sleep_forever()

    async with dialled(authority, say_more) as connection:
        tls = await start_client_tls(connection, trusting, NAME)
        await tls.send(b"?")
        assert await read(tls, 6) == b"answer"

        assert not tls.is_idle()


class CollectingStream:
    """Takes the place of a transport and keeps what is written."""

    def __init__(self) -> None:
        self.data = bytearray()

    async def send_all(self, data: bytes) -> None:
        """Keep `data`."""
        self.data += data


async def send_through(
    stream: "trio.SSLStream[trio.SocketStream]", wire: CollectingStream, surplus: str
) -> None:
    """Write two records that will leave in one segment."""
    real, stream.transport_stream = stream.transport_stream, wire  # type: ignore[assignment]  # a stand-in
    await stream.send_all(b"answer")
    if surplus == "data":
        await stream.send_all(b"surplus")
    else:
        try:
            stream._ssl_object.unwrap()
        except ssl.SSLWantReadError:
            wire.data += stream._outgoing.read()
    stream.transport_stream = real


async def test_close_and_abort_reach_the_connection_below(
    authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    """At once; nothing waits for the peer's alert."""
    for how in (TlsConnection.close, TlsConnection.abort):
        async with dialled(authority, echo) as connection:
            tls = await start_client_tls(connection, trusting, NAME)

            how(tls)

            with pytest.raises(ConnectionBroken):
                await tls.send(b"x")


async def test_half_close_reaches_the_server(
    authority: trustme.CA, trusting: ssl.SSLContext
) -> None:
    """It sees the stream end."""
    ended = trio.Event()

    async def wait_for_end(stream: "trio.SSLStream[trio.SocketStream]") -> None:
        try:
            await stream.receive_some(1)
        finally:
            ended.set()

    async with dialled(authority, wait_for_end) as connection:
        tls = await start_client_tls(connection, trusting, NAME)

        tls.shutdown_send()

        await ended.wait()
