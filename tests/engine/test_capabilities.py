"""What a plugin's capability promises: whole answers to change, an end to be told of."""

import json
from typing import Any

import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd
from tests.engine.extensions import WITH_PLUGINS, SecondWitness, Shout, Witness
from tests.engine.stepped_backend import Act, Steps
from tests.engine.wired import (
    ANTHROPIC_TO_OPENAI,
    MATCH_ALL,
    OPENAI,
    PAIRS,
    Pair,
    Wired,
    chunked,
    whole,
    wire,
)
from vsr.routing.outcome import Cause, Terminal, Usage

FAST = """{decisions: [{name: all, modelRefs: [{model: alpha}],
  plugins: [{type: fast_response, configuration: {message: No.}}]}]}"""


async def start(
    nursery: trio.Nursery, pair: Pair, *plugins: object, routing: str = MATCH_ALL
) -> Wired:
    """Start a Router whose one decision has these plugins and the pair's model."""
    return await wire(
        nursery,
        routing=routing.replace("alpha", pair.model),
        plugins=plugins,
        extensions=WITH_PLUGINS,
    )


def text_of(pair: Pair, body: bytes) -> str:
    """Return the text of a whole answer."""
    members: dict[str, Any] = json.loads(body)
    if pair.is_anthropic_client:
        return "".join(block["text"] for block in members["content"])
    text: str = members["choices"][0]["message"]["content"]
    return text


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_answer_edit_changes_a_whole_answer(
    framing: str, pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """In every pair of protocols it sees a chat completion; usage and length stay right."""
    wired = await start(nursery, pair, Shout())
    if framing == "chunked":
        wired.backend(pair).steps = chunked(
            200, pair.answer[:40], pair.answer[40:], content_type=b"application/json"
        )

    got = await wired.ask(pair, pair.body(model="auto"))

    line = await wired.last_log()
    assert (got.status, text_of(pair, got.body)) == (200, "HELLO YOU")
    assert got.line(b"content-length") == b"%d" % len(got.body)
    assert (line["prompt_tokens"], line["completion_tokens"]) == (7, 3)


@pytest.mark.parametrize("pair", PAIRS)
async def test_answer_edit_sees_no_failure_and_no_named_model(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It changes answers of success of its decision, nothing else."""
    wired = await start(nursery, pair, Shout())

    named = await wired.ask(pair)
    wired.backend(pair).steps = whole(500, b'{"error":{"message":"Hello you"}}')
    failed = await wired.ask(pair, pair.body(model="auto"))

    assert text_of(pair, named.body) == "Hello you"
    assert b"Hello you" in failed.body


@pytest.mark.parametrize("pair", PAIRS)
async def test_stream_cannot_be_had_where_the_whole_answer_is_needed(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Refused before any call, in the client's form; a named model still streams."""
    wired = await start(nursery, pair, Shout())

    got = await wired.ask(pair, pair.body(model="auto", stream=True))
    called = len(wired.backend(pair).seen)
    wired.backend(pair).steps = chunked(200, *pair.pieces)
    named = await wired.ask(pair, pair.body(stream=True))

    error = json.loads(got.body)["error"]
    assert (got.status, called, named.status) == (400, 0, 200)
    assert error["type"] == "invalid_request_error"
    assert "streamed" in error["message"]
    assert error.get("param", "stream") == "stream"


@pytest.mark.parametrize("pair", PAIRS)
async def test_stream_that_nobody_asked_for_does_not_slip_past_an_edit(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A backend that streams all the same: its answer must not go out unchanged."""
    wired = await start(nursery, pair, Shout())
    wired.backend(pair).steps = chunked(200, *pair.pieces)

    got = await wired.ask(pair, pair.body(model="auto"))

    assert got.status == 502
    assert b"Hello" not in got.body


@pytest.mark.parametrize("pair", PAIRS)
async def test_failing_answer_edit_is_a_500_without_the_answer(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report E1: at once, and nothing of the fault or the unedited answer in it."""
    wired = await start(nursery, pair, Shout(KeyError("canary")), Witness())

    got = await wired.ask(pair, pair.body(model="auto"))

    assert got.status == 500
    assert b"Hello" not in got.raw
    assert b"canary" not in got.raw
    assert await wired.router.held() == (0, 0)


ENDS: dict[str, tuple[Steps, bool, Terminal, int | None]] = {
    "success": (whole(200, OPENAI.answer), False, Terminal.SUCCEEDED, 200),
    "stream": (chunked(200, *OPENAI.pieces), True, Terminal.SUCCEEDED, 200),
    "error": (whole(503, b"{}"), False, Terminal.FAILED, 503),
    "silence": ([Act.HANG], False, Terminal.TIMED_OUT, 504),
    "reset": ([Act.RESET], False, Terminal.FAILED, 503),
    "broken": ([*chunked(200, *OPENAI.begun)[:-1], Act.CLOSE], True, Terminal.FAILED, 200),
    "stalled": ([*chunked(200, *OPENAI.begun)[:-1], Act.HANG], True, Terminal.TIMED_OUT, 200),
}


@pytest.mark.parametrize("pair", [OPENAI, ANTHROPIC_TO_OPENAI])
@pytest.mark.parametrize("end", ENDS)
async def test_observer_is_told_once_how_a_request_ended(
    end: str, pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Success, failure, partial stream: what the log says, too."""
    steps, is_streaming, terminal, status = ENDS[end]
    witness = Witness()
    wired = await start(nursery, pair, witness)
    wired.alpha.steps = steps

    await wired.ask(pair, pair.body(model="auto", stream=is_streaming))

    line = await wired.last_log()
    [outcome] = witness.outcomes
    assert (outcome.terminal, outcome.status) == (terminal, status)
    assert line["outcome"] == terminal
    assert outcome.usage == (Usage(7, 3) if terminal is Terminal.SUCCEEDED else None)
    assert len(outcome.attempts) == 1


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("is_streaming", [False, True])
async def test_observer_is_told_once_that_the_client_left(
    *,
    is_streaming: bool,
    pair: Pair,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Field report G1: cancelled, with its cause, and never a success."""
    witness = Witness()
    wired = await start(nursery, pair, witness)
    wired.backend(pair).steps = [*chunked(200, *pair.begun)[: -1 if is_streaming else 0], Act.HANG]
    client = await wired.router.connect()
    body = pair.body(model="auto", stream=is_streaming)
    await client.send(
        b"POST %b HTTP/1.1\r\nhost: r\r\ncontent-length: %d\r\n\r\n%b"
        % (pair.target, len(body), body)
    )
    await trio.testing.wait_all_tasks_blocked()

    client.close()
    await trio.testing.wait_all_tasks_blocked()

    [outcome] = witness.outcomes
    assert (outcome.terminal, outcome.cause) == (Terminal.CANCELLED, Cause.CLIENT_GONE)
    assert outcome.status == (200 if is_streaming else None)


async def test_observer_is_told_once_of_answers_without_a_call(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A fast response, and a refusal after the decision."""
    fast, refused = Witness(), Witness()
    answering = await start(nursery, OPENAI, fast, routing=FAST)
    refusing = await start(nursery, OPENAI, refused, Shout())

    await answering.ask(OPENAI, OPENAI.body(model="auto"))
    await refusing.ask(OPENAI, OPENAI.body(model="auto", stream=True))

    assert [(each.terminal, each.attempts) for each in fast.outcomes] == [(Terminal.SUCCEEDED, ())]
    assert [(each.terminal, each.status) for each in refused.outcomes] == [(Terminal.FAILED, 400)]


async def test_failing_observer_costs_neither_the_answer_nor_the_others(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """All are told, in either order; the client has its answer, the next request is served."""
    for failing in (0, 1):
        witnesses = [Witness(), SecondWitness()]
        witnesses[failing].failure = KeyError("canary")
        wired = await start(nursery, OPENAI, *witnesses)

        answers = [await wired.ask(OPENAI, OPENAI.body(model="auto")) for _ in range(2)]

        assert [(got.end, got.status) for got in answers] == [(AnswerEnd.WHOLE, 200)] * 2
        assert [len(witness.outcomes) for witness in witnesses] == [2, 2]
        assert await wired.router.held() == (0, 0)
