"""Uploads on real sockets: every pair of versions, flat memory, and backends that hang up."""

import hashlib
import resource
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from tests.e2e.standalone import start_document, start_standalone, until
from tests.e2e.wire import RawClient, connect
from tests.fakes.backend import BACKEND_HOST
from tests.fakes.h2_backend import OK, H2Backend
from tests.fakes.h2_client import H2Client
from tests.fakes.router import clusters_of, document_of
from tests.gateway.upload_backend import UploadBackend
from tests.gateway.upload_scene import PAIRS, H1Uploader, H2Uploader, Uploader
from vsr.network.epoll import EpollNetwork

PATIENCE_S = 30
MIB = 1024 * 1024
UPLOAD_BYTES = 64 * MIB
KERNEL_BYTES = 16 * MIB
"""More than the kernel takes on the two connections that an upload passes."""
MAX_GROWTH_BYTES = 12 * MIB
PIECE = bytes(range(250)) * 100
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
async def test_every_pair_of_versions_passes_uploads(
    ours: int, theirs: int, nursery: trio.Nursery
) -> None:
    """Declared and not, one behind the other."""
    network = EpollNetwork()
    await nursery.start(network.run)
    backend = UploadBackend(network) if theirs == 1 else H2Backend(network, (OK,))
    await backend.start(nursery)
    version = {1: "1.1", 2: "2"}[theirs]
    ref = f"{{endpoint: '127.0.0.1:{backend.port}', http_version: '{version}'}}"
    model = f"{{name: alpha, reliability: {{replay_bytes: 1000}}, backend_refs: [{ref}]}}"
    router, _, _ = await start_document(nursery, network, document_of(model))
    generation = router.active.current
    assert generation is not None

    with trio.fail_after(PATIENCE_S):
        connection = await network.connect(BACKEND_HOST, router.server.ports["public"])
        client: Uploader = H1Uploader(connection)
        if ours == 2:
            client = H2Uploader(await H2Client(connection).start(nursery), settles_s=0)
        for length in (8 * len(PIECE), None):
            await client.begin(length)
            for _ in range(8):
                await client.put(PIECE)
            await client.finish()
            answer = await client.answer()
            assert (answer.status, answer.is_whole, answer.closes) == (200, True, False)
        connection.close()
        await until(lambda: not clusters_of(generation).connections_in_use)

    calls = backend.seen if isinstance(backend, UploadBackend) else backend.calls
    assert [bytes(call.body) for call in calls] == [PIECE * 8] * 2
    assert len({getattr(call, "connection", 0) for call in calls}) == 1
    if isinstance(backend, UploadBackend):
        assert backend.accepted == 1


class RawBackend:
    """A socket that takes one call and does with it what a test says."""

    def __init__(self) -> None:
        self.sock = trio.socket.socket()
        self.taken = 0

    async def listen(self) -> int:
        """Return the port."""
        await self.sock.bind((BACKEND_HOST, 0))
        self.sock.listen()
        port: int = self.sock.getsockname()[1]
        return port

    async def take(self, stream: trio.SocketStream, size: int) -> "hashlib._Hash":
        """Read a head and so many bytes of its body; return their digest."""
        digest, data = hashlib.sha256(), b""
        while b"\r\n\r\n" not in data:
            data += await stream.receive_some(1)
        while self.taken < size:
            piece = await stream.receive_some(MIB)
            assert piece
            digest.update(piece)
            self.taken += len(piece)
        return digest


async def test_backend_that_reads_slowly_costs_no_memory(nursery: trio.Nursery) -> None:
    """Its client is read no further than buffers go, and goes on where it stood."""
    backend = RawBackend()
    served = await start_standalone(nursery, small_port=await backend.listen())
    sent_bytes, piece = 0, bytes(range(256)) * 256

    async def send(client: RawClient) -> None:
        nonlocal sent_bytes
        for _ in range(UPLOAD_BYTES // len(piece)):
            await client.stream.send_all(piece)
            sent_bytes += len(piece)

    with trio.fail_after(PATIENCE_S), backend.sock, await connect(served.port) as client:
        head = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"
        await client.send(head % UPLOAD_BYTES)
        accepted, _ = await backend.sock.accept()
        before = _resident_bytes()
        nursery.start_soon(send, client)
        stuck_at = await _until_still(lambda: sent_bytes)
        growth_bytes = _resident_bytes() - before
        stream = trio.SocketStream(accepted)
        digest = await backend.take(stream, UPLOAD_BYTES)
        growth_bytes = max(growth_bytes, _resident_bytes() - before)
        await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        answer = await client.answer()
        await until(lambda: not served.clusters.connections_in_use)
        await stream.aclose()

    assert MIB // 16 < stuck_at < KERNEL_BYTES
    assert growth_bytes < MAX_GROWTH_BYTES
    assert answer is not None
    assert (answer.status, backend.taken) == (200, UPLOAD_BYTES)
    expected = hashlib.sha256()
    for _ in range(UPLOAD_BYTES // len(piece)):
        expected.update(piece)
    assert digest.digest() == expected.digest()


async def _until_still(count: Callable[[], int]) -> int:
    last, now = -1, 0
    while last != now or not now:
        last = now
        await trio.sleep(0.2)
        now = count()
    return now


@pytest.mark.parametrize("resets", [True, False])
async def test_backend_that_answers_and_hangs_up_is_heard(
    resets: bool,  # noqa: FBT001  # a parameter of the table
    nursery: trio.Nursery,
) -> None:
    """What it says before it leaves its unread bytes behind is the answer, and not a 503."""
    backend = RawBackend()
    served = await start_standalone(nursery, small_port=await backend.listen())

    with trio.fail_after(PATIENCE_S), backend.sock:
        with await connect(served.port) as client:
            head = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"
            nursery.start_soon(_send_until_closed, client, head % UPLOAD_BYTES)
            accepted, _ = await backend.sock.accept()
            stream = trio.SocketStream(accepted)
            await backend.take(stream, 100_000)
            await stream.send_all(b"HTTP/1.1 413 No\r\ncontent-length: 2\r\n\r\nno")
            if resets:
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            accepted.close()
            answer = await client.answer()
            await until(lambda: not served.clusters.connections_in_use)
        await served.settled()

    assert answer is not None
    assert (answer.status, answer.body) == (413, b"no")
    assert answer.fields["connection"] == "close"


async def _send_until_closed(client: RawClient, head: bytes) -> None:
    await client.send(head)
    while True:
        try:
            await client.stream.send_all(PIECE)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return


@pytest.mark.parametrize("sends_on", [True, False])
async def test_client_that_leaves_its_upload_ends_the_call(
    sends_on: bool,  # noqa: FBT001  # a parameter of the table
    nursery: trio.Nursery,
) -> None:
    """The Router waits for the client, or for a backend that does not read.

    Then nobody could tell of a client that closes in good order: the kernel keeps its end behind
    what there is no room for. Its reset comes through.
    """
    backend = RawBackend()
    served = await start_standalone(nursery, small_port=await backend.listen())

    with trio.fail_after(PATIENCE_S), backend.sock:
        client = await connect(served.port)
        head = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % UPLOAD_BYTES
        await client.send(head + PIECE)
        if sends_on:
            nursery.start_soon(_send_until_closed, client, PIECE)
        accepted, _ = await backend.sock.accept()
        with accepted:
            await accepted.recv(1)
            await trio.sleep(0.2)

            if sends_on:
                client.reset()
            else:
                client.close()
            await until(lambda: served.clusters.connections_in_use == 0, 1)
        await until(lambda: not any(served.held().values()))

    [line] = await served.log_lines()
    assert (line["outcome"], line["cause"]) == ("cancelled", "client_gone")


def _resident_bytes() -> int:
    """Return this process's memory, the Router's, the backends' and the client's together."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()
