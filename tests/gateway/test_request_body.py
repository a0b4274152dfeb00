"""Reading a request's body: its limit, its pace, `Expect: 100-continue`."""

import hashlib

import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body, read_answer
from tests.fakes.router import RunningRouter, document_of, model_of, read_large, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.network.memory import MemoryConnection, MemoryNetwork

LIMIT = 1000
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


async def start(
    nursery: trio.Nursery, listener: str = f"max_body_bytes: {LIMIT}"
) -> tuple[RunningRouter, RawBackend]:
    """Start a Router with a small body limit."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    document = document_of(model_of(backend.port), listener=listener)
    return await start_router(nursery, network, document), backend


def post(framing: bytes, *, target: bytes = b"/v1/embeddings") -> bytes:
    """Return a request head with these framing fields."""
    return b"POST %b HTTP/1.1\r\nHost: r\r\n%b\r\n\r\n" % (target, framing)


def length(size: int) -> bytes:
    """Return a `Content-Length` field."""
    return b"Content-Length: %d" % size


CHUNKED = b"Transfer-Encoding: chunked"


def chunk(size: int) -> bytes:
    """Return one chunk of so many bytes."""
    return b"%x\r\n%b\r\n" % (size, b"x" * size)


AT_THE_LIMIT = [
    [post(length(LIMIT)) + b"x" * LIMIT],
    [post(length(LIMIT)), b"x" * (LIMIT - 1), b"x"],
    [post(CHUNKED) + chunk(LIMIT) + b"0\r\n\r\n"],
    [post(CHUNKED) + chunk(LIMIT // 2), chunk(LIMIT // 2), b"0\r\n\r\n"],
]
BEYOND = [
    [post(length(LIMIT + 1))],
    [post(length(LIMIT + 1)) + b"x" * (LIMIT + 1)],
    [post(length(2**50))],
    [post(length(LIMIT + 1) + b"\r\nExpect: 100-continue")],
    [post(CHUNKED) + chunk(LIMIT + 1) + b"0\r\n\r\n"],
    [post(CHUNKED) + chunk(LIMIT // 2), chunk(LIMIT // 2) + chunk(1)],
    [post(CHUNKED), *[chunk(1)] * (LIMIT + 1)],
    [post(CHUNKED) + chunk(LIMIT // 2), b"1f5\r\n" + b"x" * 501],
]
"""The last piece is the first from which the excess can be known; nothing more is ever sent."""


@pytest.mark.parametrize("pieces", AT_THE_LIMIT)
async def test_body_of_the_limit_passes(
    pieces: list[bytes], nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """However it is framed and cut."""
    router, backend = await start(nursery)
    client = await router.connect()

    for piece in pieces:
        await client.send(piece)
        await trio.testing.wait_all_tasks_blocked()
    got = await read_answer(client)

    assert (got.status, got.is_reusable) == (200, True)
    assert backend.seen[0][1] == b"x" * LIMIT


@pytest.mark.parametrize("pieces", BEYOND)
async def test_body_beyond_the_limit_is_a_413_while_reading(
    pieces: list[bytes], nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report B2: at once, with the limit in the message, and never "invalid JSON"."""
    router, backend = await start(nursery)
    client = await router.connect()

    for piece in pieces:
        await client.send(piece)
        await trio.testing.wait_all_tasks_blocked()
    got = await read_answer(client)

    error = got.json()["error"]
    assert isinstance(error, dict)
    assert trio.current_time() == 0
    assert (got.status, got.is_reusable) == (413, False)
    assert list(error) == ["type", "code", "message", "param"]
    assert (error["type"], error["code"]) == ("invalid_request_error", "request_too_large")
    assert "1000" in error["message"]
    assert CONTINUE not in got.raw
    assert backend.seen == []
    assert await router.held() == (0, 0)


async def test_answer_to_an_oversized_body_reaches_a_client_that_still_sends(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """We keep reading for a while, since a reset would overtake the answer; then we are gone."""
    router, _ = await start(nursery)
    client = await router.connect()

    await client.send(post(length(10_000_000)))
    for _ in range(20):
        await client.send(b"x" * 65_536)
    got = await read_answer(client)

    assert got.status == 413
    assert await client.receive() == b""
    await trio.sleep(2.5)
    assert client.is_gone
    assert router.router.server.open_connections == 0


@pytest.mark.parametrize("target", [b"/v1/chat/completions", b"/v1/embeddings"])
async def test_continue_is_sent_when_the_body_is_first_read(
    target: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Once, before the answer."""
    router, backend = await start(nursery)
    body = chat_body(model="alpha")
    client = await router.connect()

    await client.send(post(length(len(body)) + b"\r\nExpect: 100-Continue", target=target))
    first = await client.receive()
    await client.send(body[:10])
    await trio.testing.wait_all_tasks_blocked()
    await client.send(body[10:])
    got = await read_answer(client)

    assert first == CONTINUE
    assert (got.status, got.raw.count(b"100 Continue")) == (200, 0)
    assert backend.seen[0][1] == body


async def test_continue_is_not_sent_when_the_body_is_there(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A client that does not wait needs no leave."""
    router, _ = await start(nursery)
    client = await router.connect()

    await client.send(post(length(2) + b"\r\nExpect: 100-continue") + b"{}")
    got = await read_answer(client)

    assert got.status == 200
    assert got.raw.startswith(b"HTTP/1.1 200 ")


async def _trickle(client: MemoryConnection, pieces: list[bytes], pause_s: float) -> None:
    for piece in pieces:
        await client.send(piece)
        await trio.sleep(pause_s)


async def test_body_that_stops_is_a_408(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """After the listener's timeout of silence, not of sending."""
    router, backend = await start(nursery, "timeout: 20s")
    client = await router.connect()

    await _trickle(client, [post(length(100)), *[b"x"] * 5], 15)
    got = await read_answer(client)

    assert trio.current_time() == pytest.approx(75 + 20)
    assert got.status == 408
    assert got.json()["error"] == {
        "type": "invalid_request_error",
        "code": "request_timeout",
        "message": "The request did not arrive in time.",
        "param": None,
    }
    assert not got.is_reusable
    assert backend.seen == []
    [line] = await router.log()
    assert (line["response_code"], line["outcome"]) == (408, "failed")


@pytest.mark.parametrize(
    "broken", [b"zz\r\n", b"5\r\nabcdeX\r\n", b"-1\r\n", b"1;" + b"e" * 5000 + b"\r\nx\r\n"]
)
async def test_broken_chunk_is_a_400_and_closes(
    broken: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What follows can't be told apart from the body."""
    router, backend = await start(nursery, "timeout: 20s")
    client = await router.connect()

    await client.send(post(CHUNKED) + chunk(3) + broken)
    got = await read_answer(client)

    error = got.json()["error"]
    assert isinstance(error, dict)
    assert (got.status, got.is_reusable) == (400, False)
    assert list(error) == ["type", "code", "message", "param"]
    assert backend.seen == []
    assert await router.held() == (0, 0)


@pytest.mark.parametrize("routed", [False, True])
async def test_large_body_passes_unchanged(
    routed: bool,  # noqa: FBT001  # a parameter of the table
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Field report B3: 20 MiB, both ways, whether its model is spliced or it is passed on."""
    router, backend = await start(nursery, "timeout: 20s")
    image = "data:image/png;base64," + "QUJD" * (5 * 1024 * 1024)
    body = chat_body(image, model="auto") if routed else image.encode()
    backend.answer = lambda _head, sent: reply(200, sent)
    client = await router.connect()
    target = b"/v1/chat/completions" if routed else b"/v1/files"

    await client.send(post(length(len(body)), target=target) + body)
    is_whole, got = await read_large(client)

    wanted = body.replace(b'"auto"', b'"alpha"', 1)
    assert len(body) > 20 * 1024 * 1024
    assert hashlib.sha256(backend.seen[0][1]).digest() == hashlib.sha256(wanted).digest()
    assert hashlib.sha256(got).digest() == hashlib.sha256(wanted).digest()
    assert is_whole
