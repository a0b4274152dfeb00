"""Sending a body that comes in pieces, on a connection of its own and on a stream."""

from collections.abc import Callable
from math import inf

import attrs
import h2.events
import pytest
import trio
import trio.testing
from h2.config import H2Configuration
from h2.connection import H2Connection as Library
from hypothesis import given
from hypothesis import strategies as st

from vsr.errors import DeadlineExceeded, UpstreamReset
from vsr.http.framing import RequestHead
from vsr.http.h1_client import ClientConnection, encode_open_request
from vsr.http.h1_server import End, ServerConnection
from vsr.http.h2_client import ClientConnection as H2Http
from vsr.http.h2_head import encode_h2_request
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.network.port import ConnectionBroken
from vsr.network.timers import LazyTimers
from vsr.routing.outcome import TransportFact
from vsr.upstream.h2_connection import H2Connection
from vsr.upstream.h2_stream import H2Stream
from vsr.upstream.pool import PooledConnection, Siblings
from vsr.upstream.upload import send_source

URL = (b"http", b"b.test", b"/v1/files")
cut = st.lists(st.binary(min_size=1, max_size=40), max_size=10)


@attrs.define
class Source:
    """Implements `routing.body.BodySource` over a list."""

    pieces: list[bytes]
    length: int | None = None
    total_at: float = inf
    is_begun: bool = False
    has_ended: bool = False
    failure: Exception | None = None
    gap_s: float = 0.0

    async def read(self) -> bytes:
        """Return the next piece."""
        self.is_begun = True
        await trio.sleep(self.gap_s)
        if self.pieces:
            return self.pieces.pop(0)
        if self.failure is not None:
            raise self.failure
        self.has_ended = True
        return b""

    def on_end(self, tell: Callable[[float], None]) -> None:
        """Tell nobody."""
        del tell


async def dialled(nursery: trio.Nursery) -> tuple[PooledConnection, MemoryConnection]:
    """Return both ends of a connection."""
    network = MemoryNetwork()
    await nursery.start(network.run)
    listener = await network.listen("", 1)
    near = await network.connect("b.test", 1)
    http = ClientConnection()
    http.begin(is_head_request=False)
    return PooledConnection(near, http, Siblings()), await listener.accept()


def head_for(source: Source) -> bytes:
    """Return the head of a request with this body."""
    return encode_open_request(b"POST", URL[2], URL[1], [(b"x", b"y")], source.length)


@given(cut, st.booleans(), st.data())
def test_request_is_what_was_read(
    pieces: list[bytes],
    is_declared: bool,  # noqa: FBT001  # drawn
    data: st.DataObject,
) -> None:
    """In chunks or by a length, and however its bytes arrive, it is one whole request."""
    body = b"".join(pieces)
    source = Source(list(pieces), len(body) if is_declared else None)

    async def send() -> bytes:
        async with trio.open_nursery() as nursery:
            pooled, far = await dialled(nursery)
            await send_source(pooled, head_for(source), source, None)
            assert pooled.fact is TransportFact.REQUEST_WRITTEN
            pooled.close()
            got = b""
            while piece := await far.receive():
                got += piece
            nursery.cancel_scope.cancel()
        return got

    wire = trio.run(send)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=5)))
    http, events = ServerConnection(), []
    for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
        http.feed(wire[start:end])
        while (event := http.next_event()) is not None:
            events.append(event)

    head = events.pop(0)
    assert isinstance(head, RequestHead)
    assert head.length == (len(body) if is_declared else None)
    assert events.pop() is End.REQUEST
    assert b"".join(each for each in events if isinstance(each, bytes)) == body


async def test_head_ends_the_sending(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """An informational one does not; whoever would read the source is not left waiting."""
    source = Source([b"a", b"b", b"c", b"d"], None, gap_s=10)
    pooled, far = await dialled(nursery)

    async def answer() -> None:
        await trio.sleep(15)
        await far.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        await trio.sleep(10)
        await far.send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    nursery.start_soon(answer)
    await send_source(pooled, head_for(source), source, None)

    assert trio.current_time() == 25
    assert source.pieces == [b"c", b"d"]
    assert pooled.http.head is not None
    assert not pooled.is_reusable


async def test_source_that_fails_is_told_of(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its fault is nobody else's."""
    source = Source([b"a"], None, failure=ValueError("from the client"), gap_s=1)
    pooled, _ = await dialled(nursery)

    with pytest.raises(ValueError, match="from the client"):
        await send_source(pooled, head_for(source), source, None)


async def test_answer_counts_more_than_a_source_that_fails(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Where they come at the same time the client is given the answer."""
    pooled, far = await dialled(nursery)

    class Failing(Source):
        async def read(self) -> bytes:
            """Fail just when the backend answers."""
            await trio.sleep(1)
            far.try_send(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            raise ValueError

    source = Failing([])
    await send_source(pooled, head_for(source), source, None)

    assert pooled.http.head is not None
    assert not pooled.is_reusable


async def test_answer_of_a_backend_that_has_hung_up_is_still_read(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The piece that it did not take says nothing of what it said before."""
    pooled, far = await dialled(nursery)

    class Late(Source):
        async def read(self) -> bytes:
            """Return a piece just when the backend answers and leaves."""
            await trio.sleep(1)
            for part in (b"HTTP/1.1 413 No\r\n", b"content-length: 0\r\n", b"\r\n"):
                far.try_send(part)
            far.close()
            return b"too late"

    await send_source(pooled, head_for(Late([])), Late([]), None)

    assert pooled.http.head is not None
    assert pooled.http.head.status == 413
    assert not pooled.is_reusable


@pytest.mark.parametrize("act", ["close", "abort"])
async def test_backend_that_goes_is_a_reset(
    act: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Also while the client is silent."""
    source = Source([b"a"], None, gap_s=10)
    pooled, far = await dialled(nursery)

    async def leave() -> None:
        await trio.sleep(5)
        getattr(far, act)()

    nursery.start_soon(leave)
    with pytest.raises((UpstreamReset, ConnectionBroken)):
        await send_source(pooled, head_for(source), source, None)

    assert trio.current_time() == 5


async def test_backend_that_takes_nothing_is_idle(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Only the wait for the backend counts, not that for the client."""
    source = Source([bytes(40_000)] * 4, 160_000, gap_s=100)
    pooled, far = await dialled(nursery)

    with pytest.raises(DeadlineExceeded) as raised:
        await send_source(pooled, head_for(source), source, 7)

    assert raised.value.stage == "idle"
    assert trio.current_time() == 300 + 7
    assert far.held_bytes >= 65_536


def library() -> Library:
    """Return a server that speaks HTTP/2."""
    server = Library(H2Configuration(client_side=False, header_encoding=None))
    server.initiate_connection()
    return server


@attrs.define
class Served:
    """What an HTTP/2 server has got of one request."""

    server: Library = attrs.field(factory=library)
    client: H2Http = attrs.field(factory=H2Http)
    body: bytearray = attrs.field(factory=bytearray)
    ends: int = 0

    def tell_client(self) -> None:
        """Let the client hear what the server has to say."""
        self.client.feed(self.server.data_to_send(), now=0)
        while self.client.next_event() is not None:
            pass

    def tell_server(self) -> None:
        """Let the server hear what the client has put out."""
        for event in self.server.receive_data(self.client.take_output()):
            if isinstance(event, h2.events.DataReceived):
                self.body += event.data
            self.ends += isinstance(event, h2.events.StreamEnded)

    def put(self, stream_id: int, piece: bytes, credit: int) -> None:
        """Send a piece, the empty one as the end, with so much more room each time it is stuck."""
        left: memoryview | None = memoryview(piece)
        while left is not None and (left or not piece):
            sent = self.client.send_data(stream_id, left, is_last=not piece)
            self.tell_server()
            assert (sent is None) == (not piece)
            left = None if sent is None else left[sent:]
            if sent == 0:
                self.server.increment_flow_control_window(credit, stream_id)
                self.tell_client()


@given(cut, st.integers(0, 60), st.integers(1, 60))
def test_pieces_pass_any_window(pieces: list[bytes], window: int, credit: int) -> None:
    """Frame by frame, an empty end among them: the server gets the body and one end."""
    served = Served()
    served.server.update_settings({4: window})  # SETTINGS_INITIAL_WINDOW_SIZE
    served.tell_client()
    fields = encode_h2_request(b"POST", URL, [], None)
    stream_id = served.client.open(fields, is_head_request=False, has_ended=False)
    served.tell_server()

    for piece in pieces:
        served.put(stream_id, piece, credit)
        assert served.ends == 0
    served.put(stream_id, b"", credit)

    assert (bytes(served.body), served.ends) == (b"".join(pieces), 1)


@attrs.define
class Owner:
    """A connection that has no room."""

    def open(self, stream: H2Stream, fields: object, *, has_ended: bool) -> bool:
        """Take the head, for later."""
        del stream, fields, has_ended
        return False

    def push(self, stream: H2Stream) -> bool:
        """Take nothing."""
        del stream
        return False

    def send_frame(self, stream: H2Stream, data: memoryview, *, is_last: bool) -> int | None:
        """Put all of it out."""
        del stream
        return None if is_last else len(data)

    def give_credit(self, stream: H2Stream, size: int) -> None:
        """Do nothing."""

    def leave(self, stream: H2Stream) -> None:
        """Do nothing."""


async def test_piece_waits_for_its_own_turn(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """That the head went out says nothing of a piece that is still waiting for a window."""
    stream = H2Stream(Owner(), LazyTimers())
    stream.start([])
    done: list[bytes] = []

    async def put() -> None:
        await stream.put(b"piece")
        done.append(b"piece")

    nursery.start_soon(put)
    await trio.testing.wait_all_tasks_blocked()
    stream.went_out()
    await trio.testing.wait_all_tasks_blocked()
    assert done == []

    stream.send_frame()
    stream.went_out()
    await trio.testing.wait_all_tasks_blocked()
    assert done == [b"piece"]


async def test_upload_on_a_busy_connection_loses_nothing(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The head waits behind another call's body, the first piece behind a window too small."""
    pooled, far = await dialled(nursery)
    near = pooled.connection
    server, bodies = library(), {1: bytearray(), 3: bytearray()}
    await far.send(server.data_to_send())
    connection = H2Connection(near, LazyTimers(), lambda _: None)
    await connection.shake_hands()
    nursery.start_soon(connection.run)
    first, upload = connection.lend(), connection.lend()
    first.begin(is_head_request=False)
    assert not first.ask(encode_h2_request(b"POST", URL, [], 65_500), bytes(65_500))
    pieces = [bytes([each]) * 1000 for each in range(20)]

    async def send() -> None:
        upload.begin(is_head_request=False)
        upload.start(encode_h2_request(b"POST", URL, [], None))
        for piece in [*pieces, b""]:
            await upload.put(piece)

    nursery.start_soon(send)
    await trio.testing.wait_all_tasks_blocked()
    await _serve_until_end(server, far, bodies)
    first.close()
    upload.close()

    assert bodies[3] == b"".join(pieces)
    assert len(bodies[1]) == 65_500
    nursery.cancel_scope.cancel()


async def _serve_until_end(
    server: Library, far: MemoryConnection, bodies: dict[int, bytearray]
) -> None:
    """Take what comes, and give room for more, until the second request is whole."""
    has_ended = False
    while not has_ended:
        events = server.receive_data(await far.receive())
        await trio.testing.wait_all_tasks_blocked()
        for event in events:
            if isinstance(event, h2.events.DataReceived):
                bodies[event.stream_id] += event.data
                server.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            has_ended |= isinstance(event, h2.events.StreamEnded) and event.stream_id == 3
        if data := server.data_to_send():
            await far.send(data)
