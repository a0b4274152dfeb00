"""What a scripted server remembers of its calls."""

import json

import trio
import trio.testing

from tests.conformance.looper_reply import Response, reply_of
from tests.conformance.looper_server import ScriptedServer, SeenCall, most_at_once
from tests.demo.raw_client import AnswerEnd, Got, ask, chat_body
from vsr.network.memory import MemoryNetwork


def answer(call: SeenCall) -> Response:
    """Answer with the reply that the call itself carries."""
    return reply_of(call.body["reply"], call.body["model"])


async def started(nursery: trio.Nursery) -> ScriptedServer:
    """Return a server that serves until `nursery` is cancelled."""
    network = MemoryNetwork()
    await nursery.start(network.run)
    server = ScriptedServer(network, answer)
    await server.start(nursery)
    return server


async def call(server: ScriptedServer, model: str, **reply: object) -> Got:
    """Make one call on a connection of its own."""
    connection = await server.network.connect("any", server.port)
    try:
        return await ask(
            connection,
            chat_body(model=model, reply=reply),
            lines=[(b"x-one", b"1"), (b"x-one", b"2")],
        )
    finally:
        connection.close()


async def test_call_is_remembered_with_its_times(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """And is answered after the delay that its script says."""
    server = await started(nursery)

    got = await call(server, "a", content="x", delay_ms=1500)

    [seen] = server.take_calls()
    assert json.loads(got.body)["choices"][0]["message"]["content"] == "x"
    assert (seen.target, seen.headers["x-one"]) == ("/v1/chat/completions", "1")
    assert seen.body["model"] == "a"
    assert seen.ended_at is not None
    assert 1.5 <= seen.ended_at - seen.started_at < 1.6
    assert (seen.started, seen.ended, seen.was_left) == (0, 1, False)
    assert server.calls == []


async def test_calls_that_can_start_start_before_any_is_answered(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Also where no delay is scripted; answers then come in the order of the calls."""
    server = await started(nursery)
    answered: list[str] = []

    async def one(model: str) -> None:
        await call(server, model, content="x")
        answered.append(model)

    async with trio.open_nursery() as callers:
        for model in "abcdefgh":
            callers.start_soon(one, model)

    assert [seen.body["model"] for seen in server.calls] == answered
    assert most_at_once(server.calls) == 8


async def test_call_that_is_left_ends_there_and_is_never_answered(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The instant counts at which the client went."""
    server = await started(nursery)

    with trio.move_on_after(2):
        await call(server, "a", content="x", delay_ms=9000)
    await trio.testing.wait_all_tasks_blocked()

    [seen] = server.calls
    assert seen.was_left
    assert seen.ended_at is not None
    assert 1.9 < seen.ended_at - seen.started_at <= 2


async def test_reset_closes_the_connection_without_an_answer(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The call has ended all the same."""
    server = await started(nursery)

    got = await call(server, "a", reset=True)

    assert (got.end, got.raw) == (AnswerEnd.RESET, b"")
    assert server.calls[0].ended is not None


async def test_stream_is_sent_event_by_event(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """And ends whole."""
    server = await started(nursery)

    got = await call(server, "a", sse=[{"a": 1}, "[DONE]"])

    assert (got.end, got.body) == (AnswerEnd.WHOLE, b'data: {"a": 1}\n\ndata: [DONE]\n\n')
    assert got.line(b"content-type") == b"text/event-stream"
