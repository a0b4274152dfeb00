"""Spans of requests: exact trees for every way in which one ends, and what backends are told."""

from collections.abc import Callable
from functools import partial

import attrs
import pytest
import trio
import trio.testing
from opentelemetry.trace import SpanKind

from tests.demo.raw_client import CHAT, Got, chat_body
from tests.fakes.h2_client import H2Client
from tests.fakes.router import RunningRouter, document_of, model_of, start_router
from tests.fakes.spans import TRACED, SpanRecorder, context_of
from tests.upstream.raw_backend import Answer, RawBackend, reply
from vsr.headers import HeaderLine
from vsr.http.h1_client import encode_request
from vsr.network.memory import MemoryNetwork
from vsr.routing.trace import parse_traceparent
from vsr.telemetry.spans import SpanTree

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN_ID = "00f067aa0ba902b7"
CLIENT: list[HeaderLine] = [
    (b"traceparent", f"00-{TRACE_ID}-{SPAN_ID}-01".encode()),
    (b"tracestate", b"vendor=x"),
    (b"baggage", b"k=v"),
]
FINE = reply(200, b'{"usage":{"prompt_tokens":3,"completion_tokens":4}}')
BUSY = reply(503, b"{}")
HUNG = b""
BEGUN = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    b"transfer-encoding: chunked\r\n\r\n6\r\n: hi\n\n\r\n"
)
"""A stream that does not go on."""


@attrs.define(eq=False)
class Bench:
    """A traced Router whose models have a backend each."""

    router: RunningRouter
    recorder: SpanRecorder
    backends: list[RawBackend]

    async def ask(self, model: str = "alpha", *lines: HeaderLine, patience_s: float = 1000) -> Got:
        """Ask a model, and let the request end."""
        got = await self.router.ask(chat_body(model=model), lines=lines, patience_s=patience_s)
        await trio.testing.wait_all_tasks_blocked()
        return got

    def parents(self) -> list[str]:
        """Return the `traceparent` of every request that backends have seen, in order."""
        seen = [head for backend in self.backends for head, _ in backend.seen]
        return [head.fields[b"traceparent"].decode() for head in seen]

    def attempt_ids(self) -> list[str]:
        """Return the id of every attempt's span, in order."""
        spans = [span for span in self.recorder.spans if span.name.endswith(".attempt")]
        return [f"{context_of(span).span_id:016x}" for span in spans]


async def start(
    nursery: trio.Nursery,
    *answers: Answer | bytes,
    reliability: str = "",
    routing: str = "",
    tracing: str = "{exporter: {type: stdout}}",
    listener: str = "",
) -> Bench:
    """Start one with a model per answer: alpha, beta, gamma."""
    network, recorder = MemoryNetwork(), SpanRecorder()
    backends = [await RawBackend(network, each).start(nursery) for each in answers]
    more = {"reliability": reliability} if reliability else {}
    names = ("alpha", "beta", "gamma")
    models = [
        model_of(backend.port, name, **more) for name, backend in zip(names, backends, strict=False)
    ]
    document = document_of(*models, routing=routing, listener=listener)
    block = f"global: {{services: {{observability: {{tracing: {tracing}}}}}}}"
    router = await start_router(nursery, network, f"{document}\n{block}", open_spans=recorder.open)
    return Bench(router, recorder, backends)


async def test_plain_call_has_a_span_for_request_call_and_attempt(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The root goes on with the client's trace; the attempt's span is the one the backend sees."""
    bench = await start(nursery, FINE)

    await bench.ask("alpha", *CLIENT)

    assert bench.recorder.tree() == [
        "request 200",
        "  upstream.request alpha 200",
        "    upstream.attempt alpha 1 backend-1 2xx 200",
    ]
    root, call, attempt = bench.recorder.spans
    assert [span.kind for span in (root, call, attempt)] == [
        SpanKind.SERVER,
        SpanKind.CLIENT,
        SpanKind.CLIENT,
    ]
    assert root.parent is not None
    assert (f"{root.parent.span_id:016x}", root.parent.is_remote) == (SPAN_ID, True)
    assert {f"{context_of(span).trace_id:032x}" for span in bench.recorder.spans} == {TRACE_ID}
    [(head, _)] = bench.backends[0].seen
    assert bench.parents() == [f"00-{TRACE_ID}-{bench.attempt_ids()[0]}-01"]
    assert head.fields[b"tracestate"] == b"vendor=x"
    assert head.fields[b"baggage"] == b"k=v"


async def test_root_tells_what_became_of_the_request(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Names of the configuration, counts and closed words; the path without its query."""
    routing = "{decisions: [{name: all, modelRefs: [{model: alpha}]}]}"
    bench = await start(nursery, FINE, routing=routing)

    await bench.router.ask(
        chat_body(model="auto"), target=CHAT + b"?key=canary", lines=[(b"x-request-id", b"r-1")]
    )
    await trio.testing.wait_all_tasks_blocked()

    root, _, attempt = bench.recorder.spans
    assert dict(root.attributes or {}) == {
        "request.id": "r-1",
        "http.method": "POST",
        "http.path": "/v1/chat/completions",
        "http.status_code": 200,
        "listener.name": "http",
        "request.outcome": "succeeded",
        "request.attempts": 1,
        "config.version": 1,
        "decision.name": "all",
        "recipe.name": "default",
        "model.name": "alpha",
        "model.token_count_prompt": 3,
        "model.token_count_completion": 4,
    }
    port = bench.backends[0].port
    assert dict(attempt.attributes or {}) == {
        "upstream.cluster": "alpha",
        "upstream.endpoint": "backend-1",
        "endpoint.address": f"127.0.0.1:{port}",
        "upstream.attempt": 1,
        "upstream.outcome": "2xx",
        "http.status_code": 200,
    }


async def test_each_retry_has_a_span_and_a_context_of_its_own(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A call that succeeds in the end has not failed, but its first attempt has."""
    answers = iter([BUSY, BUSY, FINE])
    bench = await start(
        nursery, lambda *_: next(answers), reliability="{retry_count: 2, retry_on: 5xx}"
    )

    await bench.ask("alpha", *CLIENT)

    assert bench.recorder.tree() == [
        "request 200",
        "  upstream.request alpha 200",
        "    upstream.attempt alpha 1 backend-1 5xx 503 !status",
        "    upstream.attempt alpha 2 backend-1 5xx 503 !status",
        "    upstream.attempt alpha 3 backend-1 2xx 200",
    ]
    ids = bench.attempt_ids()
    assert len(set(ids)) == 3
    assert bench.parents() == [f"00-{TRACE_ID}-{each}-01" for each in ids]
    for head, _ in bench.backends[0].seen:
        assert [name for name, _ in head.lines].count(b"traceparent") == 1


async def test_each_call_of_a_fallback_chain_has_a_span(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """With its attempts; the root names the model that served."""
    refs = "[{model: alpha}, {model: beta}, {model: gamma}]"
    routing = f"{{decisions: [{{name: all, modelRefs: {refs}, fallback: {{enabled: true}}}}]}}"
    bench = await start(nursery, BUSY, BUSY, FINE, routing=routing)

    await bench.ask("auto")

    assert bench.recorder.tree() == [
        "request 200",
        "  upstream.request alpha 503 !call_failed",
        "    upstream.attempt alpha 1 backend-1 5xx 503 !status",
        "  upstream.request beta 503 !call_failed",
        "    upstream.attempt beta 1 backend-1 5xx 503 !status",
        "  upstream.request gamma 200",
        "    upstream.attempt gamma 1 backend-1 2xx 200",
    ]
    assert dict(bench.recorder.spans[0].attributes or {})["model.name"] == "gamma"
    assert [each[36:52] for each in bench.parents()] == bench.attempt_ids()
    assert {each[3:35] for each in bench.parents()} == {
        f"{context_of(bench.recorder.spans[0]).trace_id:032x}"
    }


async def test_chain_that_fails_is_a_failed_request(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The first model's answer is the client's; every call has failed, and so has the request."""
    refs = "[{model: alpha}, {model: beta}]"
    routing = f"{{decisions: [{{name: all, modelRefs: {refs}, fallback: {{enabled: true}}}}]}}"
    bench = await start(nursery, BUSY, BUSY, routing=routing)

    await bench.ask("auto")

    assert [line for line in bench.recorder.tree() if "attempt" not in line] == [
        "request 503 !call_failed",
        "  upstream.request alpha 503 !call_failed",
        "  upstream.request beta 503 !call_failed",
    ]


@pytest.mark.parametrize(
    ("reliability", "reason", "at"),
    [
        ("{total_timeout: 3s}", "timeout", 3),
        ("{per_try_timeout: 2s}", "timeout", 2),
        ("{first_byte_timeout: 1s}", "timeout", 1),
    ],
)
async def test_timeout_shows_where_it_passed(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    reliability: str,
    reason: str,
    at: int,
) -> None:
    """Request and call missed their deadline, the attempt timed out, all at that time."""
    bench = await start(nursery, HUNG, reliability=reliability)

    await bench.ask()

    assert bench.recorder.tree() == [
        "request 504 !deadline",
        "  upstream.request alpha !deadline",
        f"    upstream.attempt alpha 1 backend-1 {reason} !{reason}",
    ]
    for span in bench.recorder.spans:
        assert span.start_time is not None
        assert span.end_time is not None
        assert round((span.end_time - span.start_time) / 1e9, 3) == at


async def test_client_that_leaves_cancels_request_call_and_attempt(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its cause stands on the root; no status was written."""
    bench = await start(nursery, HUNG)

    await bench.ask(patience_s=5)

    assert bench.recorder.tree() == [
        "request !cancelled",
        "  upstream.request alpha !cancelled",
        "    upstream.attempt alpha 1 backend-1 cancelled !cancelled",
    ]
    fields = dict(bench.recorder.spans[0].attributes or {})
    assert (fields["request.outcome"], fields["request.cause"]) == ("cancelled", "client_gone")


async def test_client_that_leaves_a_stream_does_not_fail_its_attempt(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The backend did all that it was asked until then."""
    bench = await start(nursery, BEGUN)

    await bench.ask(patience_s=5)

    assert bench.recorder.tree() == [
        "request 200 !cancelled",
        "  upstream.request alpha 200 !cancelled",
        "    upstream.attempt alpha 1 backend-1 2xx 200",
    ]


async def test_body_that_breaks_fails_the_whole_tree(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Though the head said 200, to the client as well."""
    bench = await start(nursery, BEGUN)
    bench.backends[0].closes = True

    await bench.ask()

    assert bench.recorder.tree() == [
        "request 200 !call_failed",
        "  upstream.request alpha 200 !call_failed",
        "    upstream.attempt alpha 1 backend-1 reset 200 !reset",
    ]


async def test_call_without_an_attempt_is_a_call_all_the_same(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One that the breaker refuses, and one whose client leaves the line before it."""
    bench = await start(
        nursery, HUNG, reliability="{max_connections: 1, max_requests: 2, max_pending: 1}"
    )
    nursery.start_soon(partial(bench.ask, patience_s=5))
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(partial(bench.ask, patience_s=3))
    await trio.testing.wait_all_tasks_blocked()

    await bench.ask()
    await trio.sleep(4)

    assert bench.recorder.tree() == [
        "request 503 !call_failed",
        "  upstream.request alpha !call_failed",
        "request !cancelled",
        "  upstream.request alpha !cancelled",
    ]
    ends = [(span.end_time or 0) - (span.start_time or 0) for span in bench.recorder.spans]
    assert [round(each / 1e9, 3) for each in ends] == [0, 0, 3, 3]


async def test_refused_connection_is_an_attempt(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Without a status."""
    bench = await start(nursery, HUNG)
    bench.router.network.forget(bench.backends[0].port)

    await bench.ask()

    assert bench.recorder.tree() == [
        "request 503 !call_failed",
        "  upstream.request alpha !call_failed",
        "    upstream.attempt alpha 1 backend-1 connect_failure !connect_failure",
    ]


@pytest.mark.parametrize(
    ("target", "method", "status", "listener"),
    [
        (CHAT, b"POST", 401, "api_keys: [secret]"),
        (b"/v1/responses", b"GET", 404, ""),
        (b"/v1/models", b"GET", 200, ""),
        (CHAT, b"POST", 400, ""),
    ],
)
async def test_immediate_answer_is_a_root_alone(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    target: bytes,
    method: bytes,
    status: int,
    listener: str,
) -> None:
    """And an error that is the client's own is no failure of the Router."""
    routing = "{decisions: [{name: all, modelRefs: [{model: alpha}]}]}"
    bench = await start(nursery, FINE, listener=listener, routing=routing)
    body = chat_body(model="nobody's") if method == b"POST" else b""

    await bench.router.ask(body, target=target, method=method, lines=CLIENT)
    await trio.testing.wait_all_tasks_blocked()

    assert bench.recorder.tree() == [f"request {status}"]
    [root] = bench.recorder.spans
    assert f"{context_of(root).trace_id:032x}" == TRACE_ID


async def test_http2_request_is_traced_alike(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One connection, two streams, two traces."""
    bench = await start(nursery, FINE)
    client = await H2Client(await bench.router.connect()).start(nursery)

    for lines in (CLIENT, []):
        answer = await client.ask(chat_body(model="alpha"), lines=lines)
        assert answer.status == 200
    await trio.testing.wait_all_tasks_blocked()

    one = [
        "request 200",
        "  upstream.request alpha 200",
        "    upstream.attempt alpha 1 backend-1 2xx 200",
    ]
    assert bench.recorder.tree() == one * 2
    assert bench.parents()[0][3:35] == TRACE_ID
    assert bench.parents()[1][3:35] != TRACE_ID
    assert [each[36:52] for each in bench.parents()] == bench.attempt_ids()


@pytest.mark.parametrize("value", [b"nonsense", b"00-" + b"0" * 32 + b"-" + b"1" * 16 + b"-01"])
async def test_malformed_traceparent_begins_a_new_trace(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, value: bytes
) -> None:
    """The request is served; the backend sees neither the bad value nor the state behind it."""
    bench = await start(nursery, FINE)

    got = await bench.ask("alpha", (b"traceparent", value), (b"tracestate", b"a=1"))

    assert got.status == 200
    assert bench.recorder.spans[0].parent is None
    [(head, _)] = bench.backends[0].seen
    assert b"tracestate" not in head.fields
    assert parse_traceparent(head.fields[b"traceparent"]) is not None


@pytest.mark.parametrize(
    ("sampling", "flags", "spans"),
    [
        ("{type: always_on}", b"00", 0),
        ("{type: always_on}", b"01", 3),
        ("{type: probabilistic, rate: 0}", b"", 0),
        ("{type: probabilistic, rate: 0}", b"01", 3),
        ("{type: probabilistic, rate: 1}", b"", 3),
        ("{type: always_off}", b"01", 0),
    ],
)
async def test_request_that_is_not_sampled_still_names_its_spans(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    sampling: str,
    flags: bytes,
    spans: int,
) -> None:
    """In a `traceparent` that says so: nobody behind us records a torso."""
    bench = await start(
        nursery, FINE, tracing=f"{{exporter: {{type: stdout}}, sampling: {sampling}}}"
    )
    value = f"00-{TRACE_ID}-{SPAN_ID}-".encode() + flags

    await bench.ask("alpha", *([(b"traceparent", value)] if flags else []))

    assert len(bench.recorder.spans) == spans
    [sent] = bench.parents()
    parent = parse_traceparent(sent.encode())
    assert parent is not None
    assert parent.is_sampled is bool(spans)
    assert parent.span_id.decode() != SPAN_ID
    assert (parent.trace_id.decode() == TRACE_ID) is bool(flags)


async def test_retries_of_a_request_that_is_not_sampled_have_ids_of_their_own(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Propagation does not depend on who records."""
    bench = await start(
        nursery,
        BUSY,
        reliability="{retry_count: 2, retry_on: 5xx}",
        tracing="{exporter: {type: stdout}, sampling: {type: always_off}}",
    )

    await bench.ask("alpha", *CLIENT)

    assert len(bench.parents()) == len(set(bench.parents())) == 3
    assert all(each.endswith("-00") for each in bench.parents())


async def test_without_tracing_the_clients_context_passes(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """As any header does, and nothing is opened."""
    bench = await start(nursery, FINE, tracing="{enabled: false}")

    await bench.ask("alpha", *CLIENT)

    [(head, _)] = bench.backends[0].seen
    assert [(name, head.fields[name]) for name, _ in CLIENT] == CLIENT
    assert (bench.recorder.opened, bench.recorder.spans) == ([], ())


async def test_probe_is_not_traced(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It is no request of anybody's."""
    bench = await start(nursery, FINE)

    for target in (b"/health", b"/ready"):
        assert (await bench.router.ask(target=target, method=b"GET")).status == 200
    await trio.testing.wait_all_tasks_blocked()

    assert bench.recorder.spans == ()


async def test_drain_reaches_the_gateway(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What stands before it passes that on: it is not ready any more."""
    bench = await start(nursery, FINE)

    await bench.router.router.server.drain()

    assert bench.router.router.gateway.is_draining


async def test_no_span_holds_what_clients_and_backends_said(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Prompts, keys, header values, queries and answers, through success, retry and failure."""
    answers = iter(
        [
            reply(503, b"canary-of-an-answer", (b"x-answer", b"canary-of-a-header")),
            reply(200, b"canary-of-an-answer"),
            *[b"canary nonsense\r\n\r\n"] * 2,
            reply(400, b"canary-of-an-answer"),
        ]
    )
    bench = await start(
        nursery, lambda *_: next(answers), reliability="{retry_count: 1, retry_on: gateway-error}"
    )
    lines = [
        *CLIENT[:1],
        (b"authorization", b"Bearer canary-of-a-key"),
        (b"cookie", b"canary-of-a-cookie"),
        (b"baggage", b"k=canary-of-baggage"),
        (b"x-canary", b"canary-of-a-header"),
    ]
    for _ in range(3):
        body = chat_body("canary-of-a-prompt", model="alpha", user="canary-of-a-user")
        await bench.router.ask(body, target=CHAT + b"?key=canary-of-a-query", lines=lines)
    await trio.testing.wait_all_tasks_blocked()

    assert len(bench.recorder.spans) >= 10
    assert not [span.to_json() for span in bench.recorder.spans if "canary" in span.to_json()]


@attrs.define
class BrokenSink:
    """A sink of which nothing works."""

    close: Callable[[], None]

    def add(self, tree: SpanTree) -> None:
        """Fail."""
        raise RuntimeError(tree)


@pytest.mark.parametrize("is_stuck", [False, True])
async def test_sink_that_fails_or_hangs_harms_nobody(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
    *,
    is_stuck: bool,
) -> None:
    """Requests are served, and the Router ends in time."""
    network = MemoryNetwork()
    backend = await RawBackend(network, FINE).start(nursery)

    def close() -> None:
        if is_stuck:
            trio.from_thread.run(trio.sleep_forever)
        raise OSError

    document = f"{document_of(model_of(backend.port))}\n{TRACED}"
    started_at = trio.current_time()
    async with trio.open_nursery() as life:
        router = await start_router(life, network, document, open_spans=lambda _: BrokenSink(close))
        answers = [await router.ask(chat_body(model="alpha")) for _ in range(2)]
        await router.log()
        life.cancel_scope.cancel()

    assert [each.status for each in answers] == [200, 200]
    assert trio.current_time() - started_at <= 2.5
    assert "a trace is lost" in caplog.text


async def test_waiting_client_bytes_are_those_of_an_untraced_router(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Tracing adds nothing to what clients get."""
    texts = []
    for tracing in ("{enabled: false}", "{exporter: {type: stdout}}"):
        async with trio.open_nursery() as life:
            bench = await start(life, FINE, tracing=tracing)
            connection = await bench.router.connect()
            body = chat_body(model="alpha")
            line = (b"x-request-id", b"r")
            await connection.send(encode_request(b"POST", CHAT, b"r", [line], len(body)) + body)
            texts.append(await connection.receive())
            life.cancel_scope.cancel()

    names = [[line.partition(b":")[0] for line in text.split(b"\r\n")] for text in texts]
    assert names[0] == names[1]
