"""Whether a whole answer refuses, and what it takes to know that."""

import json

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from tests.demo.raw_client import CHAT, chat_body
from tests.engine.stepped_backend import EVENT_STREAM, Act, Steps, chunk
from tests.engine.test_fallback import BUSY, ERROR, FINE, start
from tests.engine.wired import CHAT_PIECES, COMPLETION, MESSAGE, chunked, whole
from tests.fakes.router import read_large
from tests.strategies import JSON_VALUES
from vsr.codec.refusal import is_refusal
from vsr.http.h1_client import encode_request

LOOKING = "enabled: true, triggers: [content_refusal]"


def choice(finish_reason: object = "stop", **message: object) -> dict[str, object]:
    """Return one choice of a chat completion."""
    return {"index": 0, "finish_reason": finish_reason, "message": message}


REFUSALS: dict[str, dict[str, object]] = {
    "filtered": {"choices": [choice("content_filter", role="assistant", content="")]},
    "filtered without a message": {"choices": [{"finish_reason": "content_filter"}]},
    "filtered with no message": {"choices": [choice("content_filter") | {"message": None}]},
    "policy": {"choices": [choice("content_policy_violation", content=None)]},
    "refusal": {"choices": [choice(content=None, refusal="I can't help with that.")]},
    "one of several": {"choices": [choice(content="a"), choice("content_filter")]},
    "no error": {"error": {"code": 0, "message": ""}, "choices": [choice("content_filter")]},
    "stop reason": {"type": "message", "content": [], "stop_reason": "refusal"},
    "error": {"error": {"message": "The prompt was filtered.", "code": "content_filter"}},
    "policy error": {"error": {"code": "content_policy_violation", "type": "x", "param": None}},
}
ANSWERS: dict[str, dict[str, object]] = {
    "stop": {"choices": [choice(content="content_filter is a word")]},
    "length": {"choices": [choice("length", content="a")]},
    "no reason": {"choices": [choice(None, content="a")]},
    "no refusal": {"choices": [choice(content="a", refusal=None)]},
    "empty refusal": {"choices": [choice(content="a", refusal="")]},
    "no choices": {"choices": []},
    "end of turn": {"content": [{"type": "text", "text": "refusal"}], "stop_reason": "end_turn"},
    "no stop reason": {"content": [], "stop_reason": None},
    "stop reason of the other protocol": {"stop_reason": "content_filter"},
    "reason of the other protocol": {"choices": [choice("refusal")]},
    "other error": {"error": {"message": "content_filter", "code": "rate_limit_exceeded"}},
    "number": {"error": {"message": "busy", "code": 429}},
    "error without a code": {"type": "error", "error": {"type": "overloaded_error"}},
    "text": {"error": "content_filter"},
    "null": {"error": None, "choices": [choice(content="a")]},
    "nothing": {},
}


@pytest.mark.parametrize("body", REFUSALS.values(), ids=REFUSALS)
def test_refusal_is_seen(body: dict[str, object]) -> None:
    """In either protocol, in answers and in errors, however the JSON is written."""
    assert is_refusal(json.dumps(body).encode())
    assert is_refusal(json.dumps({"x": [1, {"y": None}]} | body, indent=2).encode() + b"\r\n")


@pytest.mark.parametrize("body", ANSWERS.values(), ids=ANSWERS)
def test_other_answer_is_none(body: dict[str, object]) -> None:
    """Words count only where the protocol has a place for them."""
    assert not is_refusal(json.dumps(body).encode())


@pytest.mark.parametrize("body", [COMPLETION, MESSAGE])
def test_ordinary_answer_is_none(body: bytes) -> None:
    """Of each protocol; the same with another end is one."""
    assert not is_refusal(body)
    assert is_refusal(body.replace(b'"stop"', b'"content_filter"').replace(b"end_turn", b"refusal"))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"content_filter",
        b'{"choices": [{"finish_reason": "content_filter"}]',
        b'{"choices": [{"finish_reason": "content_filter"}]} more',
        b'data: {"choices": [{"finish_reason": "content_filter"}]}\n\n',
        b'\x1f\x8b{"stop_reason": "refusal"}',
        b'{"stop_reason": "refusal", "choices": 1}',
        b'["stop_reason", "refusal"]',
        b'{"stop_reason": "refusal", "a": ' + b"[" * 100_000,
    ],
)
def test_what_cannot_be_read_is_none(body: bytes) -> None:
    """A guess would send a sound answer away."""
    assert not is_refusal(body)


@given(st.binary(max_size=60))
def test_bytes_that_mean_nothing_are_none(body: bytes) -> None:
    """Found without an error, whatever they are."""
    assert not is_refusal(body)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "choices": JSON_VALUES | st.lists(JSON_VALUES, max_size=2),
            "stop_reason": JSON_VALUES,
            "error": JSON_VALUES | st.fixed_dictionaries({"code": JSON_VALUES}),
        },
    )
)
def test_members_of_odd_shapes_are_none(body: dict[str, object]) -> None:
    """Where a word, a list or an object is expected there may be anything."""
    assert not is_refusal(json.dumps(body).encode())


@given(JSON_VALUES, st.sampled_from(["id", "usage", "system_fingerprint", "content", "model"]))
def test_further_members_change_nothing(value: object, name: str) -> None:
    """Of any shape, beside a refusal or an answer."""
    more = {name: value}
    assert is_refusal(json.dumps(REFUSALS["filtered"] | more).encode())
    assert not is_refusal(json.dumps(ANSWERS["stop"] | more).encode())


@pytest.mark.parametrize(
    ("kind", "triggers", "piece"),
    [
        (b"text/event-stream", "content_refusal", CHAT_PIECES[0]),
        (b"Text/Event-Stream; charset=utf-8", "content_refusal", CHAT_PIECES[0]),
        (b"application/json", "timeout", b"{"),
        (b"application/json", "content_refusal", b"x" * 300_000),
    ],
)
async def test_answer_is_not_held_up_where_no_refusal_is_looked_for(
    kind: bytes,
    triggers: str,
    piece: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """In a stream, a long answer, or without the trigger: what comes is sent at once."""
    models = await start(nursery, f"enabled: true, triggers: [{triggers}]")
    head = EVENT_STREAM.replace(b"text/event-stream", kind)
    models.play([head, chunk(piece), Act.HANG])
    body = chat_body(model="auto", stream=True)
    connection = await models.router.connect()
    began_at = trio.current_time()

    await connection.send(encode_request(b"POST", CHAT, b"r", [], len(body)) + body)
    got = await connection.receive()

    assert piece[:200] in got
    assert trio.current_time() == began_at


@pytest.mark.parametrize("is_chunked", [False, True])
@pytest.mark.parametrize(
    ("size_bytes", "is_read"), [(262_144, True), (262_145, False), (600_000, False)]
)
async def test_answer_too_long_to_look_at_is_passed_on_whole(
    *,
    is_chunked: bool,
    is_read: bool,
    size_bytes: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It may refuse as it likes; what was read of it while looking is not lost."""
    models = await start(nursery, LOOKING)
    long = COMPLETION.replace(b'"stop"', b'"content_filter"').ljust(size_bytes)
    cut = chunked(200, long[:99], long[99:200_000], long[200_000:], content_type=b"text/x")
    models.play(cut if is_chunked else whole(200, long))
    body = chat_body(model="auto")
    connection = await models.router.connect()

    await connection.send(encode_request(b"POST", CHAT, b"r", [], len(body)) + body)

    assert await read_large(connection) == (True, COMPLETION if is_read else long)
    assert (models.called[-1], await models.held()) == ("beta" if is_read else "alpha", [0] * 5)


async def test_failure_that_goes_on_anyway_is_not_looked_at(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its body may never come, and nobody waits for it."""
    models = await start(nursery, LOOKING)
    began_at = trio.current_time()

    assert await models.answer([BUSY[0][:-9], Act.HANG]) == (200, ["alpha", "beta"])
    assert trio.current_time() == began_at


async def test_answer_that_breaks_while_it_is_looked_at_has_failed(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It goes on as the 502 it would have become, and counts against its model."""
    breaker = "circuit_breaker: {consecutive_failures: 2}"
    policy = "enabled: true, triggers: [content_refusal], retryable_status_codes: [502, 503]"
    models = await start(nursery, policy, outer=("", breaker))
    broken: Steps = [FINE[0][:-9], Act.CLOSE]

    assert await models.answer(broken) == (200, ["alpha", "beta"])
    assert await models.answer(whole(503, ERROR), broken) == (200, ["alpha", "beta", "gamma"])
    assert (await models.answer(BUSY, broken))[1] == ["alpha", "beta", "gamma"]
    assert (await models.answer(BUSY, broken))[1] == ["alpha", "gamma"]


async def test_answer_that_stalls_while_it_is_looked_at_has_timed_out(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """When its total timeout has passed."""
    policy = LOOKING
    models = await start(nursery, policy, alpha="total_timeout: 5s")
    began_at = trio.current_time()

    assert await models.answer([FINE[0][:-9], Act.HANG]) == (200, ["alpha", "beta"])
    assert trio.current_time() - began_at == 5
