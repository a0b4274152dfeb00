"""Writing an answer: framing, bodiless answers, unchanged bytes, and what a bug of ours costs."""

from typing import cast

import attrs
import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd, ask, chat_body, read_answer
from tests.fakes.router import RunningRouter, document_of, model_of, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.network.memory import MemoryNetwork
from vsr.routing.effect import Effect, HeaderEdit
from vsr.routing.engine import Engine
from vsr.routing.generation import Generation
from vsr.routing.plan import Plan
from vsr.routing.ports import Journal, Tasks
from vsr.routing.request import Request

SSE = 'data: {"text":"é 汉 😀 \u2028"}\n\n: comment ✓\r\n\r\nevent: ü\ndata: ю\n\n'.encode()


async def start(
    nursery: trio.Nursery, answer: bytes, *, closes: bool = False
) -> tuple[RunningRouter, RawBackend]:
    """Start a Router whose one backend answers with these bytes."""
    network = MemoryNetwork()
    backend = await RawBackend(network, answer, closes=closes).start(nursery)
    return await start_router(nursery, network, document_of(model_of(backend.port))), backend


@pytest.mark.parametrize(
    ("answer", "length"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\nETag: x\r\n\r\n", b"1234"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nETag: x\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\nETag: x\r\n\r\n", b""),
        (b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nETag: x\r\n\r\n", b"0"),
    ],
)
async def test_head_answer_describes_a_body_and_has_none(
    answer: bytes, length: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report X5: the connection carries the next request."""
    router, backend = await start(nursery, answer)
    client = await router.connect()

    heads = [await ask(client, method=b"HEAD", target=b"/x") for _ in range(2)]

    assert [got.end for got in heads] == [AnswerEnd.WHOLE] * 2
    assert [got.line(b"content-length") for got in heads] == [length] * 2
    assert [got.line(b"etag") for got in heads] == [b"x"] * 2
    assert [got.body for got in heads] == [b""] * 2
    assert [head.method for head, _ in backend.seen] == [b"HEAD"] * 2


@pytest.mark.parametrize("status", [204, 304])
@pytest.mark.parametrize("fields", [b"", b"Content-Length: 0\r\n", b"Content-Length: 55\r\n"])
async def test_bodiless_status_leaves_the_connection_usable(
    status: int,
    fields: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """No body on either side; only a 304 may say what length there would be."""
    router, backend = await start(nursery, b"HTTP/1.1 %d X\r\n%b\r\n" % (status, fields))
    client = await router.connect()

    answers = [await ask(client, method=b"GET", target=b"/x") for _ in range(2)]

    assert [(got.end, got.status, got.body) for got in answers] == [
        (AnswerEnd.WHOLE, status, b"")
    ] * 2
    assert answers[0].line(b"transfer-encoding") == b""
    assert len(backend.accepted) == 1
    if status == 204:
        # RFC 9110 section 8.6.
        assert answers[0].line(b"content-length") == b""


def _framed(body: bytes, framing: str) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    if framing == "length":
        return head + b"content-length: %d\r\n\r\n%b" % (len(body), body)
    if framing == "close":
        return head + b"\r\n" + body
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    return head + b"transfer-encoding: chunked\r\n\r\n" + chunks + b"0\r\nx-trailer: 1\r\n\r\n"


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
@pytest.mark.parametrize("version", [b"HTTP/1.1", b"HTTP/1.0"])
async def test_body_passes_whatever_frames_it(
    framing: str,
    version: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Our framing is our own; the bytes are the backend's, and trailers are dropped."""
    router, _ = await start(nursery, _framed(SSE, framing), closes=framing == "close")
    client = await router.connect()
    body = chat_body(model="auto", stream=True)

    await client.send(
        b"POST /v1/chat/completions %b\r\nHost: r\r\nContent-Length: %d\r\n\r\n%b"
        % (version, len(body), body)
    )
    got = await read_answer(client)

    assert (got.end, got.body) == (AnswerEnd.WHOLE, SSE)
    assert got.is_reusable == (version == b"HTTP/1.1")
    assert b"trailer" not in got.raw


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        (b"application/json", b"not json at all"),
        (b"application/json", b""),
        (b"application/json", b'{"usage":{"prompt_tokens":-1,"completion_tokens":1e99}}'),
        (b"application/json", b'{"usage":' + b"[" * 100_000),
        (b"text/event-stream", b"\xff\xfe\x00 no event"),
        (b"application/octet-stream", bytes(range(256)) * 2000),
    ],
)
async def test_answer_that_makes_no_sense_passes_as_it_is(
    content_type: bytes,
    body: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Field report S11: nothing of ours needs to read it; compressed bytes stay compressed, too."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-encoding: gzip\r\n" % content_type
    answer = head + b"content-length: %d\r\n\r\n%b" % (len(body), body)
    router, _ = await start(nursery, answer)

    got = await router.ask(chat_body(model="auto"), lines=[(b"accept-encoding", b"gzip")])

    assert (got.end, got.status, got.body) == (AnswerEnd.WHOLE, 200, body)
    assert got.line(b"content-type") == content_type
    assert got.line(b"content-encoding") == b"gzip"
    [line] = await router.log()
    assert (line["prompt_tokens"], line["completion_tokens"]) == (None, None)


async def test_stream_cut_at_any_byte_arrives_as_it_was(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report S1: nothing decodes, so no cut can break a character or an event."""
    network = MemoryNetwork()
    listener = await network.listen("", 0)
    router = await start_router(nursery, network, document_of(model_of(listener.port)))
    client = await router.connect()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    head += b"content-length: %d\r\n\r\n" % len(SSE)
    backend = None

    for cut in range(len(SSE) + 1):
        async with trio.open_nursery() as asking:
            got = []

            async def one() -> None:
                got.append(await ask(client, chat_body(model="auto")))  # noqa: B023  # ends here

            asking.start_soon(one)
            backend = backend or await listener.accept()
            await backend.receive()
            await backend.send(head + SSE[:cut])
            await trio.testing.wait_all_tasks_blocked()
            await backend.send(SSE[cut:])

        assert (got[0].end, got[0].body) == (AnswerEnd.WHOLE, SSE), cut


@attrs.define
class FaultyEngine:
    """Fails as told, else asks the real one."""

    real: Engine
    plan_fails: bool = False
    respond_effect: Effect | None = None
    may_wait: bool = False

    async def plan(self, request: Request, tasks: Tasks, journal: Journal) -> Plan:
        """Fail, or plan."""
        if self.plan_fails:
            raise KeyError("canary-secret")
        return await self.real.plan(request, tasks, journal)

    def respond(self, plan: Plan, status: int, headers: object) -> None:
        """Fail with a bug, or in applying an effect."""
        del plan, status, headers
        if self.respond_effect is None:
            raise ZeroDivisionError("canary-secret")
        _ = [HeaderEdit(b"Bad Name", b"") for _ in self.respond_effect.edits]


def _replace_engine(generation: Generation, **how: object) -> None:
    generation.engine = cast("Engine", FaultyEngine(generation.engine, **how))  # type: ignore[arg-type]  # a test's table


@pytest.mark.parametrize(
    ("how", "phase"),
    [
        ({"plan_fails": True}, "request"),
        ({"respond_effect": None}, "response"),
        ({"respond_effect": Effect(edits=(HeaderEdit(b"x", b""),))}, "response"),
    ],
)
async def test_bug_of_ours_is_a_500_and_the_connection_lives(
    how: dict[str, object],
    phase: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Field report E1: at once, in JSON, saying nothing of the bug; the next request is served."""
    router, backend = await start(nursery, reply(200, b"{}"))
    real = router.generation.engine
    client = await router.connect()

    _replace_engine(router.generation, **how)
    broken = await ask(client, chat_body(model="auto"))
    router.generation.engine = real
    sound = await ask(client, chat_body(model="auto"))

    error = broken.json()["error"]
    assert isinstance(error, dict)
    assert (broken.status, sound.status) == (500, 200)
    assert list(error) == ["type", "code", "message", "param"]
    assert (error["type"], error["code"]) == ("server_error", "routing_error")
    assert error["message"] == f"The router could not process the {phase}."
    assert b"canary" not in broken.raw
    assert trio.current_time() == 0
    assert await router.held() == (0, 0)
    lines = await router.log()
    assert [(line["response_code"], line["outcome"]) for line in lines] == [
        (500, "failed"),
        (200, "succeeded"),
    ]
    assert backend.open_connections <= 1
