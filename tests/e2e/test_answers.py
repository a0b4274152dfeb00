"""What backends answer, well or badly framed: what the client gets, and that nothing leaks over."""

import gzip
from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest
import trio

from tests.e2e.corpus import get
from tests.e2e.standalone import Standalone, start_standalone
from tests.e2e.wire import Answer, BrokenAnswer, RawClient, chat, connect, post
from vsr.demo.faults import Fault
from vsr.demo.script import Script

PATIENCE_S = 10
TEXT = "Grüße, 世界 🌍"
CHAT = post(chat(TEXT))
STREAM = post(chat(TEXT, stream=True))
TERMINATION = "connection termination"


@pytest.fixture
def script() -> Script:
    """Return how the backends behave; tests override it by parametrizing."""
    return Script()


@pytest.fixture
async def served(nursery: trio.Nursery, script: Script) -> Standalone:
    """Serve."""
    return await start_standalone(nursery, script)


@pytest.fixture
async def client(served: Standalone) -> AsyncIterator[RawClient]:
    """Return a connected client."""
    with trio.fail_after(PATIENCE_S), await connect(served.port) as client:
        yield client


def _name(value: object) -> str | None:
    """Return the test id of a script: its faults."""
    if not isinstance(value, Script):
        return None
    return "-".join(map(str, value.faults or (value.fault,)))


either_way = pytest.mark.parametrize("request_bytes", [CHAT, STREAM], ids=["buffered", "stream"])


def _once(*faults: Fault | int) -> Script:
    """Return a script whose faults happen once each; later calls are served well."""
    return Script(faults=faults)


@either_way
@pytest.mark.parametrize(
    ("script", "status", "reason"),
    [
        (_once(Fault.RESET_BEFORE_HEAD), 503, TERMINATION),
        (_once(Fault.CLOSE_BEFORE_HEAD), 503, TERMINATION),
        (_once(Fault.RESET_AFTER_HEAD), 502, "reset inside the response body"),
        (_once(Fault.CLOSE_AFTER_HEAD), 502, "closed inside the response body"),
        (_once(Fault.LENGTH_TOO_LONG), 502, "closed inside the response body"),
        (_once(Fault.BAD_STATUS_LINE), 502, "malformed HTTP response"),
        (_once(Fault.LENGTH_AND_CHUNKED), 502, "malformed HTTP response"),
        (_once(Fault.BAD_CHUNK_SIZE), 502, "malformed HTTP response"),
        (_once(Fault.FOLDED_FIELD), 502, "malformed HTTP response"),
        (_once(Fault.OVERSIZED_HEAD), 502, "head is too long"),
    ],
    ids=_name,
)
async def test_broken_answer_is_a_local_reply(
    client: RawClient, request_bytes: bytes, status: int, reason: str
) -> None:
    """Its text says why, nothing of the answer passes, and the connection serves on."""
    await client.send(request_bytes)
    broken = await _answer(client)
    await client.send(CHAT)
    after = await _answer(client)

    assert broken.status == status
    assert broken.fields["content-type"] == "text/plain"
    assert reason in broken.body.decode()
    assert after.status == 200
    assert TEXT in after.body.decode()


@either_way
@pytest.mark.parametrize(
    ("script", "backend_connections"),
    [
        (_once(Fault.INFORMATIONAL), 1),
        (_once(Fault.TRICKLE), 1),
        (_once(Fault.CONNECTION_CLOSE), 2),
        (_once(Fault.STALE_KEEP_ALIVE), 2),
        (_once(Fault.UNTIL_CLOSE), 2),
        (_once(Fault.LENGTH_TOO_SHORT), 2),
    ],
    ids=_name,
)
async def test_unusual_answer_passes(
    served: Standalone, client: RawClient, request_bytes: bytes, backend_connections: int
) -> None:
    """It is the same as a plain one, and only a sound backend connection is used again."""
    await client.send(request_bytes)
    unusual = await _answer(client)
    await client.send(request_bytes)
    plain = await _answer(client)

    assert unusual.status == plain.status == 200
    assert unusual.body == plain.body
    assert TEXT in plain.body.decode() or b"data: [DONE]" in plain.body
    assert served.small.accepted_connections == backend_connections


@pytest.mark.parametrize("script", [_once(Fault.REFUSE_BODY)], ids=_name)
async def test_answer_to_an_unread_body_passes(served: Standalone, client: RawClient) -> None:
    """The backend's refusal reaches the client, which can go on."""
    await client.send(post(chat("x" * 100_000)))
    refused = await _answer(client)
    await client.send(CHAT)
    after = await _answer(client)

    assert (refused.status, after.status) == (413, 200)
    assert refused.fields["x-demo-model"] == "small"
    assert served.small.accepted_connections == 2


@pytest.mark.parametrize("script", [_once(Fault.REFUSE_BODY)], ids=_name)
async def test_answer_to_a_large_unread_body_passes_at_once(client: RawClient) -> None:
    """The Router stops sending what the backend has refused. Source: RFC 9112 section 9.5."""
    await client.send(post(chat("x" * 8_000_000)))

    with trio.fail_after(1):
        refused = await _answer(client)

    assert refused.status == 413


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize(
    "script", [_once(f) for f in (Fault.DROP_MIDSTREAM, Fault.RESET_MIDSTREAM)]
)
async def test_stream_that_breaks_off_is_broken_for_the_client(
    client: RawClient, version: bytes
) -> None:
    """It can't be taken for whole, not even where a close is what ends it."""
    await client.send(STREAM.replace(b"HTTP/1.1", b"HTTP/" + version))

    with pytest.raises(BrokenAnswer):
        await client.answer()


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
@pytest.mark.parametrize(
    "script",
    [
        Script(chunks=1000, piece_bytes=1000, fault=fault)
        for fault in (Fault.DROP_MIDSTREAM, Fault.RESET_MIDSTREAM, Fault.LENGTH_TOO_LONG)
    ],
    ids=_name,
)
async def test_long_answer_that_breaks_off_is_broken_for_the_client(
    client: RawClient, version: bytes
) -> None:
    """So is one with a declared length, of which too little comes."""
    await client.send(CHAT.replace(b"HTTP/1.1", b"HTTP/" + version))

    with pytest.raises(BrokenAnswer):
        await client.answer()


@pytest.mark.parametrize("script", [_once(204, 304, 205, 200)])
async def test_answers_without_a_body_leave_the_connection_in_step(
    served: Standalone, client: RawClient
) -> None:
    """204, 304 and answers to HEAD have no body, whatever their fields say."""
    got = []
    for _ in range(4):
        await client.send(CHAT)
        got.append((await _answer(client)).status)
    await client.send(get(b"/x").replace(b"GET", b"HEAD", 1))
    head = await client.answer(is_head=True)
    await client.send(CHAT)
    after = await _answer(client)

    assert got == [204, 304, 205, 200]
    assert head is not None
    assert (head.status, int(head.fields["content-length"]) > 0) == (200, True)
    assert TEXT in after.body.decode()
    assert served.small.accepted_connections == 1


@pytest.mark.parametrize("script", [Script(fault=Fault.TRICKLE)])
async def test_characters_pass_intact_wherever_they_are_cut(
    served: Standalone, client: RawClient
) -> None:
    """A stream that comes byte by byte is, put together, what the backend sent."""
    # Asked for, since the Router takes out the usage that only it wants.
    asking = chat(TEXT, stream=True)[:-1] + b',"stream_options":{"include_usage":true}}'
    await client.send(post(asking))
    through = await _answer(client)
    with await connect(served.small.port) as direct:
        await direct.send(post(served.small.seen[0].body))
        sent = await direct.answer()

    assert sent is not None
    assert through.body == sent.body
    assert "世界" in through.body.decode()


@pytest.mark.parametrize("script", [Script(fault=Fault.STALE_KEEP_ALIVE)])
async def test_backend_that_never_keeps_its_promise_is_served_around(client: RawClient) -> None:
    """A connection that the backend has closed costs no request."""
    statuses = []
    for _ in range(50):
        await client.send(CHAT)
        statuses.append((await _answer(client)).status)

    assert statuses == [200] * 50


async def test_backend_that_drops_idle_connections_costs_no_request(
    served: Standalone, client: RawClient
) -> None:
    """So does one that closes between two requests."""
    statuses = []
    for _ in range(20):
        await client.send(CHAT)
        statuses.append((await _answer(client)).status)
        served.small.drop_connections()

    assert statuses == [200] * 20


Canned = dict[str, tuple[bytes, Callable[[Answer], bool]]]
_FIVE = b"Content-Length: 5\r\n\r\nhello"
_HELLO = b"HTTP/1.1 200 OK\r\n" + _FIVE
_ZIPPED = gzip.compress(b"hello" * 100)
CANNED: Canned = {
    "a second answer behind it": (
        _HELLO + b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled",
        lambda got: got.status == 200 and got.body == b"hello",
    ),
    "gzip": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b"
        % (len(_ZIPPED), _ZIPPED),
        lambda got: got.fields["content-encoding"] == "gzip" and got.body == _ZIPPED,
    ),
    "gzip in chunks": (
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"%x\r\n%b\r\n0\r\n\r\n" % (len(_ZIPPED), _ZIPPED),
        lambda got: got.fields["content-encoding"] == "gzip" and got.body == _ZIPPED,
    ),
    "trailers": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: 1\r\n\r\n",
        lambda got: got.body == b"hello" and "x" not in got.fields,
    ),
    "fields of the hop": (
        b"HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n" + _FIVE,
        lambda got: not {"connection", "x-hop", "keep-alive"} & set(got.fields),
    ),
    "coding gzip, chunked": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        lambda got: got.status == 502,
    ),
    "two lengths": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        lambda got: got.status == 502,
    ),
    "bare line ends": (
        b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
        lambda got: got.status == 502,
    ),
    "a line end within a value": (
        b"HTTP/1.1 200 OK\r\nX: 1\rX-Evil: 1\r\nContent-Length: 5\r\n\r\nhello",
        lambda got: got.status == 502,
    ),
    "protocol switch": (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
        lambda got: got.status == 502,
    ),
    "HTTP/0.9": (b"hello", lambda got: got.status == 502),
    "nothing of HTTP": (b"\x15\x03\x01\x00\x02\x02\x46", lambda got: got.status == 502),
    "an unknown status": (
        b"HTTP/1.1 599 Whatever\r\nContent-Length: 5\r\n\r\nhello",
        lambda got: got.status == 599 and got.body == b"hello",
    ),
}


@pytest.mark.parametrize("name", CANNED)
async def test_bytes_of_a_backend_mean_the_same_to_the_client(
    nursery: trio.Nursery, name: str
) -> None:
    """Twice in a row, since the second answer shows what the first has left behind."""
    data, is_expected = CANNED[name]
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(partial(trio.serve_listeners, partial(_answer_all, data), listeners))
    port: int = listeners[0].socket.getsockname()[1]
    served = await start_standalone(nursery, small_port=port)

    with trio.fail_after(PATIENCE_S), await connect(served.port) as client:
        await client.send(get())
        first = await _answer(client)
        await client.send(get())
        second = await _answer(client)

    assert is_expected(first), first
    assert is_expected(second), second


async def _answer_all(data: bytes, stream: trio.SocketStream) -> None:
    """Answer every read with `data`; requests without a body come in one piece."""
    async with stream:
        try:
            while await stream.receive_some():
                await stream.send_all(data)
        except trio.BrokenResourceError:
            pass  # the Router has dropped the connection


async def _answer(client: RawClient) -> Answer:
    answer = await client.answer()
    assert answer is not None
    return answer
