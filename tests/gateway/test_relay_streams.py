"""Event streams on their way: protocols, usage, pieces."""

import json
from typing import Any

import pytest
import trio
import trio.testing

from tests.codec.stream_folding import chat_stream, cut, data_of, fold_anthropic, fold_chat
from tests.demo.raw_client import AnswerEnd, chat_body
from tests.engine.stepped_backend import Act, Steps
from tests.engine.streams import TEXT, TRANSLATED, ask_stream, text_of, undated, usages_of
from tests.engine.wired import (
    ANTHROPIC,
    ANTHROPIC_TO_OPENAI,
    CHAT_PIECES,
    MESSAGE_PIECES,
    OPENAI,
    OPENAI_TO_ANTHROPIC,
    PAIRS,
    USAGE_CHUNK,
    Pair,
    chunked,
    whole,
    wire,
)


@pytest.mark.parametrize("pair", PAIRS)
async def test_stream_arrives_in_the_clients_protocol(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Text, end and tokens; the connection carries the next request."""
    wired = await wire(nursery)

    got = await ask_stream(wired, pair)

    line = await wired.last_log()
    assert (got.end, got.status, text_of(pair, got.body)) == (AnswerEnd.WHOLE, 200, TEXT)
    assert got.line(b"content-type") == b"text/event-stream"
    assert got.line(b"content-length") == b""
    assert got.is_reusable
    assert (line["outcome"], line["prompt_tokens"], line["completion_tokens"]) == (
        "succeeded",
        7,
        3,
    )
    assert await wired.router.held() == (0, 0)


@pytest.mark.parametrize("pair", PAIRS)
async def test_stream_cut_at_any_byte_comes_to_the_same(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report S1: neither a character nor an event breaks, whatever a read holds."""
    wired = await wire(nursery)
    body = b"".join(pair.pieces)
    uncut = (await ask_stream(wired, pair)).body

    for at in range(1, len(body), 1 if pair is OPENAI else 7):
        got = await ask_stream(wired, pair, chunked(200, body[:at], body[at:]))

        assert undated(got.body) == undated(uncut), at


@pytest.mark.parametrize("pair", PAIRS)
async def test_stream_of_single_bytes_arrives(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The smallest pieces there are."""
    wired = await wire(nursery)
    body = b"".join(pair.pieces)

    got = await ask_stream(wired, pair, chunked(200, *cut(body, range(len(body)))))

    assert text_of(pair, got.body) == TEXT


@pytest.mark.parametrize(
    ("options", "sent", "is_shown"),
    [
        (None, {"include_usage": True}, False),
        ({"include_usage": True}, {"include_usage": True}, True),
        ({"include_usage": False}, {"include_usage": True}, False),
        (
            {"include_obfuscation": False, "x": [1]},
            {"include_obfuscation": False, "x": [1], "include_usage": True},
            False,
        ),
    ],
)
@pytest.mark.parametrize("model", ["alpha", "auto"])
async def test_usage_is_always_asked_for_and_shown_to_who_asked(
    *,
    model: str,
    options: dict[str, object] | None,
    sent: dict[str, object],
    is_shown: bool,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Field report S5: the last chunk before `[DONE]`, with no choices, or none at all."""
    wired = await wire(nursery)
    members: dict[str, Any] = {"model": model, "stream": True}
    if options is not None:
        members["stream_options"] = options

    got = await ask_stream(wired, OPENAI, body=chat_body(**members))

    [(_, body)] = wired.alpha.seen
    line = await wired.last_log()
    wanted = CHAT_PIECES if is_shown else [*CHAT_PIECES[:3], CHAT_PIECES[4]]
    assert json.loads(body)["stream_options"] == sent
    assert got.body == b"".join(wanted)
    assert (line["prompt_tokens"], line["completion_tokens"]) == (7, 3)


async def test_translated_usage_chunk_has_no_choices(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report S5, for a backend of the other protocol; who did not ask sees none."""
    wired = await wire(nursery)
    asking = OPENAI_TO_ANTHROPIC.body(stream=True, stream_options={"include_usage": True})

    asked = await ask_stream(wired, OPENAI_TO_ANTHROPIC, body=asking)
    unasked = await ask_stream(wired, OPENAI_TO_ANTHROPIC)

    [shown] = usages_of(asked.body)
    assert usages_of(unasked.body) == []
    assert (shown["usage"]["prompt_tokens"], shown["usage"]["completion_tokens"]) == (7, 3)
    assert shown["choices"] == []
    assert data_of(asked.body)[-2] == shown


async def test_usage_beside_choices_is_taken_out_and_the_choices_stay(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A backend that reports on every chunk; the last report counts."""
    wired = await wire(nursery)
    events: list[dict[str, Any]] = [data_of(piece)[0] for piece in CHAT_PIECES[:3]]
    reports = [{"prompt_tokens": 7, "completion_tokens": n} for n in range(1, 4)]
    pieces = [
        chat_stream(event | {"usage": usage}) for event, usage in zip(events, reports, strict=True)
    ]

    got = await ask_stream(wired, OPENAI, chunked(200, *pieces, chat_stream("[DONE]")))

    line = await wired.last_log()
    assert text_of(OPENAI, got.body) == TEXT
    assert usages_of(got.body) == []
    assert (line["prompt_tokens"], line["completion_tokens"]) == (7, 3)


async def test_stream_without_usage_is_unknown_and_not_zero(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A backend may not know the option."""
    wired = await wire(nursery)

    got = await ask_stream(wired, OPENAI, chunked(200, *CHAT_PIECES[:3], CHAT_PIECES[4]))

    line = await wired.last_log()
    assert text_of(OPENAI, got.body) == TEXT
    assert (line["prompt_tokens"], line["completion_tokens"]) == (None, None)


@pytest.mark.parametrize("pair", [OPENAI, ANTHROPIC])
async def test_comments_breaks_and_foreign_fields_pass_as_they_are(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field reports S2, S3: what a backend says between events, it may say to the client."""
    wired = await wire(nursery)
    odd = b"\xef\xbb\xbf: PROCESSING\r\n\r\nretry: 10\r\rid: 7\nevent: x\ndata: {\ndata: }\n\n"

    got = await ask_stream(wired, pair, chunked(200, odd, *pair.pieces))

    passed = odd + b"".join(pair.pieces)
    assert got.body == passed.replace(chat_stream(USAGE_CHUNK), b"")


@pytest.mark.parametrize("pair", TRANSLATED)
async def test_comments_do_not_disturb_a_translation(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report S2, across protocols; `ping` events likewise."""
    wired = await wire(nursery)
    odd = b': PROCESSING\r\n\r\nretry: 10\r\n\r\nevent: ping\ndata: {"type": "ping"}\n\n'
    pieces = [piece for each in pair.pieces for piece in (odd, each)]

    got = await ask_stream(wired, pair, chunked(200, *pieces))

    assert text_of(pair, got.body) == TEXT


@pytest.mark.parametrize("pair", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
async def test_usage_of_a_whole_answer_is_read_however_it_is_framed(
    framing: str, pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The providers' own APIs send their JSON in chunks."""
    wired = await wire(nursery)
    json_type = b"application/json"
    steps: Steps = whole(200, pair.answer)
    if framing == "chunked":
        half = len(pair.answer) // 2
        head, *pieces = chunked(200, pair.answer[:half], pair.answer[half:], content_type=json_type)
        steps = [head, pieces[0], 0.5, *pieces[1:]]
    elif framing == "close":
        steps = [b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n\r\n" % json_type, pair.answer, Act.CLOSE]
    wired.backend(pair).steps = steps

    got = await wired.ask(pair)

    line = await wired.last_log()
    assert (got.end, got.body) == (AnswerEnd.WHOLE, pair.answer)
    assert (line["prompt_tokens"], line["completion_tokens"]) == (7, 3)


@pytest.mark.parametrize("pair", TRANSLATED)
async def test_whole_answer_to_a_streaming_client_is_translated_whole(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report S8: a backend that cannot stream answers as it can."""
    wired = await wire(nursery)

    got = await ask_stream(wired, pair, whole(200, pair.answer))

    members = json.loads(got.body)
    assert got.status == 200
    assert members["type" if pair.is_anthropic_client else "object"] in {
        "message",
        "chat.completion",
    }


async def test_tool_call_in_one_chunk_reaches_an_anthropic_client(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field reports P2, P3: start, arguments and stop; and it ends for the use of a tool."""
    wired = await wire(nursery)
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    first = data_of(CHAT_PIECES[0])[0]
    first["choices"][0]["delta"] = {"role": "assistant", "tool_calls": [{"index": 0, **call}]}
    last = data_of(CHAT_PIECES[2])[0]
    last["choices"][0]["finish_reason"] = "tool_calls"
    pieces = [chat_stream(first), chat_stream(last), *CHAT_PIECES[3:]]

    got = await ask_stream(wired, ANTHROPIC_TO_OPENAI, chunked(200, *pieces))

    message = fold_anthropic(got.body)
    assert message["stop_reason"] == "tool_use"
    assert message["content"] == [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]


async def test_tool_use_reaches_an_openai_client(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report P3, the other way."""
    wired = await wire(nursery)
    events = [data_of(piece)[0] for piece in MESSAGE_PIECES]
    events[1]["content_block"] = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    events[2]["delta"] = {"type": "input_json_delta", "partial_json": '{"a": 1}'}
    events[4]["delta"]["stop_reason"] = "tool_use"
    pieces = [b"event: %b\n" % event["type"].encode() + chat_stream(event) for event in events]

    got = await ask_stream(wired, OPENAI_TO_ANTHROPIC, chunked(200, *pieces))

    [choice] = fold_chat(got.body)["choices"]
    function = {"name": "f", "arguments": '{"a": 1}'}
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"] == [
        {"id": "t1", "type": "function", "function": function}
    ]


async def test_anthropic_stream_reports_usage_of_its_start_and_its_end(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What the prompt cost stands in the first event, what was written in the last but one."""
    wired = await wire(nursery)

    got = await ask_stream(wired, ANTHROPIC)

    line = await wired.last_log()
    assert got.body == b"".join(MESSAGE_PIECES)
    assert (line["prompt_tokens"], line["completion_tokens"]) == (7, 3)
