"""One client connection: requests in turn, its limits of time, other versions, refusals."""

import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd, ask, chat_body, read_answer
from tests.fakes.backend import start_backend
from tests.fakes.router import RunningRouter, document_of, model_of, start_router
from tests.upstream.raw_backend import RawBackend
from vsr.demo.script import Script
from vsr.demo.server import DemoModel
from vsr.http.framing import RequestHead
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.network.port import ConnectionBroken

IDLE_S = 60


async def start(
    nursery: trio.Nursery, script: Script | None = None
) -> tuple[RunningRouter, DemoModel, MemoryConnection]:
    """Start a Router with one demo model; return a connection to it, too."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, script)
    document = document_of(model_of(backend.port), listener=f"timeout: {IDLE_S}s")
    router = await start_router(nursery, network, document)
    return router, backend, await router.connect()


def get(target: str, *fields: str, version: str = "1.1") -> bytes:
    """Return a GET request."""
    shown = "".join(f"{field}\r\n" for field in fields)
    return f"GET {target} HTTP/{version}\r\nHost: r\r\n{shown}\r\n".encode()


def post(target: str, body: bytes, *fields: str) -> bytes:
    """Return a POST request with a length."""
    head = get(target, f"Content-Length: {len(body)}", *fields)
    return b"POST" + head.removeprefix(b"GET") + body


async def test_connection_carries_requests_one_after_the_other(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Routed, passed on, own answers and errors alike leave it usable."""
    router, backend, client = await start(nursery)
    chat = chat_body(model="auto")
    stream = chat_body(model="auto", stream=True)

    statuses = [
        (await ask(client, chat)).status,
        (await ask(client, method=b"GET", target=b"/v1/models")).status,
        (await ask(client, chat_body(model="nope"))).status,
        (await ask(client, stream)).status,
        (await ask(client, method=b"GET", target=b"/health")).status,
        (await ask(client, b"{}", target=b"/v1/nothing")).status,
        (await ask(client, b"{}", target=b"/v1/responses")).status,
        (await ask(client, chat)).status,
    ]

    assert statuses == [200, 200, 400, 200, 200, 200, 404, 200]
    assert backend.accepted_connections == 1
    assert await router.held() == (0, 0)


@pytest.mark.parametrize("cut", [1, 7, 50, 1000])
async def test_pipelined_requests_are_answered_in_order(
    cut: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """However the bytes arrive, and although the second is answered faster than the first."""
    _, backend, client = await start(nursery, Script(latency_s=3))
    sent = (
        post("/v1/chat/completions", chat_body("first", model="auto"))
        + get("/v1/models")
        + post("/v1/chat/completions", chat_body("third", model="auto", stream=True))
        + get("/health")
        + get("/last", "Connection: close")
    )

    for at in range(0, len(sent), cut):
        await client.send(sent[at : at + cut])
    answers = await _read_responses(client, 5)

    assert b"first" in answers[0]
    assert b'"object":"list"' in answers[1]
    assert b"third" in answers[2]
    assert answers[3] == b'{"status":"ok"}'
    assert b'"path":"/last"' in answers[4]
    assert trio.current_time() == pytest.approx(9)
    assert await client.receive() == b""
    assert [seen.path for seen in backend.seen] == [
        b"/v1/chat/completions",
        b"/v1/chat/completions",
        b"/last",
    ]


async def _read_responses(client: MemoryConnection, count: int) -> list[bytes]:
    """Read so many responses that may come in one piece; return what each ends with."""
    data = b""
    bodies: list[bytes] = []
    while len(bodies) < count:
        head, found, rest = data.partition(b"\r\n\r\n")
        is_chunked = b"transfer-encoding: chunked" in head
        ends = rest.find(b"0\r\n\r\n") + 5 if is_chunked else _length(head)
        if found and ends <= len(rest) and not (is_chunked and ends == 4):
            bodies.append(rest[:ends])
            data = rest[ends:]
            continue
        more = await client.receive()
        assert more, (bodies, data)
        data += more
    assert data == b""
    return bodies


def _length(head: bytes) -> int:
    fields = dict(line.split(b": ") for line in head.split(b"\r\n")[1:])
    return int(fields.get(b"content-length", b"0"))


async def test_pipelined_requests_behind_a_close_are_not_served(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Connection: close makes the request that carries it the last one."""
    _, backend, client = await start(nursery)

    await client.send(get("/a", "Connection: close") + get("/b"))
    got = await read_answer(client)

    assert (got.status, got.line(b"connection")) == (200, b"close")
    assert await _ends(client)
    assert [seen.path for seen in backend.seen] == [b"/a"]


async def _ends(client: MemoryConnection) -> bool:
    """Return whether the Router closes without a further byte."""
    try:
        with trio.fail_after(5):
            return await client.receive() == b""
    except ConnectionBroken:
        return True


@pytest.mark.parametrize("stream", [False, True])
async def test_http_1_0_client_gets_a_body_until_close(
    stream: bool,  # noqa: FBT001  # a parameter of the table
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Neither chunks nor a kept connection, and everything arrives."""
    _, backend, client = await start(nursery)
    body = chat_body("hi", model="auto", stream=stream)
    request = post("/v1/chat/completions", body).replace(b"HTTP/1.1", b"HTTP/1.0")

    await client.send(request)
    got = await read_answer(client)

    assert (got.end, got.status, got.is_reusable) == (AnswerEnd.WHOLE, 200, False)
    assert got.line(b"transfer-encoding") == b""
    assert (b"data: [DONE]" in got.body) == stream
    assert b"hi" in got.body
    assert backend.seen[0].headers.get(b"host") == b"127.0.0.1:%d" % backend.port


async def test_http_1_0_needs_no_host(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It had none."""
    router, _, client = await start(nursery)

    await client.send(b"GET /v1/models HTTP/1.0\r\n\r\n")
    got = await read_answer(client)

    assert got.status == 200
    assert (await router.log())[0]["protocol"] == "HTTP/1.0"


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: r\r\nx: ", b"\r\n"])
async def test_head_must_arrive_within_ten_seconds_of_its_first_byte(
    sent: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A dripping head does not help; before its first byte the idle limit counts."""
    router, _, client = await start(nursery)
    await trio.sleep(4)

    await client.send(sent)
    async with trio.open_nursery() as dripping:
        if sent.endswith(b"x: "):
            dripping.start_soon(_drip, client)
        got = await read_answer(client)
        dripping.cancel_scope.cancel()

    if sent:
        error = got.json()["error"]
        assert isinstance(error, dict)
        assert trio.current_time() == pytest.approx(14)
        assert (got.status, got.is_reusable) == (408, False)
        assert list(error) == ["type", "code", "message", "param"]
    else:
        assert (got.end, got.raw) == (AnswerEnd.CUT, b"")
        assert trio.current_time() == pytest.approx(IDLE_S)
    await trio.sleep(3)
    assert router.router.server.open_connections == 0


async def _drip(client: MemoryConnection) -> None:
    while True:
        await trio.sleep(0.9)
        await client.send(b"x")


async def test_idle_connection_closes_after_the_listeners_timeout(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Counted from the last answer, not from the connection's begin."""
    router, _, client = await start(nursery, Script(latency_s=50))

    for _ in range(2):
        await ask(client, chat_body(model="auto"))
        await trio.sleep(IDLE_S - 1)
    assert not client.is_gone
    await trio.sleep(2)

    assert client.is_gone
    assert trio.current_time() == pytest.approx(2 * (50 + IDLE_S - 1) + 2)
    assert router.router.server.open_connections == 0


async def test_connection_that_serves_is_not_idle(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A stream may last much longer than the idle limit between requests."""
    network = MemoryNetwork()
    script = Script(chunks=20, chunk_interval_s=IDLE_S - 10)
    backend = await start_backend(nursery, network, script)
    reliability = "{total_timeout: 0s}"
    router = await start_router(
        nursery,
        network,
        document_of(model_of(backend.port, reliability=reliability), listener="timeout: 60s"),
    )

    got = await router.ask(chat_body(model="auto", stream=True), patience_s=5000)

    assert got.end is AnswerEnd.WHOLE
    assert trio.current_time() > 10 * IDLE_S


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET / HTTP/3.0\r\nHost: a\r\n\r\n", None),
        (
            b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nx: " + b"y" * 70_000 + b"\r\n\r\n", 431),
        (b"GET /" + b"y" * 70_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        (b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        (b"GET / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n", 417),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", None),
    ],
)
async def test_refused_framing_is_answered_in_json_and_closes(
    request_: bytes,
    status: int | None,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Behind a sound request, too; no backend hears of it."""
    _, backend, client = await start(nursery)

    await client.send(get("/v1/models"))
    first = await read_answer(client)
    await client.send(request_)
    got = await read_answer(client)

    error = got.json()["error"]
    assert isinstance(error, dict)
    assert first.status == 200
    assert got.status == status or (status is None and 400 <= got.status <= 505)
    assert list(error) == ["type", "code", "message", "param"]
    assert got.line(b"content-type") == b"application/json"
    assert got.line(b"connection") == b"close"
    assert await _ends(client)
    assert backend.seen == []


async def test_upgrade_is_not_followed(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The request is served as if it had not asked, and the field goes no further."""
    network = MemoryNetwork()

    def answer(head: RequestHead, body: bytes) -> bytes:
        assert {b"upgrade", b"connection"}.isdisjoint(head.fields)
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)

    backend = await RawBackend(network, answer).start(nursery)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))
    client = await router.connect()
    fields = ("Connection: Upgrade", "Upgrade: h2c")

    await client.send(post("/x", b"abc", *fields) + get("/y"))
    assert await _read_responses(client, 2) == [b"abc", b""]


async def test_connections_beyond_the_limit_wait_in_the_accept_queue(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nobody is refused; whoever waits is served when another leaves, and a drain ends the wait."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network)
    document = document_of(model_of(backend.port), listener="max_connections: 2, timeout: 60s")
    router = await start_router(nursery, network, document)
    clients = [await router.connect() for _ in range(4)]
    for client in clients:
        await client.send(get("/v1/models"))

    await trio.sleep(1)
    served_first = [client.held_bytes > 0 for client in clients]
    clients[0].close()
    await trio.sleep(1)
    served_then = [client.held_bytes > 0 for client in clients[1:]]
    await router.router.server.drain()

    assert served_first == [True, True, False, False]
    assert served_then == [True, True, False]
    assert router.router.server.open_connections == 0
    assert clients[3].is_gone
    assert trio.current_time() == pytest.approx(2)
