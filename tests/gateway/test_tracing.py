"""Spans of requests: exact trees for every way in which one ends."""

from functools import partial

import pytest
import trio
import trio.testing
from opentelemetry.trace import SpanKind

from tests.demo.raw_client import CHAT, chat_body
from tests.fakes.h2_client import H2Client
from tests.fakes.spans import context_of
from tests.fakes.traced import BEGUN, BUSY, CLIENT, FINE, HUNG, SPAN_ID, TRACE_ID, start_traced
from tests.upstream.raw_backend import reply


async def test_plain_call_has_a_span_for_request_call_and_attempt(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The root goes on with the client's trace; the attempt's span is the one the backend sees."""
    bench = await start_traced(nursery, FINE)

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
    bench = await start_traced(nursery, FINE, routing=routing)

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


async def test_each_call_of_a_fallback_chain_has_a_span(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """With its attempts; the root names the model that served."""
    refs = "[{model: alpha}, {model: beta}, {model: gamma}]"
    routing = f"{{decisions: [{{name: all, modelRefs: {refs}, fallback: {{enabled: true}}}}]}}"
    bench = await start_traced(nursery, BUSY, BUSY, FINE, routing=routing)

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
    bench = await start_traced(nursery, BUSY, BUSY, routing=routing)

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
    bench = await start_traced(nursery, HUNG, reliability=reliability)

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
    bench = await start_traced(nursery, HUNG)

    await bench.ask(patience_s=5)

    assert bench.recorder.tree() == [
        "request !cancelled",
        "  upstream.request alpha !cancelled",
        "    upstream.attempt alpha 1 backend-1 cancelled !cancelled",
    ]
    fields = dict(bench.recorder.spans[0].attributes or {})
    assert (fields["request.outcome"], fields["request.cause"]) == ("cancelled", "client_gone")


async def test_client_that_leaves_cancels_the_last_call_alone(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The one before had failed by itself."""
    refs = "[{model: alpha}, {model: beta}]"
    routing = f"{{decisions: [{{name: all, modelRefs: {refs}, fallback: {{enabled: true}}}}]}}"
    bench = await start_traced(nursery, BUSY, HUNG, routing=routing)

    await bench.ask("auto", patience_s=5)

    assert [line for line in bench.recorder.tree() if "attempt" not in line] == [
        "request !cancelled",
        "  upstream.request alpha 503 !call_failed",
        "  upstream.request beta !cancelled",
    ]


async def test_client_that_leaves_a_stream_does_not_fail_its_attempt(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The backend did all that it was asked until then."""
    bench = await start_traced(nursery, BEGUN)

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
    bench = await start_traced(nursery, BEGUN)
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
    bench = await start_traced(
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
    bench = await start_traced(nursery, HUNG)
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
    bench = await start_traced(nursery, FINE, listener=listener, routing=routing)
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
    bench = await start_traced(nursery, FINE)
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
    bench = await start_traced(
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
