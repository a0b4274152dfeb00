"""Failures of graphs whose clients were told of them by comments before."""

import json

import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.engine.wired import COMPLETION
from tests.fakes.backend import start_backend
from tests.fakes.router import document_of, model_of, start_router
from tests.gateway.commented import (
    AFTER_2S,
    MESSAGES,
    TOLD,
    VERSIONS,
    ask,
    ask_h1,
    error_of,
    hear,
    routing,
    start,
    times,
)
from tests.upstream.raw_backend import RawBackend, reply
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.network.memory import MemoryNetwork

GZIPPED = b"content-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x00"


async def test_failure_before_the_first_comment_keeps_its_status(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nothing was promised yet."""
    scene = await start(
        nursery, routing(AFTER_2S), Script(latency_s=1, fault=Fault.STATUS, status=500)
    )

    heard = await ask_h1(scene)

    assert heard.status == 502
    assert heard.line(b"content-type") == b"application/json"
    assert json.loads(heard.body)["error"]["code"] == "call_failed"


@VERSIONS
async def test_failed_step_is_an_error_event_and_the_end(
    version: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The status can't be taken back; the log has the one that it would have been."""
    scene = await start(
        nursery, routing(AFTER_2S), Script(latency_s=3, fault=Fault.STATUS, status=500)
    )

    heard = await ask(version, nursery, scene)

    error = error_of(heard)
    assert (heard.status, heard.is_whole, times(heard)) == (200, True, [2])
    assert (error["code"], error["type"]) == ("call_failed", "server_error")
    assert b"[DONE]" not in heard.body
    [line] = await scene.router.log()
    assert (line["response_code"], line["outcome"]) == (502, "failed")
    assert await scene.router.held() == (0, 0)


async def test_progress_promises_a_stream_at_once(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """So a graph that fails in the very moment does so behind its progress."""
    steps = "{id: no, type: fail, message: never, status: 418}"
    scene = await start(nursery, routing(TOLD, steps))

    heard = await ask_h1(scene)

    assert [block for _, block in heard.comments] == [
        b": vsr step=no type=fail status=started\n\n",
        b": vsr step=no status=failed\n\n",
    ]
    assert heard.status == 200
    assert error_of(heard)["message"] == "never"
    [line] = await scene.router.log()
    assert (line["response_code"], line["outcome"]) == (418, "failed")


async def test_error_event_of_the_messages_api(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It has a name, and the type that goes with the status."""
    limits = "{timeout: 5s}"
    scene = await start(nursery, routing(AFTER_2S, limits=limits), Script(latency_s=60))

    heard = await ask_h1(scene, chat_body(model="auto", stream=True, max_tokens=9), MESSAGES)

    [event] = heard.events
    assert event.startswith(b"event: error\ndata: ")
    members = json.loads(event.partition(b"data: ")[2])
    assert (members["type"], members["error"]["type"]) == ("error", "api_error")
    assert heard.is_whole


@VERSIONS
async def test_deadline_of_the_graph_ends_the_stream(
    version: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """At its time, with the failure that the answer would have had."""
    scene = await start(nursery, routing(AFTER_2S, limits="{timeout: 5s}"), Script(latency_s=60))

    heard = await ask(version, nursery, scene)

    assert error_of(heard)["code"] == "deadline_exceeded"
    assert (times(heard), round(heard.pieces[-1][0], 1)) == ([2, 4], 5)
    [line] = await scene.router.log()
    assert line["response_code"] == 504
    assert await scene.router.held() == (0, 0)


async def test_deadline_of_the_last_call_ends_the_stream(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Which the gateway makes, under the timer of the connection."""
    scene = await start(
        nursery, routing(AFTER_2S), beta=Script(latency_s=60), reliability="{total_timeout: 5s}"
    )

    heard = await ask_h1(scene)

    assert error_of(heard)["code"] == "deadline_exceeded"
    assert times(heard) == [2, 4]
    [line] = await scene.router.log()
    told = [line[key] for key in ("response_code", "outcome", "cause", "response_flags")]
    assert told == [504, "timed_out", "deadline", "UT"]


async def test_exhausted_budget_is_told_in_the_stream(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """With its own code, so that nobody asks again."""
    limits = "{max_hops: 1}"
    scene = await start(nursery, routing(AFTER_2S, limits=limits), Script(latency_s=3))

    heard = await ask_h1(scene)

    assert error_of(heard)["code"] == "budget_exhausted"
    [line] = await scene.router.log()
    assert line["response_code"] == 429


async def test_error_of_the_last_backend_is_told_in_the_stream(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """In the form that it has as an answer."""
    scene = await start(
        nursery,
        routing(AFTER_2S),
        Script(latency_s=3),
        Script(fault=Fault.STATUS, status=422),
    )

    heard = await ask_h1(scene)

    assert set(error_of(heard)) >= {"message", "type"}
    assert (heard.status, heard.is_whole) == (200, True)
    [line] = await scene.router.log()
    assert (line["response_code"], line["outcome"]) == (422, "failed")


async def test_stream_that_breaks_off_behind_comments_is_cut(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """There was content, so the error event is followed by the break that there always is."""
    scene = await start(
        nursery, routing(AFTER_2S), Script(latency_s=3), Script(fault=Fault.RESET_MIDSTREAM)
    )

    heard = await ask_h1(scene)

    assert times(heard) == [2]
    assert heard.is_whole is False
    assert b'"error"' in heard.events[-1]


async def test_connection_serves_on_after_an_error_event(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The stream came to a clean end, and so did all that was done for it."""
    scene = await start(
        nursery,
        routing(AFTER_2S),
        Script(latency_s=3, faults=(Fault.STATUS, None), status=500),
    )
    connection = await scene.router.connect()

    first = await hear(connection)
    second = await hear(connection)

    assert b'"error"' in first.body
    assert (times(second), second.events[-1]) == ([2], b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    "answer",
    [
        reply(200, COMPLETION),
        reply(200, COMPLETION * 5000),
        b"HTTP/1.1 204 No Content\r\ncontent-type: text/event-stream\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n%b" % GZIPPED,
    ],
    ids=["whole", "long", "empty", "redirect", "encoded"],
)
async def test_what_is_no_stream_can_not_go_on_one(
    answer: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A backend that ignores what it was asked for is told of as one that breaks the protocol."""
    network = MemoryNetwork()
    alpha = await start_backend(nursery, network, Script(latency_s=3))
    beta = await RawBackend(network, answer).start(nursery)
    models = (model_of(alpha.port), model_of(beta.port, "beta"))
    router = await start_router(nursery, network, document_of(*models, routing=routing(AFTER_2S)))

    heard = await hear(await router.connect())

    assert times(heard) == [2]
    assert error_of(heard)["code"] == "upstream_protocol_error"
    [line] = await router.log()
    assert (line["response_code"], line["response_flags"]) == (502, "UPE")
    assert heard.is_whole
    assert await router.held() == (0, 0)
