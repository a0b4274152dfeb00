"""What clients are told of a backend's errors, and of answers that are none."""

import gzip
import json

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.demo.raw_client import AnswerEnd, Got
from tests.engine.stepped_backend import Act, chunk
from tests.engine.wired import (
    ANTHROPIC,
    ANTHROPIC_TO_OPENAI,
    OPENAI,
    OPENAI_TO_ANTHROPIC,
    PAIRS,
    Pair,
    Wired,
    chunked,
    whole,
    wire,
)

OPENAI_ERROR = b'{"error":{"message":"no such thing","type":"t","code":"c","param":"p"}}'
ANTHROPIC_ERROR = b'{"type":"error","error":{"type":"rate_limit_error","message":"no such thing"}}'
HTML = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "invalid_request_error",
    418: "api_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
    500: "api_error",
    502: "api_error",
    503: "overloaded_error",
    529: "overloaded_error",
}
"""Source: the reference's rules "Error bodies"."""


def told(pair: Pair, got: Got) -> tuple[str, object]:
    """Return message and type of an error, which must have the client's form."""
    members = json.loads(got.body)
    assert got.line(b"content-type") == b"application/json"
    if pair.is_anthropic_client:
        assert (set(members), members["type"]) == ({"type", "error"}, "error")
        assert set(members["error"]) == {"type", "message"}
    else:
        assert set(members) == {"error"}
        assert list(members["error"]) == ["type", "code", "message", "param"]
    return members["error"]["message"], members["error"]["type"]


@pytest.mark.parametrize("pair", PAIRS)
async def test_error_keeps_its_status_and_message(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """In the client's form, whichever the backend has; nothing is said of the choice."""
    wired = await wire(nursery)

    for status, anthropic_type in TYPES.items():
        for body in (OPENAI_ERROR, ANTHROPIC_ERROR):
            wired.backend(pair).steps = whole(status, body, (b"retry-after", b"2"))
            got = await wired.ask(pair)

            message, kind = told(pair, got)
            assert (got.status, message) == (status, "no such thing")
            if pair.is_anthropic_client and body is OPENAI_ERROR:
                assert kind == anthropic_type
            if body is ANTHROPIC_ERROR:
                assert kind == "rate_limit_error"
            assert got.line(b"retry-after") == b"2"  # field report X7
            assert got.line(b"content-length") == b"%d" % len(got.body)
            assert got.line(b"x-vsr-schema-version") == b"2"
            assert got.line(b"x-vsr-response-path") == b"upstream"
            assert got.line(b"x-vsr-selected-model") == b""
            assert got.is_reusable
    line = await wired.last_log()
    assert (line["outcome"], line["response_code"]) == ("failed", 529)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (
            whole(503, HTML, (b"content-type", b"text/html")),
            "The backend answered with status 503.",
        ),
        (whole(503, b""), "The backend answered with status 503."),
        (whole(503, b"plain words"), "plain words"),
        (whole(503, b"x" * 3_000_000), "The backend answered with status 503."),
        (chunked(503, OPENAI_ERROR[:9], OPENAI_ERROR[9:]), "no such thing"),
        ([*chunked(503, OPENAI_ERROR)[:-1], 1.0, b"0\r\n\r\n"], "no such thing"),
    ],
    ids=["html", "empty", "text", "huge", "chunked", "slow"],
)
async def test_error_of_any_shape_becomes_the_clients(
    steps: list[bytes],
    message: str,
    pair: Pair,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Pages for browsers are not shown; however it is framed, one JSON body goes out."""
    wired = await wire(nursery)
    wired.backend(pair).steps = steps

    got = await wired.ask(pair)

    assert (got.end, got.status) == (AnswerEnd.WHOLE, 503)
    assert told(pair, got)[0] == message
    assert await wired.router.held() == (0, 0)


@pytest.mark.parametrize("pair", PAIRS)
async def test_error_that_never_ends_is_answered_and_left(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Beyond a bound nothing more is read, and the connection is not used again."""
    wired = await wire(nursery)
    backend = wired.backend(pair)
    head = chunked(500, content_type=b"application/json")[0]
    backend.steps = [head, *[chunk(b"x" * 50_000)] * 2000]

    got = await wired.ask(pair)

    assert (got.status, told(pair, got)[0]) == (500, "The backend answered with status 500.")
    assert len(backend.gone_at) == 1
    assert backend.sent_bytes < 4_000_000
    assert await wired.router.held() == (0, 0)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize(("act", "status"), [(Act.CLOSE, 502), (Act.RESET, 502), (Act.HANG, 504)])
async def test_error_that_breaks_off_is_a_local_reply(
    act: Act,
    status: int,
    pair: Pair,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Nothing was sent yet, so the client gets a whole answer, and never a success."""
    wired = await wire(nursery)
    wired.backend(pair).steps = [*chunked(500, OPENAI_ERROR)[:-1], act]

    got = await wired.ask(pair)

    assert (got.end, got.status) == (AnswerEnd.WHOLE, status)
    assert got.is_reusable
    assert await wired.router.held() == (0, 0)


@pytest.mark.parametrize("pair", PAIRS)
async def test_compressed_error_is_not_announced_as_compressed(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field reports S3, X5: we asked for identity and write a body of our own."""
    wired = await wire(nursery)
    packed = gzip.compress(OPENAI_ERROR)
    lines = [(b"content-encoding", b"gzip"), (b"etag", b'"of-another-body"')]
    wired.backend(pair).steps = whole(429, packed, *lines)

    got = await wired.ask(pair)

    assert got.status == 429
    assert told(pair, got)
    assert got.line(b"content-encoding") == b""
    assert got.line(b"etag") == b""


@pytest.mark.parametrize(
    ("pair", "body"),
    [
        *(
            (ANTHROPIC_TO_OPENAI, body)
            for body in (
                b"",
                b"{",
                b"[]",
                b"null",
                b"{}",
                HTML,
                b'{"choices":[]}',
                b'{"choices":[1]}',
                OPENAI_ERROR,
                b"[" * 100_000,
                b'{"choices":[{"message":{"content":"cut \\ud83d"},"finish_reason":"stop"}]}',
                b'{"choices":[{"message":{"tool_calls":[{"function":{"arguments":"{"}}]}}]}',
            )
        ),
        *(
            (OPENAI_TO_ANTHROPIC, body)
            for body in (b"", b"{", b"[]", b"null", b"{}", HTML, b'{"content":1}', ANTHROPIC_ERROR)
        ),
    ],
)
async def test_success_that_is_no_answer_is_a_502_in_the_clients_form(
    pair: Pair, body: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report R5: never a 2xx with nothing in it, and nothing of the backend's body."""
    wired = await wire(nursery)
    wired.backend(pair).steps = whole(200, body)

    got = await wired.ask(pair)

    assert got.status == 502
    assert told(pair, got)[0].startswith("The answer could not be translated: ")
    assert got.line(b"x-vsr-response-path") == b"error"
    assert got.is_reusable
    line = await wired.last_log()
    assert (line["outcome"], line["response_code"]) == ("failed", 502)


@pytest.mark.parametrize("pair", [ANTHROPIC_TO_OPENAI, OPENAI_TO_ANTHROPIC])
async def test_compressed_success_cannot_be_translated(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report S4: a stream that cannot be read is no 200 with nothing in it."""
    wired = await wire(nursery)
    packed = gzip.compress(b"".join(pair.pieces))
    gzipped = (b"content-encoding", b"gzip")

    wired.backend(pair).steps = whole(200, gzip.compress(pair.answer), gzipped)
    buffered = await wired.ask(pair)
    wired.backend(pair).steps = whole(200, packed, (b"content-type", b"text/event-stream"), gzipped)
    streamed = await wired.ask(pair, pair.body(stream=True))

    assert (buffered.status, streamed.status) == (502, 502)
    for got in (buffered, streamed):
        assert told(pair, got)
        assert got.line(b"content-encoding") == b""


@pytest.mark.parametrize("pair", [OPENAI, ANTHROPIC])
async def test_compressed_success_of_the_same_protocol_passes(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report S3: bytes and their announcement belong together."""
    wired = await wire(nursery)
    packed = gzip.compress(b"".join(pair.pieces))
    event_stream = (b"content-type", b"text/event-stream")
    wired.backend(pair).steps = whole(200, packed, event_stream, (b"content-encoding", b"gzip"))

    got = await wired.ask(pair, pair.body(stream=True))

    assert (got.status, got.body) == (200, packed)
    assert got.line(b"content-encoding") == b"gzip"


@pytest.mark.parametrize("status", [301, 302, 304, 307])
@pytest.mark.parametrize("pair", PAIRS)
async def test_redirection_is_passed_on_and_not_followed(
    status: int, pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Neither success nor failure: nobody translates it."""
    wired = await wire(nursery)
    wired.backend(pair).steps = [
        b"HTTP/1.1 %d Moved\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n" % status
    ]

    got = await wired.ask(pair)

    assert (got.status, got.line(b"location"), got.body) == (status, b"/elsewhere", b"")
    assert len(wired.backend(pair).seen) == 1


_JUNK = st.binary(max_size=40) | st.sampled_from(
    [
        b"null",
        b"[1]",
        b'"text"',
        b'{"error":null}',
        b'{"error":{"message":[]}}',
        b'{"error":"\xff"}',
    ]
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(status=st.integers(400, 599), body=_JUNK, pair=st.sampled_from(PAIRS))
def test_error_is_never_a_success_and_always_has_the_clients_form(
    status: int, body: bytes, pair: Pair
) -> None:
    """Field report R5: whatever the backend says, its status stays and one JSON error goes out."""

    async def run() -> Got:
        async with trio.open_nursery() as nursery:
            wired: Wired = await wire(nursery)
            wired.backend(pair).steps = whole(status, body)
            got = await wired.ask(pair)
            nursery.cancel_scope.cancel(reason="asked")
        return got

    got = trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))

    assert got.status == status
    assert told(pair, got)[0]
