"""A backend's answer as graph steps read it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.codec.chat_reply import Reply, ReplyUsage, TokenLogprob, ToolCall, read_reply
from vsr.errors import GraphFailed


def _read(value: object) -> Reply:
    return read_reply("m", json.dumps(value).encode(), is_stream=False)


def _read_message(message: object, **choice: object) -> Reply:
    return _read({"choices": [{"message": message, **choice}]})


def _read_stream(*payloads: object) -> Reply:
    events = (f"data: {json.dumps(payload)}\n\n" for payload in payloads)
    return read_reply("m", "".join(events).encode(), is_stream=True)


def test_completion_is_read_whole() -> None:
    """The reply is named as it was called, whatever the backend says of itself."""
    body = {
        "model": "other",
        "choices": [
            {
                "message": {"content": "hi", "reasoning_content": "why"},
                "finish_reason": "length",
                "logprobs": {
                    "content": [
                        {
                            "token": "hi",
                            "logprob": -1,
                            "bytes": [104],
                            "top_logprobs": [
                                {"token": "hi", "logprob": -1.0},
                                {"token": "ho", "logprob": -2.5},
                            ],
                        },
                        {"token": "!", "logprob": -0.5},
                    ]
                },
            },
            {"message": {"content": "second"}},
        ],
        "usage": {"prompt_tokens": 3, "total_tokens": 5},
    }

    reply = _read(body)

    assert reply == Reply(
        model="m",
        content="hi",
        reasoning="why",
        finish_reason="length",
        usage=ReplyUsage(3, 0, 5),
        logprobs=(
            TokenLogprob("hi", -1.0, (("hi", -1.0), ("ho", -2.5))),
            TokenLogprob("!", -0.5),
        ),
        body=json.dumps(body).encode(),
    )


@pytest.mark.parametrize(
    "value", [{}, {"choices": []}, {"choices": [None]}, {"choices": [{"message": None}]}]
)
def test_an_answer_without_choices_is_an_empty_success(value: dict[str, object]) -> None:
    """What is missing is empty; only what is no JSON object fails."""
    reply = _read(value)

    assert (reply.content, reply.has_tool_calls, reply.usage, reply.logprobs) == (
        "",
        False,
        None,
        (),
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"secret", "failed to parse response: it is not JSON"),
        (b'{"a":', "failed to parse response: it is not JSON"),
        (b'{"choices":[{"message":{"content":"\xff"}}]}', "failed to parse response: it is not"),
        (b'{"a":' + b"[" * 100_000, "failed to parse response: it is not JSON"),
        (b"[]", "failed to parse response: it is no JSON object"),
        (b"null", "failed to parse response: it is no JSON object"),
    ],
)
def test_a_body_that_is_no_completion_fails_the_call(body: bytes, message: str) -> None:
    """The message names the failure and shows nothing of the body."""
    with pytest.raises(GraphFailed, match=message) as caught:
        read_reply("m", body, is_stream=False)

    assert "secret" not in str(caught.value)


def test_text_parts_of_a_list_are_joined() -> None:
    """Some backends answer in parts; what is no text among them says nothing."""
    parts = [{"type": "text", "text": "a"}, {"type": "image"}, 5, {"text": "b"}, {"type": "x"}]

    assert _read_message({"content": parts}).content == "ab"
    assert _read_message({"content": None}).content == ""


@pytest.mark.parametrize(
    ("message", "choice", "reasoning"),
    [
        ({"reasoning_content": " ", "reasoning": "b"}, {}, "b"),
        ({"reasoning_content": "a", "reasoning": "b"}, {"reasoning": "c"}, "a"),
        ({}, {"reasoning_content": "c", "reasoning": "d"}, "c"),
        ({"reasoning": 5}, {"reasoning": "d"}, "d"),
        ({"reasoning": ""}, {}, ""),
    ],
)
def test_reasoning_is_the_first_that_is_not_blank(
    message: dict[str, object], choice: dict[str, object], reasoning: str
) -> None:
    """Four places may hold it, those of the message first."""
    assert _read_message(message, **choice).reasoning == reasoning


def test_tool_calls_are_read_with_their_arguments_as_text() -> None:
    """A call whose arguments came as an object keeps their JSON; odd members are empty."""
    calls = [
        {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"id": 2, "function": {"name": "g", "arguments": {"y": 2}}},
        5,
    ]

    reply = _read_message({"content": None, "tool_calls": calls})

    assert reply.has_tool_calls
    assert reply.tool_calls == (
        ToolCall("1", "f", '{"x": 1}'),
        ToolCall("", "g", '{"y": 2}'),
        ToolCall("", "", ""),
    )


@pytest.mark.parametrize(
    ("message", "has_tool_calls"),
    [
        ({"function_call": {"name": "f", "arguments": ""}}, True),
        ({"function_call": {"name": ""}}, False),
        ({"tool_calls": []}, False),
        ({"tool_calls": {"id": "1"}}, False),
    ],
)
def test_older_and_empty_calls(message: dict[str, object], *, has_tool_calls: bool) -> None:
    """A call in the older form counts as one, though it is not among the calls."""
    reply = _read_message(message)

    assert reply.has_tool_calls is has_tool_calls
    assert reply.tool_calls == ()


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        (None, None),
        ([], None),
        ({}, ReplyUsage(0, 0, 0)),
        ({"prompt_tokens": "5", "completion_tokens": -1, "total_tokens": True}, ReplyUsage()),
        ({"total_tokens": 10**30}, ReplyUsage(0, 0, 10**15)),
    ],
)
def test_odd_usage(usage: object, read: ReplyUsage | None) -> None:
    """Nothing reported is not zero; no count lowers a sum or makes it unwritable."""
    assert _read({"usage": usage}).usage == read


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        [],
        {"content": None},
        {"content": [{"token": "a", "logprob": -1}, {"token": "b"}]},
        {"content": [{"token": "a", "logprob": "-1"}]},
        {"content": [{"token": "a", "logprob": -1, "top_logprobs": [{"token": "b"}]}]},
    ],
)
def test_malformed_logprobs_are_none(logprobs: object) -> None:
    """Evidence with a hole would mislead whoever averages it."""
    reply = _read_message({"content": "a"}, logprobs=logprobs)

    assert (reply.content, reply.logprobs) == ("a", ())


def test_stream_is_joined() -> None:
    """Texts come from the delta, else the message, else the choice; the last usage counts."""
    reply = _read_stream(
        {"choices": [{"delta": {"role": "assistant", "reasoning": "r1 "}}], "usage": None},
        {"choices": [{"delta": {"content": "a ", "reasoning_content": "r2"}}]},
        {"choices": [{"message": {"content": "b"}}], "usage": {"total_tokens": 1}},
        {"choices": [{"content": "c", "finish_reason": "stop"}]},
        "odd",
        {"choices": [], "usage": {"total_tokens": 2}},
        {"choices": [], "usage": None},
    )

    assert (reply.content, reply.reasoning, reply.finish_reason) == ("a bc", "r1 r2", "stop")
    assert reply.usage == ReplyUsage(0, 0, 2)
    assert reply.is_stream


def test_stream_gives_no_calls_and_no_logprobs() -> None:
    """Both are read from whole answers only."""
    delta = {"content": "a", "tool_calls": [{"index": 0, "id": "1"}]}
    logprobs = {"content": [{"token": "a", "logprob": -1}]}

    reply = _read_stream({"choices": [{"delta": delta, "logprobs": logprobs}]})

    assert (reply.has_tool_calls, reply.logprobs) == (False, ())


def test_chunks_that_cannot_be_read_are_passed_over() -> None:
    """A broken chunk costs its own text only."""
    body = b'data: {"choices"\n\ndata: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: [DONE]\n\n'

    assert read_reply("m", body, is_stream=True).content == "a"


def test_a_completion_in_place_of_a_stream_is_read_as_one() -> None:
    """A backend that cannot stream answers whole, and the answer is not lost."""
    body = b' {"choices":[{"message":{"content":"a"}}]}'

    reply = read_reply("m", body, is_stream=True)

    assert (reply.content, reply.is_stream) == ("a", False)


@pytest.mark.parametrize("body", [b"", b"<html>", b": ping\n\n"])
def test_what_is_no_stream_fails_the_call(body: bytes) -> None:
    """An answer without any event is none."""
    with pytest.raises(GraphFailed, match="failed to parse response: it is no event stream"):
        read_reply("m", body, is_stream=True)


_NAMES = ["choices", "message", "delta", "content", "tool_calls", "function", "logprobs", "usage"]
_JSON = st.recursive(
    st.sampled_from([None, True, 0, -1.5, "", "text"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=80)
@given(st.dictionaries(st.sampled_from(_NAMES), _JSON, max_size=3), st.booleans())
def test_any_object_is_an_answer(value: dict[str, object], is_stream: bool) -> None:  # noqa: FBT001  # drawn
    """Whatever shape a backend's JSON has, it is read."""
    reply = _read_stream(value) if is_stream else _read(value)

    assert isinstance(reply.content, str)
