"""Comments of a stream that a graph answers: when they come, and what comes behind them."""

import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.gateway.commented import (
    AFTER_2S,
    KEEP_ALIVE,
    MESSAGES,
    ONE_CALL,
    TOLD,
    VERSIONS,
    ask,
    ask_h1,
    hear,
    routing,
    start,
    times,
)
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.engine.pipeline import RoutingEngine


@VERSIONS
async def test_comment_comes_after_each_silence(
    version: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """While a step is at work, and while the last call is; then the stream as it always is."""
    scene = await start(nursery, routing(AFTER_2S), Script(latency_s=7), Script(latency_s=4))

    heard = await ask(version, nursery, scene)

    assert times(heard) == [2, 4, 6, 8, 10]
    assert {block for _, block in heard.comments} == {KEEP_ALIVE}
    assert heard.is_ordered
    assert (heard.status, heard.line(b"content-type")) == (200, b"text/event-stream")
    assert heard.line(b"x-vsr-selected-decision") == b"all"
    assert heard.events[-1] == b"data: [DONE]\n\n"
    assert heard.is_whole
    [line] = await scene.router.log()
    assert (line["response_code"], line["outcome"], line["attempts"]) == (200, "succeeded", 2)
    assert round(line["first_byte_ms"]) == 11_000
    assert await scene.router.held() == (0, 0)


@VERSIONS
async def test_fast_answer_has_no_comments(
    version: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nor is its head another one than without the key."""
    scene = await start(nursery, routing("{keep_alive_after: 30s}"))
    plain = await start(nursery, routing(""))

    heard = await ask(version, nursery, scene)
    without = await ask(version, nursery, plain)

    names = [name for name, _ in without.lines]
    assert heard.comments == []
    assert [name for name, _ in heard.lines] == names
    assert heard.line(b"x-vsr-selected-model") == b"beta"
    assert heard.is_whole


@VERSIONS
async def test_progress_tells_of_each_step_and_call_in_order(
    version: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """As they happen, in words of the configuration alone."""
    scene = await start(nursery, routing(TOLD), Script(latency_s=3), Script(latency_s=4))

    heard = await ask(version, nursery, scene)

    assert [(round(at), block.decode().strip()) for at, block in heard.comments] == [
        (0, ": vsr step=first type=call status=started"),
        (0, ": vsr step=first call=1 model=alpha status=started"),
        (3, ": vsr step=first call=1 model=alpha status=succeeded"),
        (3, ": vsr step=first status=succeeded"),
        (3, ": vsr step=last type=call status=started"),
        (3, ": vsr step=last call=2 model=beta status=started"),
        (3, ": vsr step=last status=handed_out"),
    ]
    assert heard.is_ordered
    assert heard.events[-1] == b"data: [DONE]\n\n"


async def test_progress_breaks_the_silence(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A comment is due when nothing was sent for so long, whatever was sent before."""
    text = routing("{progress: true, keep_alive_after: 2s}")
    scene = await start(nursery, text, Script(latency_s=3), Script(latency_s=3))

    heard = await ask_h1(scene)

    assert [at for at, block in heard.comments if block == KEEP_ALIVE] == pytest.approx([2, 5])


async def test_answer_of_the_graph_itself_is_streamed_behind_comments(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What `respond` makes of a whole reply goes on the stream that has begun."""
    scene = await start(nursery, routing(AFTER_2S, ONE_CALL), Script(latency_s=5))

    heard = await ask_h1(scene)

    assert times(heard) == [2, 4]
    assert b"Hello there" in heard.body.replace(b'"}', b"")
    assert heard.events[-1] == b"data: [DONE]\n\n"
    assert heard.is_whole
    [line] = await scene.router.log()
    assert (line["response_code"], line["outcome"], line["model"]) == (200, "succeeded", "alpha")


async def test_client_of_the_messages_api_gets_comments_too(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its stream is translated as always."""
    scene = await start(nursery, routing(AFTER_2S), Script(latency_s=3))

    heard = await ask_h1(scene, chat_body(model="auto", stream=True, max_tokens=9), MESSAGES)

    assert times(heard) == [2]
    assert heard.events[0].startswith(b"event: message_start\n")
    assert heard.events[-1].startswith(b"event: message_stop\n")


@pytest.mark.parametrize("stream", [AFTER_2S, TOLD])
async def test_client_without_a_stream_sees_nothing_of_it(
    stream: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Neither in an answer nor in a failure."""
    scene = await start(
        nursery, routing(stream), Script(latency_s=5, faults=(None, Fault.STATUS), status=500)
    )

    good = await scene.router.ask(chat_body(model="auto"))
    bad = await scene.router.ask(chat_body(model="auto"))

    assert (good.status, bad.status) == (200, 502)
    assert good.json()["object"] == "chat.completion"
    assert bad.head is not None


@VERSIONS
async def test_last_call_is_retried_behind_comments(
    version: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """No byte of an answer is out, so another attempt may still bring one; the head stays."""
    scene = await start(
        nursery,
        routing(AFTER_2S),
        Script(latency_s=3),
        Script(latency_s=3, faults=(503, None)),
        reliability="{retry_on: 5xx, retry_count: 2}",
    )

    heard = await ask(version, nursery, scene)

    assert len(scene.beta.calls) == 2
    assert times(heard)[:4] == [2, 4, 6, 8]
    assert heard.is_ordered
    assert heard.events[-1] == b"data: [DONE]\n\n"
    assert heard.line(b"x-vsr-selected-model") == b""
    [line] = await scene.router.log()
    assert (line["response_code"], line["attempts"], line["model"]) == (200, 3, "beta")


async def test_nothing_is_told_once_there_is_content(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """However slow the stream is then."""
    beta = Script(latency_s=3, chunks=4, chunk_interval_s=10)
    text = routing("{progress: true, keep_alive_after: 2s}")
    scene = await start(nursery, text, beta=beta)

    heard = await ask_h1(scene)

    assert heard.is_ordered
    assert heard.is_whole
    assert heard.pieces[-1][0] > 30


@pytest.mark.parametrize(
    ("graph", "decision", "expected"),
    [
        (AFTER_2S, "", [2, 4]),
        (AFTER_2S, "{keep_alive_after: 3s}", [3]),
        (AFTER_2S, "{keep_alive_after: 0s}", []),
        ("", "{keep_alive_after: 3s}", [3]),
        (AFTER_2S, "{progress: false}", [2, 4]),
    ],
)
async def test_word_of_the_decision_counts_over_that_of_the_graph(
    graph: str,
    decision: str,
    expected: list[float],
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Key by key."""
    scene = await start(nursery, routing(graph, decision=decision), Script(latency_s=5))

    heard = await ask_h1(scene)

    assert times(heard) == expected


@pytest.mark.parametrize(
    "algorithm",
    [
        "type: graph, graph: builtin/hedge, params: {after: 60s}",
        "type: fusion",
        "type: ratings",
    ],
)
async def test_graphs_that_ship_can_be_told_of(
    algorithm: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """By the word of the decision that runs one, be it as an algorithm of the reference."""
    text = (
        "{decisions: [{name: all, modelRefs: [{model: alpha}, {model: beta}], "
        f"algorithm: {{{algorithm}, stream: {{progress: true, keep_alive_after: 2s}}}}}}]}}"
    )
    scene = await start(nursery, text, Script(latency_s=5), Script(latency_s=5))

    heard = await ask_h1(scene)

    told = [block for _, block in heard.comments]
    assert told[0].startswith(b": vsr step=")
    assert KEEP_ALIVE in told
    assert any(b" model=alpha status=succeeded" in block for block in told)
    assert heard.is_ordered
    assert heard.events[-1] == b"data: [DONE]\n\n"


async def test_comments_come_where_routing_may_wait(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The model runtime is asked first; its limit is none of the graph."""
    scene = await start(nursery, routing(AFTER_2S), Script(latency_s=3))
    engine = scene.router.generation.engine
    assert isinstance(engine, RoutingEngine)
    engine.may_wait = True
    object.__setattr__(engine._settings, "may_wait", True)

    heard = await ask_h1(scene)

    assert times(heard) == [2]
    assert heard.events[-1] == b"data: [DONE]\n\n"


async def test_head_has_what_is_known_before_the_graph_runs(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Who decided, and with `x-vsr-debug` why; nothing of what is only known behind it."""
    scene = await start(nursery, routing(AFTER_2S), Script(latency_s=3))
    connection = await scene.router.connect()

    heard = await hear(connection, lines=[(b"x-vsr-debug", b"true")])

    assert {name for name, _ in heard.lines if name.startswith(b"x-vsr-")} == {
        b"x-vsr-schema-version",
        b"x-vsr-response-path",
        b"x-vsr-config-version",
        b"x-vsr-selected-recipe",
        b"x-vsr-selected-decision",
        b"x-vsr-selected-confidence",
        b"x-vsr-selected-reasoning",
        b"x-vsr-injected-system-prompt",
        b"x-vsr-context-token-count",
    }
