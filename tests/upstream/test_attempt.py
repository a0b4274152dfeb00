"""One attempt at one endpoint: what a client is told when it fails, and when."""

import errno

import attrs
import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd, Got, chat_body
from tests.fakes.backend import start_backend
from tests.fakes.router import RunningRouter, document_of, model_of, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.http.framing import RequestHead
from vsr.network.memory import Fault as NetworkFault
from vsr.network.memory import MemoryNetwork

PREFIX = b"upstream connect error or disconnect/reset before headers. reset reason: "
BUFFERED, STREAMED = chat_body(model="auto"), chat_body(model="auto", stream=True)
TIMEOUTS = "{connect_timeout: 3s, total_timeout: 50s, idle_timeout: 7s}"


@attrs.frozen
class Met:
    """What became of a request."""

    got: Got
    at: float
    line: dict[str, object]


async def _meet(router: RunningRouter, body: bytes = BUFFERED) -> Met:
    got = await router.ask(body)
    at = trio.current_time()
    assert await router.held() == (0, 0)
    [line] = await router.log()
    return Met(got, at, line)


def _check_local_reply(got: Got, status: int, text: bytes) -> None:
    assert (got.end, got.status, got.body) == (AnswerEnd.WHOLE, status, text)
    assert got.head is not None
    assert got.head.lines == [
        (b"content-type", b"text/plain"),
        (b"content-length", b"%d" % len(text)),
    ], "a local reply skips the response phases"
    assert got.is_reusable


@pytest.mark.parametrize(
    ("host", "scheme", "text", "flag", "at"),
    [
        (
            "refused.test",
            "http",
            PREFIX + b"remote connection failure, transport failure reason: "
            b"delayed connect error: %d" % errno.ECONNREFUSED,
            "UF",
            0,
        ),
        ("unknown.test", "http", b"no healthy upstream", "UH", 0),
        ("silent.test", "http", PREFIX + b"connection timeout", "UF", 3),
        ("silent.test", "https", PREFIX + b"connection timeout", "UF", 3),
    ],
)
async def test_failed_connection_is_a_local_reply(
    host: str,
    scheme: str,
    text: bytes,
    flag: str,
    at: float,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Envoy's statuses and texts; nothing was sent, and the log says so."""
    network = MemoryNetwork()
    network.faults |= {
        "unknown.test": NetworkFault.UNKNOWN_HOST,
        "silent.test": NetworkFault.SILENT,
    }
    ref = model_of(1, base_url=f"'{scheme}://{host}:1/v1'", reliability=TIMEOUTS)
    router = await start_router(nursery, network, document_of(ref))

    met = await _meet(router)

    _check_local_reply(met.got, 503, text)
    assert met.at == pytest.approx(at)
    assert (met.line["response_flags"], met.line["outcome"]) == (flag, "failed")
    assert (met.line["attempts"], met.line["upstream_host"]) == (1, "")


async def test_backend_without_tls_is_a_connect_failure(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The text carries OpenSSL's word and no address."""
    network = MemoryNetwork()
    listener = await network.listen("", 0)
    ref = model_of(1, base_url=f"'https://plain.test:{listener.port}/v1'", reliability=TIMEOUTS)
    router = await start_router(nursery, network, document_of(ref))

    async def answer_in_the_clear() -> None:
        connection = await listener.accept()
        await connection.receive()
        await connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        connection.close()

    nursery.start_soon(answer_in_the_clear)
    met = await _meet(router)

    reason = b"remote connection failure, transport failure reason: TLS_error:|"
    assert met.got.status == 503
    assert met.got.body.startswith(PREFIX + reason)
    assert met.got.body.endswith(b":TLS_error_end")
    assert b"plain.test" not in met.got.body
    assert network.open_connections == 0


async def test_silent_tls_handshake_counts_as_connecting(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """TCP and TLS together have the connect timeout; the connection is closed with it."""
    network = MemoryNetwork()
    backend = await RawBackend(network, b"", reads=False).start(nursery)
    ref = model_of(1, base_url=f"'https://mute.test:{backend.port}/v1'", reliability=TIMEOUTS)
    router = await start_router(nursery, network, document_of(ref))

    met = await _meet(router)

    _check_local_reply(met.got, 503, PREFIX + b"connection timeout")
    assert met.at == pytest.approx(3)
    assert backend.gone_at == [pytest.approx(3)]


@pytest.mark.parametrize("body", [BUFFERED, STREAMED], ids=["buffered", "streamed"])
@pytest.mark.parametrize(
    ("script", "at"),
    [
        (Script(fault=Fault.SILENCE), 50),
        (Script(latency_s=60), 50),
        (Script(fault=Fault.TRICKLE, chunk_interval_s=5), 50),
    ],
)
async def test_total_timeout_before_the_head_is_a_504(
    script: Script,
    at: float,
    body: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The idle limit does not cover the wait for a head; the backend is left at that instant."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, script)
    document = document_of(model_of(backend.port, reliability=TIMEOUTS))
    router = await start_router(nursery, network, document)

    met = await _meet(router, body)

    _check_local_reply(met.got, 504, b"upstream request timeout")
    assert met.at == pytest.approx(at)
    assert backend.calls[0].ended_at == pytest.approx(at)
    assert (met.line["outcome"], met.line["cause"], met.line["response_flags"]) == (
        "timed_out",
        "deadline",
        "UT",
    )


@pytest.mark.parametrize(
    ("body", "script", "end", "at"),
    [
        # A body that is collected can still be answered for, a stream can only break.
        (BUFFERED, Script(fault=Fault.STALL_MIDSTREAM), AnswerEnd.WHOLE, 7),
        (BUFFERED, Script(fault=Fault.SLOW_FIRST_BYTE), AnswerEnd.WHOLE, 7),
        (STREAMED, Script(fault=Fault.SLOW_FIRST_BYTE), AnswerEnd.WHOLE, 7),
        (STREAMED, Script(fault=Fault.STALL_MIDSTREAM), AnswerEnd.CUT, 7),
        (STREAMED, Script(chunks=10, chunk_interval_s=8), AnswerEnd.CUT, 7),
        (STREAMED, Script(chunks=90, chunk_interval_s=6), AnswerEnd.CUT, 50),
    ],
)
async def test_timeout_after_the_head_is_a_504_or_a_break(
    body: bytes,
    script: Script,
    end: AnswerEnd,
    at: float,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Idle after seven silent seconds, total after fifty."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, script)
    document = document_of(model_of(backend.port, reliability=TIMEOUTS))
    router = await start_router(nursery, network, document)

    met = await _meet(router, body)

    assert met.at == pytest.approx(at)
    assert backend.calls[0].ended_at == pytest.approx(at)
    assert met.got.end is end
    if end is AnswerEnd.WHOLE:
        _check_local_reply(met.got, 504, b"upstream request timeout")
    else:
        assert met.got.status == 200
        assert b"[DONE]" not in met.got.body
    assert (met.line["outcome"], met.line["cause"]) == ("timed_out", "deadline")


async def test_idle_and_total_timeout_at_one_instant_are_one_504(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Whichever is served first: an answer that was not begun is not broken off."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, Script(fault=Fault.STALL_MIDSTREAM))
    timeouts = "{total_timeout: 5s, idle_timeout: 5s}"
    document = document_of(model_of(backend.port, reliability=timeouts))
    router = await start_router(nursery, network, document)

    answers = [await router.ask(BUFFERED) for _ in range(16)]

    assert [(got.end, got.status) for got in answers] == [(AnswerEnd.WHOLE, 504)] * 16
    assert trio.current_time() == pytest.approx(16 * 5)


@pytest.mark.parametrize(
    ("listener", "reliability", "at"),
    [
        ("timeout: 20s", "{}", 20),
        ("timeout: 20s", "{total_timeout: 5s}", 5),
        ("timeout: 20s", "{total_timeout: 90s, idle_timeout: 90s}", 90),
        ("timeout: 0s", "{}", None),
        ("timeout: 20s", "{total_timeout: 0s}", None),
    ],
)
async def test_timeouts_are_inherited_from_the_listener(
    listener: str,
    reliability: str,
    at: float | None,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Zero means no limit."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, Script(latency_s=10_000))
    document = document_of(model_of(backend.port, reliability=reliability), listener=listener)
    router = await start_router(nursery, network, document)

    got = await router.ask(BUFFERED, patience_s=50_000)

    assert got.status == (200 if at is None else 504)
    assert trio.current_time() == pytest.approx(10_000 if at is None else at)


async def test_total_timeout_covers_connecting(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The earlier of the two ends it, with its own text."""
    network = MemoryNetwork()
    network.faults["silent.test"] = NetworkFault.SILENT
    timeouts = "{connect_timeout: 10s, total_timeout: 4s}"
    ref = model_of(1, base_url="'http://silent.test:1/v1'", reliability=timeouts)
    router = await start_router(nursery, network, document_of(ref))

    met = await _meet(router)

    _check_local_reply(met.got, 504, b"upstream request timeout")
    assert met.at == pytest.approx(4)


async def test_total_timeout_covers_a_backend_that_does_not_read(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Writing has no limit of its own."""
    network = MemoryNetwork()
    backend = await RawBackend(network, b"", reads=False).start(nursery)
    document = document_of(model_of(backend.port, reliability=TIMEOUTS))
    router = await start_router(nursery, network, document)

    met = await _meet(router, chat_body("x" * 1_000_000, model="auto"))

    _check_local_reply(met.got, 504, b"upstream request timeout")
    assert backend.gone_at == [pytest.approx(50)]


async def test_early_answer_of_a_backend_that_stops_reading_gets_through(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A 413 on the head alone, its connection then closed, is the answer and no reset."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, Script(fault=Fault.REFUSE_BODY))
    router = await start_router(nursery, network, document_of(model_of(backend.port)))

    met = await _meet(router, chat_body("x" * 1_000_000, model="auto"))

    assert (met.got.status, met.got.end) == (413, AnswerEnd.WHOLE)
    assert b"too large" in met.got.body
    assert met.line["upstream_host"] == f"127.0.0.1:{backend.port}"


@pytest.mark.parametrize(
    "status", [400, 401, 403, 404, 408, 409, 422, 429, 500, 502, 503, 529, 599]
)
@pytest.mark.parametrize("body", [b"", b"null", b"not json", b'{"error":{"message":"m"}}'])
async def test_backend_error_keeps_its_status_and_its_fields(
    status: int, body: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field reports R5 and X7: never a 2xx; `retry-after` and rate limits keep their names."""
    fields = [
        (b"retry-after", b"2"),
        (b"x-ratelimit-limit-requests", b"10"),
        (b"x-ratelimit-remaining-tokens", b"0"),
        (b"x-request-id", b"backend-id"),
    ]
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(status, body, *fields)).start(nursery)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))

    met = await _meet(router)

    assert met.got.status == status
    error = met.got.json()["error"]
    assert isinstance(error, dict)
    assert list(error) == ["type", "code", "message", "param"]
    told = {b"not json": "not json", b'{"error":{"message":"m"}}': "m"}
    assert error["message"] == told.get(body, f"The backend answered with status {status}.")
    assert met.got.line(b"content-type") == b"application/json"
    assert met.got.head is not None
    assert set(fields) <= set(met.got.head.lines)
    assert met.got.line(b"x-vsr-response-path") == b"upstream"
    assert met.got.line(b"x-vsr-selected-model") == b""
    assert (met.line["outcome"], met.line["attempts"]) == ("failed", 1)


async def test_client_errors_leave_the_endpoint_in_rotation(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report O1: a thousand 400s are the clients' fault, not the backend's."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(400, b"{}")).start(nursery)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))

    statuses = {(await router.ask(BUFFERED)).status for _ in range(1000)}
    backend.answer = reply(200, b"{}")

    assert statuses == {400}
    assert (await router.ask(BUFFERED)).status == 200
    assert len(backend.accepted) == 1


async def test_redirect_is_passed_on_and_not_followed(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Following would send credentials where the configuration never said."""

    def answer(head: RequestHead, _body: bytes) -> bytes:
        return reply(307, b"", (b"location", b"http://127.0.0.1:1" + head.target))

    network = MemoryNetwork()
    backend = await RawBackend(network, answer).start(nursery)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))

    met = await _meet(router)

    assert met.got.status == 307
    assert met.got.line(b"location") == b"http://127.0.0.1:1/v1/chat/completions"
    assert len(backend.seen) == 1
