"""Large bodies and slow readers: what is held is bounded, and limits bite while bytes arrive."""

import hashlib
import json
import resource
from pathlib import Path

import attrs
import pytest
import trio

from tests.e2e.standalone import LISTENER, Standalone, start_standalone, until
from tests.e2e.wire import RawClient, chat, connect, post
from vsr.demo.script import Script

PATIENCE_S = 30
MIB = 1024 * 1024
LIMIT_BYTES = 20 * MIB
STREAM = Script(chunks=4096, piece_bytes=16 * 1024)
"""A stream of 64 MiB."""
STREAM_BYTES = 64 * MIB
KERNEL_BYTES = 16 * MIB
"""More than the kernel takes on the two connections that a stream passes."""
MAX_GROWTH_BYTES = 12 * MIB
SMALL_WINDOW_BYTES = 4096


@pytest.fixture
def script() -> Script:
    """Return how the backends behave; tests override it by parametrizing."""
    return Script()


@pytest.fixture
async def served(nursery: trio.Nursery, script: Script) -> Standalone:
    """Serve with a limit that a test can exceed."""
    listener = attrs.evolve(LISTENER, max_body_bytes=LIMIT_BYTES)
    return await start_standalone(nursery, script, listener=listener)


@pytest.mark.parametrize("script", [STREAM])
async def test_client_that_does_not_read_costs_no_memory(served: Standalone) -> None:
    """The backend is read no further than buffers go, and the stream goes on where it stood."""
    with trio.fail_after(PATIENCE_S):
        with await connect(served.port, receive_buffer_bytes=SMALL_WINDOW_BYTES) as client:
            before = _resident_bytes()
            await client.send(post(chat(stream=True)))
            await until(lambda: len(served.small.calls) == 1)
            sent_bytes = await _until_still(served)
            growth_bytes = _resident_bytes() - before
            answer = await client.answer()
        await served.settled()

    assert MIB // 4 < sent_bytes < KERNEL_BYTES
    assert growth_bytes < MAX_GROWTH_BYTES
    assert answer is not None
    assert STREAM_BYTES < len(answer.body) < served.small.calls[0].bytes_sent
    assert answer.body.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("script", [STREAM])
async def test_many_clients_that_do_not_read_cost_no_memory(served: Standalone) -> None:
    """Of each stream about as much is held as one read takes."""
    with trio.fail_after(PATIENCE_S):
        before = _resident_bytes()
        clients = [
            await connect(served.port, receive_buffer_bytes=SMALL_WINDOW_BYTES) for _ in range(20)
        ]
        for client in clients:
            await client.send(post(chat(stream=True)))
        await until(lambda: len(served.small.calls) == 20)
        await _until_still(served)
        growth_bytes = _resident_bytes() - before
        for client in clients:
            client.close()
        await served.settled()

    assert growth_bytes < 20 * MIB


@pytest.mark.parametrize("model", ["auto", "small"])
async def test_body_of_20_mib_reaches_the_backend(served: Standalone, model: str) -> None:
    """Every byte of it, with only the model's name replaced."""
    body = chat("é" * 8, model=model, user="")
    body = body.replace(b'"user": ""', b'"user": "' + b"x" * (LIMIT_BYTES - len(body)) + b'"')
    assert len(body) == LIMIT_BYTES

    with trio.fail_after(PATIENCE_S), await connect(served.port) as client:
        await client.send(post(body))
        answer = await client.answer()

    assert answer is not None
    assert answer.status == 200
    assert _sha256(served.small.seen[0].body) == _sha256(body.replace(b'"auto"', b'"small"'))


@pytest.mark.parametrize("chunk_bytes", [0, 1000, 100_000])
async def test_body_of_20_mib_passes_in_any_framing(served: Standalone, chunk_bytes: int) -> None:
    """With a length or in chunks, it is the same body."""
    body = bytes(range(256)) * (LIMIT_BYTES // 256)

    with trio.fail_after(PATIENCE_S), await connect(served.port) as client:
        await client.send(_request(body, chunk_bytes))
        answer = await client.answer()

    assert answer is not None
    seen = json.loads(answer.body)
    assert (seen["body_bytes"], seen["body_sha256"]) == (LIMIT_BYTES, _sha256(body))


@pytest.mark.parametrize("chunk_bytes", [0, 100_000])
async def test_body_over_the_limit_is_refused(served: Standalone, chunk_bytes: int) -> None:
    """One byte more is too much."""
    with trio.fail_after(PATIENCE_S), await connect(served.port) as client:
        await client.send(_request(b"x" * (LIMIT_BYTES + 1), chunk_bytes))
        answer = await client.answer()

    assert answer is not None
    assert (answer.status, answer.code) == (413, "request_too_large")
    assert not any(seen.is_complete for seen in served.small.seen)


async def test_declared_body_over_the_limit_is_refused_before_it_is_sent(
    served: Standalone,
) -> None:
    """The head says enough; the connection closes, since the body would be in the way."""
    head = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % (LIMIT_BYTES + 1)

    with trio.fail_after(PATIENCE_S), await connect(served.port) as client:
        await client.send(head)
        answer = await client.answer()
        rest = await client.rest()

    assert answer is not None
    assert (answer.status, answer.fields["connection"], rest) == (413, "close", b"")


async def test_declared_body_over_the_limit_is_not_asked_for(served: Standalone) -> None:
    """A client that waits for 100 gets the 413 instead."""
    length = b"Content-Length: %d\r\n" % (LIMIT_BYTES + 1)
    head = b"POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n%b\r\n" % length

    with trio.fail_after(PATIENCE_S), await connect(served.port) as client:
        await client.send(head)
        answer = await client.answer()

    assert answer is not None
    assert answer.status == 413


async def test_chunked_body_over_the_limit_is_refused_while_it_is_sent(served: Standalone) -> None:
    """The answer comes although the body never ends."""
    chunk = b"%x\r\n%b\r\n" % (100_000, b"x" * 100_000)
    sent_bytes = 0

    with trio.fail_after(PATIENCE_S), await connect(served.port) as client:
        await client.send(b"POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
        async with trio.open_nursery() as nursery:

            async def send_for_ever() -> None:
                nonlocal sent_bytes
                while True:
                    await client.stream.send_all(chunk)
                    sent_bytes += 100_000

            nursery.start_soon(send_for_ever)
            answer = await client.answer()
            nursery.cancel_scope.cancel()

    assert answer is not None
    assert answer.status == 413
    assert sent_bytes < 2 * LIMIT_BYTES
    assert not any(seen.is_complete for seen in served.small.seen)


async def test_refused_upload_that_goes_on_is_cut_off(served: Standalone) -> None:
    """Behind its refusal a client's bytes are thrown away for a while, then no longer."""
    with trio.fail_after(PATIENCE_S), await connect(served.port) as client:
        head = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % (1 << 40)
        await client.send(head)
        answer = await client.answer()
        sent_bytes = await _send_until_closed(client)
        await served.settled()

    assert answer is not None
    assert answer.status == 413
    assert sent_bytes < KERNEL_BYTES


async def _send_until_closed(client: RawClient) -> int:
    sent_bytes = 0
    while True:
        try:
            await client.stream.send_all(b"x" * 100_000)
        except trio.BrokenResourceError:
            return sent_bytes
        sent_bytes += 100_000


async def _until_still(served: Standalone) -> int:
    """Wait until no backend has sent anything for a while; return what all have sent."""
    last, now = -1, 0
    while last != now:
        last = now
        await trio.sleep(0.2)
        now = sum(call.bytes_sent for call in served.small.calls)
    return now


def _request(body: bytes, chunk_bytes: int) -> bytes:
    if not chunk_bytes:
        return post(body, target=b"/x")
    pieces = [body[at : at + chunk_bytes] for at in range(0, len(body), chunk_bytes)]
    chunks = [b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces]
    head = b"POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    return b"".join([head, *chunks, b"0\r\n\r\n"])


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _resident_bytes() -> int:
    """Return this process's memory, the Router's, the backends' and the client's together."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()
