"""Spans of a graph: its execution, a child for each of its calls, their tries below them."""

from typing import Any

import pytest
import trio
import trio.testing
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind

from tests.fakes.graph_scene import BODY, GraphScene, said, start_graph
from tests.fakes.h2_client import reset
from tests.fakes.spans import context_of
from tests.fakes.traced import CLIENT, TRACE_ID
from tests.gateway.test_accounting import PARALLEL, SEQUENCE, TAIL
from tests.upstream.raw_backend import reply
from tests.upstream.scenes import OK, SILENT, failing

RETRIES = "{retry_count: 1, retry_on: 5xx, retry_back_off_base: 1ms}"
HEDGE = """
    {id: race, type: parallel, over: [alpha, beta], as: model, first_k: 1,
        do: [{id: answer, type: call, model: $model}]},
    {id: first, type: aggregate, strategy: first_success, from: $race},
    {type: respond, from: $first}"""


def fields_of(span: ReadableSpan) -> dict[str, Any]:
    """Return a span's attributes."""
    return dict(span.attributes or {})


def calls_of(scene: GraphScene) -> list[ReadableSpan]:
    """Return the spans of calls."""
    return [span for span in scene.recorder.spans if span.name == "looper.attempt"]


def seconds(span: ReadableSpan) -> float:
    """Return how long a span lasted."""
    return round(((span.end_time or 0) - (span.start_time or 0)) / 1e9, 1)


async def test_calls_stand_below_the_execution_and_tries_below_calls(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Side by side, one of them tried twice: each backend is told the span of its own try."""
    busy, quick, slow = (2.0, *failing(503)), (1.0, said()), (3.0, said())
    scene = await start_graph(
        nursery, PARALLEL, [busy], [quick], [slow], reliability=RETRIES, is_traced=True
    )

    await scene.ask(*CLIENT)

    assert scene.recorder.tree() == [
        "request 200",
        "  looper.execute",
        "    looper.attempt answer alpha failed !upstream_error",
        "      upstream.attempt alpha 1 backend-1 5xx 503 !status",
        "      upstream.attempt alpha 2 backend-1 5xx 503 !status",
        "    looper.attempt answer beta succeeded",
        "      upstream.attempt beta 1 backend-1 2xx 200",
        "    looper.attempt answer gamma succeeded",
        "      upstream.attempt gamma 1 backend-1 2xx 200",
    ]
    tries = [span for span in scene.recorder.spans if span.name.endswith("upstream.attempt")]
    own = [f"00-{TRACE_ID}-{context_of(span).span_id:016x}-01" for span in tries]
    seen = [head for backend in scene.backends for head, _ in backend.seen]
    assert [head.fields[b"traceparent"].decode() for head in seen] == own
    assert {head.fields[b"tracestate"] for head in seen} == {b"vendor=x"}
    kinds = {span.name.rpartition(".")[2]: span.kind for span in scene.recorder.spans[:3]}
    assert kinds == {
        "request": SpanKind.SERVER,
        "execute": SpanKind.INTERNAL,
        "attempt": SpanKind.CLIENT,
    }
    assert [seconds(span) for span in calls_of(scene)] == [4, 1, 3]


async def test_attributes_tell_what_is_known_of_a_call(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Unknown usage has no attribute."""
    scene = await start_graph(
        nursery, SEQUENCE, [(1.5, said())], [(said(has_usage=False),)], is_traced=True
    )

    await scene.ask()

    _, execute, *_ = scene.recorder.spans
    assert fields_of(execute) == {"looper.algorithm": "tested"}
    first, second = map(fields_of, calls_of(scene))
    assert first == {
        "looper.algorithm": "tested",
        "looper.attempt.ordinal": 1,
        "looper.attempt.stage": "draft",
        "looper.attempt.model": "alpha",
        "looper.attempt.status": "succeeded",
        "looper.attempt.total_latency_ms": 1500,
        "looper.attempt.first_byte_latency_ms": 1500,
        "looper.attempt.prompt_tokens": 3,
        "looper.attempt.completion_tokens": 4,
        "looper.attempt.usable": True,
    }
    assert second["looper.attempt.ordinal"] == 2
    assert {"looper.attempt.prompt_tokens", "looper.attempt.completion_tokens"}.isdisjoint(second)
    assert "model.token_count_prompt" not in fields_of(scene.recorder.spans[0])


async def test_call_that_the_router_makes_is_a_child_as_well(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """And the execution lasts until its answer has been passed on."""
    scene = await start_graph(nursery, TAIL, [(1.0, said())], [(2.0, said())], is_traced=True)

    await scene.ask(*CLIENT)

    assert scene.recorder.tree() == [
        "request 200",
        "  looper.execute",
        "    looper.attempt draft alpha succeeded",
        "      upstream.attempt alpha 1 backend-1 2xx 200",
        "    looper.attempt final beta succeeded",
        "      upstream.attempt beta 1 backend-1 2xx 200",
    ]
    root, execute, *_ = scene.recorder.spans
    assert (seconds(root), seconds(execute)) == (3, 3)
    assert [seconds(span) for span in calls_of(scene)] == [1, 2]
    assert fields_of(root)["model.token_count_prompt"] == 6
    last = scene.recorder.spans[-1]
    [(head, _)] = scene.backends[1].seen
    assert head.fields[b"traceparent"].decode()[36:52] == f"{context_of(last).span_id:016x}"


@pytest.mark.parametrize("http", [1, 2])
async def test_client_that_leaves_is_no_failure_of_a_backend(
    http: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Request, execution and the call under way are cancelled; what had succeeded has."""
    scene = await start_graph(nursery, SEQUENCE, [(said(),)], [SILENT], is_traced=True)
    if http == 1:
        client = await scene.begin()
        await trio.sleep(5)
        client.close()
    else:
        h2 = await scene.begin_h2(nursery)
        await trio.sleep(5)
        await h2.send(reset(1))
    await trio.testing.wait_all_tasks_blocked()

    assert scene.recorder.tree() == [
        "request !cancelled",
        "  looper.execute !cancelled",
        "    looper.attempt draft alpha succeeded",
        "      upstream.attempt alpha 1 backend-1 2xx 200",
        "    looper.attempt final beta cancelled !request_cancelled",
        "      upstream.attempt beta 1 backend-1 cancelled !cancelled",
    ]
    root = fields_of(scene.recorder.spans[0])
    assert (root["request.outcome"], root["request.cause"]) == ("cancelled", "client_gone")
    assert (root["request.attempts"], root["decision.name"]) == (2, "hard")
    assert fields_of(calls_of(scene)[1])["error.type"] == "request_cancelled"


async def test_deadline_of_the_graph(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It is that of all that was under way."""
    limits = "limits: {timeout: 3s}"
    scene = await start_graph(nursery, SEQUENCE, [SILENT], [OK], limits=limits, is_traced=True)

    await scene.ask()

    assert [line for line in scene.recorder.tree() if "upstream" not in line] == [
        "request 504 !deadline",
        "  looper.execute !deadline",
        "    looper.attempt draft alpha timed_out !deadline_exceeded",
    ]
    assert fields_of(scene.recorder.spans[1])["error.type"] == "deadline_exceeded"


async def test_budget_that_refuses_a_call(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The call that it refused was none; an error of the client's is no failure of the request."""
    limits = "limits: {max_hops: 1}"
    scene = await start_graph(nursery, SEQUENCE, [(said(),)], [OK], limits=limits, is_traced=True)

    await scene.ask()

    assert [line for line in scene.recorder.tree() if "upstream" not in line] == [
        "request 429",
        "  looper.execute !budget",
        "    looper.attempt draft alpha succeeded",
    ]


async def test_branch_that_is_not_needed_any_more_has_not_failed(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It is cancelled, and says why."""
    scene = await start_graph(nursery, HEDGE, [SILENT], [(1.0, said())], is_traced=True)

    await scene.ask()

    assert [line for line in scene.recorder.tree() if "upstream" not in line] == [
        "request 200",
        "  looper.execute",
        "    looper.attempt answer alpha cancelled",
        "    looper.attempt answer beta succeeded",
    ]
    lost = fields_of(calls_of(scene)[0])
    assert (lost["looper.attempt.reason"], "error.type" in lost) == ("lost", False)
    line = await scene.line()
    told = [(each["outcome"], each["cause"], each["error"]) for each in line["calls"]]
    assert told == [("cancelled", "lost", None), ("succeeded", None, None)]


async def test_spans_of_a_graph_are_bounded(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The first hundred calls have spans; how many had none is told."""
    steps = """{id: rounds, type: loop, times: 103, max_items: 103, do: [
        {id: said, type: call, model: alpha}]},
        {id: last, type: aggregate, strategy: last_success, from: $rounds},
        {type: respond, from: $last}"""
    scene = await start_graph(nursery, steps, [(said(),)], is_traced=True)

    await scene.ask()

    assert len(calls_of(scene)) == 100
    execute = fields_of(scene.recorder.spans[1])
    assert execute["looper.dropped_attempt_count"] == 3
    line = await scene.line()
    assert (len(line["calls"]), line["calls_dropped"], line["prompt_tokens"]) == (100, 3, 309)


@pytest.mark.parametrize("is_sampled", [True, False])
async def test_hops_carry_the_trace_also_where_it_is_not_sampled(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, *, is_sampled: bool
) -> None:
    """With ids of their own and the flag off; no span is made."""
    scene = await start_graph(nursery, SEQUENCE, [(said(),)], [(said(),)], is_traced=True)
    flag = b"01" if is_sampled else b"00"
    parent = b"00-" + TRACE_ID.encode() + b"-00f067aa0ba902b7-" + flag

    await scene.ask((b"traceparent", parent))

    seen = [backend.seen[0][0].fields[b"traceparent"] for backend in scene.backends]
    assert [each[3:35].decode() for each in seen] == [TRACE_ID] * 2
    assert len({each[36:52] for each in seen} | {b"00f067aa0ba902b7"}) == 3
    assert {each[53:] for each in seen} == {flag}
    assert bool(scene.recorder.spans) is is_sampled


async def test_no_span_and_no_line_holds_what_was_said(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Prompts, answers and errors of backends."""
    scene = await start_graph(
        nursery,
        SEQUENCE.replace("model: beta", "model: beta, on_error: skip").replace("$final", "$draft"),
        [(said("canary-answer"),)],
        [(reply(400, b'{"error":{"message":"canary-error"}}'),)],
        is_traced=True,
    )

    await scene.ask(body=BODY.replace(b"Hello there", b"canary-prompt"))

    told = [*(span.to_json() for span in scene.recorder.spans), str(await scene.line())]
    assert [text for text in told if "canary" in text] == []
    assert len(calls_of(scene)) == 2


async def test_cascade_tells_how_sure_each_answer_was(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The reference's algorithm: a score, its threshold, and whether that was enough."""
    sure = b'{"token":"x","logprob":-0.01,"top_logprobs":[]}'
    unsure = sure.replace(b"-0.01", b"-3.0")
    routing = "{confidence_method: avg_logprob, threshold: 0.5, escalation_order: declared}"
    scene = await start_graph(
        nursery,
        SEQUENCE,
        [(_scored(unsure),)],
        [(_scored(sure),)],
        is_traced=True,
        algorithm=f"{{type: confidence, confidence: {routing}}}",
    )

    await scene.ask()

    assert [line for line in scene.recorder.tree() if "upstream" not in line] == [
        "request 200",
        "  looper.execute",
        "    looper.attempt answer alpha succeeded",
        "    looper.attempt answer beta succeeded",
    ]
    names = ("accepted", "reason", "score", "threshold")
    found = [
        tuple(fields_of(span)[f"looper.attempt.{name}"] for name in names)
        for span in calls_of(scene)
    ]
    assert found == [
        (False, "threshold_not_met", 0.0, 0.5),
        (True, "threshold_met", pytest.approx(1 - 0.01 / 3), 0.5),
    ]
    assert fields_of(scene.recorder.spans[1])["looper.algorithm"] == "confidence"


def _scored(token: bytes) -> bytes:
    message = b'"message":{"role":"assistant","content":"x"}'
    return reply(
        200,
        b'{"id":"c","model":"m","choices":[{"index":0,%b,"logprobs":{"content":[%b]}}]}'
        % (message, token),
    )
