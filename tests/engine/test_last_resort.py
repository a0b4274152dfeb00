"""How a chain ends: in time, with the last resort, or with the failure that began it."""

import json
import re
from typing import Any

import pytest
import trio
import trio.testing

from tests.demo.raw_client import CHAT, AnswerEnd, Got, chat_body, read_answer
from tests.engine.stepped_backend import EVENT_STREAM, Act, Steps, chunk
from tests.engine.streams import TEXT, text_of
from tests.engine.test_fallback import (
    BUSY,
    ERROR,
    FINE,
    HUNG,
    NAMES,
    REFUSED,
    TRIES,
    Models,
    start,
)
from tests.engine.wired import ANTHROPIC, CHAT_PIECES, OPENAI, Pair, whole
from tests.fakes.router import read_large
from vsr.http.h1_client import encode_request
from vsr.network.memory import Fault

RESORT = "last_resort: {content: Ask me later.}"
FAILED_RESORT = "last_resort: {content: Ask me later., status: %d}"


def names_of(got: Got) -> list[bytes]:
    """Return the response's `x-vsr` fields as they were sent, in order, the latency aside."""
    assert got.head is not None
    lines = [b"%b: %b" % line for line in got.head.lines if line[0].startswith(b"x-vsr")]
    return [line for line in lines if b"latency" not in line]


async def ask_as(models: Models, client: Pair, **members: object) -> Got:
    """Ask in this client's protocol."""
    body = client.body("Hello there", **({"model": "auto"} | members))
    return await models.router.ask(body, target=client.target)


@pytest.mark.parametrize("client", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("stream", [False, True])
async def test_last_resort_answers_in_the_client_s_own_form(
    *,
    client: Pair,
    stream: bool,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Whole or as a stream, with the headers of a fallback and none of a fast response."""
    models = await start(nursery, f"enabled: true, {RESORT}")
    models.play(BUSY, BUSY, BUSY)

    got = await ask_as(models, client, stream=stream)

    assert (got.status, got.end) == (200, AnswerEnd.WHOLE)
    kind = b"text/event-stream" if stream else b"application/json"
    assert got.line(b"content-type") == kind
    if stream:
        assert text_of(client, got.body) == "Ask me later."
    elif client is OPENAI:
        answer: dict[str, Any] = json.loads(got.body)
        assert answer["object"] == "chat.completion"
        assert answer["choices"][0]["message"]["content"] == "Ask me later."
    else:
        answer = json.loads(got.body)
        assert (answer["type"], answer["model"]) == ("message", "alpha")
        assert answer["content"] == [{"type": "text", "text": "Ask me later."}]
    assert names_of(got) == [
        b"x-vsr-selected-decision: all",
        b"x-vsr-schema-version: 2",
        b"x-vsr-response-path: fallback",
        b"x-vsr-fallback-attempts: 3",
        b"x-vsr-fallback-path: alpha,beta,gamma",
        b"x-vsr-config-version: 1",
        b"x-vsr-selected-recipe: default",
    ]
    line = await models.last_log()
    assert (line["response_code"], line["outcome"], line["attempts"]) == (200, "succeeded", 3)
    assert (line["prompt_tokens"], line["completion_tokens"]) == (None, None)
    assert await models.held() == [0] * 5


@pytest.mark.parametrize("client", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [400, 429, 503])
async def test_last_resort_may_be_an_error(
    *,
    client: Pair,
    stream: bool,
    status: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """From 400 on: the author's text as the message of an error in the client's protocol."""
    models = await start(nursery, f"enabled: true, {FAILED_RESORT % status}")
    models.play(BUSY, BUSY, BUSY)

    got = await ask_as(models, client, stream=stream)

    assert (got.status, got.line(b"content-type")) == (status, b"application/json")
    body: dict[str, Any] = json.loads(got.body)
    assert body["error"]["message"] == "Ask me later."
    assert body.get("type") == ("error" if client is ANTHROPIC else None)
    assert names_of(got) == [
        b"x-vsr-schema-version: 2",
        b"x-vsr-response-path: fallback",
        b"x-vsr-fallback-attempts: 3",
        b"x-vsr-fallback-path: alpha,beta,gamma",
        b"x-vsr-config-version: 1",
    ]
    line = await models.last_log()
    assert (line["response_code"], line["outcome"], line["attempts"]) == (status, "failed", 3)


@pytest.mark.parametrize("status", [203, 302, 399])
async def test_last_resort_below_400_is_an_answer(
    status: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """With the author's status."""
    models = await start(nursery, f"enabled: true, {FAILED_RESORT % status}")
    models.play(BUSY, BUSY, BUSY)

    got = await models.ask()

    assert (got.status, got.json()["object"]) == (status, "chat.completion")


@pytest.mark.parametrize(
    "end", ["max_attempts", "total_timeout", "candidates_exhausted", "circuit_open"]
)
async def test_last_resort_stands_where_models_have_run_out(
    end: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Whatever kept the next one from being asked: the number, the time, the list, a breaker."""
    policy = {
        "max_attempts": "max_attempts: 2",
        "total_timeout": "total_timeout: 1s, per_attempt_timeout: 1s",
    }.get(end, "max_attempts: 9")
    breaker = "circuit_breaker: {consecutive_failures: 1}" if end == "circuit_open" else ""
    models = await start(nursery, f"enabled: true, {policy}, {RESORT}", outer=("", breaker))
    slow: Steps = [1.0, *BUSY] if end == "total_timeout" else BUSY
    models.play(slow, BUSY, BUSY)
    if end == "circuit_open":
        await models.ask()
        models.router.activate(models.document, 2)  # which knows what this one has learned

    got = await models.ask()

    calls = {"max_attempts": 2, "candidates_exhausted": 3}.get(end, 1)
    assert (got.status, got.line(b"x-vsr-response-path")) == (200, b"fallback")
    assert got.line(b"x-vsr-fallback-path") == ",".join(NAMES[:calls]).encode()


@pytest.mark.parametrize(
    "end", ["non_retryable", "candidate's", "known_zero", "tool", "replay", "committed"]
)
async def test_last_resort_stands_nowhere_else(
    end: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Where no other model was wanted or allowed, the failure itself is the answer."""
    alpha = {"known_zero": "retry_evidence: known_zero", "replay": "replay_bytes: 9"}.get(end, "")
    models = await start(nursery, f"enabled: true, {RESORT}", alpha=alpha)
    bad = whole(400, ERROR)
    begun: Steps = [EVENT_STREAM, chunk(CHAT_PIECES[0]), Act.RESET]
    first = {"non_retryable": bad, "committed": begun}.get(end, BUSY)
    models.play(first, bad, bad)
    members: dict[str, object] = {"stream": end == "committed"}
    if end == "tool":
        members["messages"] = [{"role": "tool", "tool_call_id": "c", "content": "1"}]

    got = await ask_as(models, OPENAI, **members)

    expected = {"non_retryable": 400, "committed": 200}.get(end, 503)
    assert (got.status, b"later" in got.raw, b"fallback" in got.raw) == (expected, False, False)
    assert models.called == ["alpha", "beta"][: 2 if end == "candidate's" else 1]


async def test_last_resort_is_not_needed_by_who_has_an_answer(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The first model's or a later one's."""
    models = await start(nursery, f"enabled: true, {RESORT}")

    bodies = [(await models.ask()).body]
    models.play(BUSY, BUSY)
    bodies.append((await models.ask()).body)

    assert bodies == [OPENAI.answer] * 2


_FIRST: dict[str, Steps] = {
    "status": whole(503, ERROR, (b"retry-after", b"7"), (b"x-of-backend", b"odd")),
    "limit": whole(429, b"no JSON", (b"content-type", b"text/html")),
    "redirect": whole(302, b"elsewhere", (b"location", b"/there")),
    "refusal": REFUSED,
    "reset": [Act.RESET],
    "timeout": HUNG,
    "malformed": [b"nonsense\r\n\r\n"],
    "nobody": [],
}


@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize("first", _FIRST)
async def test_first_failure_is_answered_as_if_it_were_alone(
    first: str, retries: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Status, fields and body to the byte, whatever the later models have said."""
    policy = "enabled: true, retryable_status_codes: [302, 502, 503, 504, 429]"
    reliability = f"total_timeout: 5s, retry_count: {retries}, retry_on: 5xx"
    models = await start(nursery, f"{policy}, triggers: [content_refusal]", alpha=reliability)
    alone = await start(nursery, "", alpha=reliability)
    told: list[Got] = []

    for each in (alone, models):
        if first == "nobody":
            each.refuse("alpha")
        each.play(_FIRST[first], whole(504, b"{}", (b"x-of-beta", b"1")), whole(401, ERROR))
        told.append(await each.ask())

    raws = [re.sub(rb"(latency-ms: )[0-9.]+", rb"\1", got.raw) for got in told]
    assert raws[1] == raws[0]
    assert models.called[-2:] == ["beta", "gamma"]
    line = await models.last_log()
    assert (line["model"], line["response_code"]) == ("alpha", told[0].status)


@pytest.mark.parametrize("status", [503, 302])
async def test_first_failure_is_read_to_its_end_though_it_was_held_for_long(
    status: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its total timeout doesn't run while other models are asked."""
    policy = f"{TRIES}, retryable_status_codes: [{status}, 504]"
    models = await start(nursery, policy, alpha="total_timeout: 2s")
    long = b'{"error": {"message": "of the backend"}, "more": "%b"}' % (b"x" * 400_000)
    models.play([1.0, *whole(status, long)], HUNG, HUNG)
    body = chat_body(model="auto")
    connection = await models.router.connect()

    await connection.send(encode_request(b"POST", CHAT, b"r", [], len(body)) + body)
    is_whole, got = await read_large(connection)

    line = await models.last_log()
    assert (line["response_code"], line["attempts"], line["duration_ms"]) == (status, 3, 9000)
    assert is_whole
    assert got == long if status == 302 else b"of the backend" in got


async def test_first_failure_has_only_the_time_that_was_left_of_it(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A body that doesn't come is given up when its own total timeout has run."""
    models = await start(nursery, TRIES, alpha="total_timeout: 3s")
    models.play([1.0, BUSY[0][:-9], Act.HANG], HUNG, HUNG)
    began_at = trio.current_time()

    got = await models.ask()

    assert (got.status, trio.current_time() - began_at) == (504, 1 + 4 + 4 + 2)


async def test_log_names_the_host_that_has_answered(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The candidate's that serves, and the first one's if its failure is the answer."""
    models = await start(nursery)
    hosts = {name: f"{name}.test:{each.port}" for name, each in models.backends.items()}

    await models.answer(BUSY)
    assert (await models.last_log())["upstream_host"] == hosts["beta"]
    await models.answer(BUSY, BUSY, BUSY)
    assert (await models.last_log())["upstream_host"] == hosts["alpha"]


async def test_call_that_times_out_in_line_for_a_retry_has_timed_out(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Whatever became of the attempt before."""
    models = await start(
        nursery,
        "enabled: true, retryable_status_codes: [504]",
        alpha="max_connections: 1, max_pending: 5, retry_count: 1, retry_on: reset, "
        "retry_back_off_base: 2s, retry_back_off_max: 2s, total_timeout: 5s",
    )
    models.play([Act.RESET])
    statuses: list[int] = []

    async def ask() -> None:
        statuses.append((await models.ask()).status)

    nursery.start_soon(ask)
    await trio.testing.wait_all_tasks_blocked()
    models.play(HUNG)  # for the next one, which has the only slot when the retry wants it
    nursery.start_soon(ask)
    await trio.sleep(6)

    assert (statuses, models.called) == ([200, 200], ["alpha", "alpha", "beta", "beta"])


@pytest.mark.parametrize("body_s", [0.0, 8.0])
async def test_total_timeout_counts_from_the_start_of_the_request(
    body_s: float, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Not from the call: a client that is slow to send has used up its time."""
    models = await start(nursery, TRIES)
    models.play([3.0, *BUSY])
    body = chat_body(model="auto")
    connection = await models.router.connect()

    await connection.send(encode_request(b"POST", CHAT, b"r", [], len(body)))
    await trio.sleep(body_s)
    await connection.send(body)
    got = await read_answer(connection)

    assert got.status == (503 if body_s else 200)
    assert models.called == ["alpha", "beta"][: 1 if body_s else 2]


async def test_candidate_is_left_when_its_head_is_late(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """After `per_attempt_timeout`, or what is left of the total timeout if that is less."""
    models = await start(nursery, TRIES)
    began_at = trio.current_time()

    assert await models.answer([3.0, *BUSY], HUNG, [3.5, *FINE]) == (503, list(NAMES))
    assert trio.current_time() - began_at == 10
    assert await models.answer([3.0, *BUSY], HUNG, [2.5, *FINE]) == (200, list(NAMES))


@pytest.mark.parametrize(("own", "left_s"), [("", 4), ("1s", 1), ("9s", 4)])
@pytest.mark.parametrize("is_silent", [False, True])
async def test_shorter_limit_of_a_candidate_s_attempt_stays(
    *,
    own: str,
    left_s: float,
    is_silent: bool,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The time to connect is part of it."""
    models = await start(nursery, TRIES, beta=f"per_try_timeout: {own}" if own else "")
    if is_silent:
        models.router.network.faults["beta.test"] = Fault.SILENT
    began_at = trio.current_time()

    got = await models.answer(BUSY, HUNG)

    assert got == (200, ["alpha", "gamma"] if is_silent else list(NAMES))
    assert trio.current_time() - began_at == left_s


async def test_candidate_is_called_as_its_decision_wants(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What a decision changes of a model's reliability, it changes of each of its models."""
    models = await start(nursery, decision="retry_count: 1, retry_on: 5xx, total_timeout: 7s")
    began_at = trio.current_time()

    assert await models.answer(BUSY, BUSY, HUNG) == (
        503,
        ["alpha", "alpha", "beta", "beta", "gamma"],
    )
    assert 7 <= trio.current_time() - began_at < 8


async def test_stream_that_has_begun_is_not_cut(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The timeouts of a fallback end with the head; the model's own goes on."""
    models = await start(nursery, TRIES, beta="total_timeout: 60s")
    waits = [part for piece in CHAT_PIECES for part in (8.0, chunk(piece))]
    stream: Steps = [EVENT_STREAM, *waits, b"0\r\n\r\n"]
    models.play(BUSY, stream)

    got = await models.ask(stream=True)

    assert (got.status, got.end, text_of(OPENAI, got.body)) == (200, AnswerEnd.WHOLE, TEXT)
    models.play(BUSY, [EVENT_STREAM, chunk(CHAT_PIECES[0]), Act.HANG])
    began_at = trio.current_time()
    assert (await models.ask(stream=True)).end is not AnswerEnd.WHOLE
    assert trio.current_time() - began_at == 60
