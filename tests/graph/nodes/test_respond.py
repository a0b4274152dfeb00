"""Node type `respond`."""

from typing import Any

import msgspec
import pytest

from tests.fakes.caller import Said
from tests.fakes.graph import Step, make_run, run_steps
from vsr.graph.block import Answer
from vsr.graph.run import GraphRun

ONE = {"id": "one", "type": "call", "model": "a"}
TWO = {"id": "two", "type": "call", "model": "b"}
STREAMED = (
    b'{"messages":[{"role":"user","content":"x"}],"stream":true,'
    b'"stream_options":{"include_usage":true}}'
)


async def answered(run: GraphRun, *steps: Step, **fields: object) -> Answer:
    """Run steps and answer with these fields."""
    answer = await run_steps(run, *steps, {"type": "respond", **fields})
    assert isinstance(answer, Answer)
    return answer


def whole(answer: Answer) -> dict[str, Any]:
    """Return a whole answer's members."""
    assert not answer.is_stream
    members: dict[str, Any] = msgspec.json.decode(answer.body)
    return members


def chunks(answer: Answer) -> list[dict[str, Any]]:
    """Return a stream's chunks."""
    assert answer.is_stream
    events = answer.body.decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    return [msgspec.json.decode(each.removeprefix("data: ")) for each in events[:-2]]


async def test_text_is_answered_with_as_a_completion_of_the_routers_own() -> None:
    """Under an id and a time of the run; nothing was used."""
    answer = await answered(make_run(), **{"from": "hello"})

    assert whole(answer) == {
        "id": "chatcmpl-graph-1700000000500000000",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "hello"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
    }
    assert (answer.status, answer.value) == (200, "hello")


async def test_reply_is_answered_with_under_its_model_and_the_usage_of_all_calls() -> None:
    """Those that count."""
    answer = await answered(
        make_run({"a": Said("A"), "b": Said("B")}), ONE, TWO, **{"from": "$one"}
    )

    members = whole(answer)
    assert members["choices"][0]["message"]["content"] == "A"
    assert members["model"] == answer.model == "a"
    assert members["usage"] == {"prompt_tokens": 14, "completion_tokens": 6, "total_tokens": 20}
    assert (answer.models_used, answer.iterations) == (("a", "b"), 2)


async def test_replies_become_one_choice_each() -> None:
    """The model is the last one's."""
    run = make_run({"a": Said("A"), "b": Said("B")})

    members = whole(await answered(run, ONE, TWO, **{"from": ["$one", "$two"]}))

    assert [each["message"]["content"] for each in members["choices"]] == ["A", "B"]
    assert [each["index"] for each in members["choices"]] == [0, 1]
    assert members["model"] == "b"


async def test_what_is_told_may_be_said() -> None:
    """Id, model, usage and a member more."""
    answer = await answered(
        make_run(),
        ONE,
        **{
            "from": "$one",
            "id_prefix": "panel",
            "model": "ensemble",
            "trace_name": "panel_trace",
            "trace": {"first": "$one.content"},
            "models_used": ["x"],
            "iterations": 7,
        },
    )

    members = whole(answer)
    assert members["id"] == "panel-1700000000500000000"
    assert members["model"] == answer.model == "ensemble"
    assert members["panel_trace"] == {"first": "fine"}
    assert (answer.models_used, answer.iterations) == (("x",), 7)


async def test_no_trace_is_no_member() -> None:
    """Null stands for none."""
    fields = {"from": "x", "trace_name": "panel_trace", "trace": None}

    assert "panel_trace" not in whole(await answered(make_run(), **fields))


@pytest.mark.parametrize(
    ("characters", "pieces"), [(2, ["he", "ll", "o"]), (0, ["hello"]), (50, ["hello"])]
)
async def test_stream_is_made_where_the_client_wants_one(
    characters: int, pieces: list[str]
) -> None:
    """In pieces, and with its usage at the end if that was asked for."""
    run = make_run(request=STREAMED)

    got = chunks(await answered(run, **{"from": "hello", "chunk_characters": characters}))

    texts = [each["choices"][0]["delta"].get("content") for each in got if each["choices"]]
    assert [text for text in texts if text] == pieces
    assert {each["id"] for each in got} == {"chatcmpl-graph-1700000000"}
    assert got[-1]["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


async def test_stream_may_name_another_model_and_keep_its_usage() -> None:
    """As the step says."""
    fields = {"from": "x", "stream_model": "shown", "stream_usage": False, "model": "whole"}

    answer = await answered(make_run(request=STREAMED), **fields)

    assert {each["model"] for each in chunks(answer)} == {"shown"}
    assert not any(each.get("usage") for each in chunks(answer))
    assert answer.model == "whole"


@pytest.mark.parametrize(("word", "has_calls"), [("all", True), ("first", True), ("drop", False)])
async def test_tool_calls_are_kept_or_dropped(word: str, *, has_calls: bool) -> None:
    """Whole answers have all of them, or none."""
    run = make_run({"a": Said("A", tool="look")})

    members = whole(await answered(run, ONE, **{"from": "$one", "tool_calls": word}))

    [choice] = members["choices"]
    assert ("tool_calls" in choice["message"]) is has_calls
    assert choice["finish_reason"] == ("tool_calls" if has_calls else "stop")


async def test_tool_calls_are_streamed() -> None:
    """With a finish reason that tells of them."""
    run = make_run({"a": Said("A", tool="look")}, request=STREAMED)

    got = chunks(await answered(run, ONE, **{"from": "$one"}))

    calls = [c for each in got for c in _deltas(each) if "tool_calls" in c]
    assert calls[0]["tool_calls"][0]["function"]["name"] == "look"


def _deltas(chunk: dict[str, Any]) -> list[dict[str, Any]]:
    return [choice["delta"] for choice in chunk["choices"]]


async def test_collected_stream_is_passed_on() -> None:
    """Under the answer's id."""
    events = b'data: {"id":"x","choices":[{"index":0,"delta":{"content":"A"}}]}\n\ndata: [DONE]\n\n'
    run = make_run({"a": Said(body=events)}, request=STREAMED)

    answer = await answered(run, {**ONE, "stream": "collect"}, **{"from": "$one"})

    assert answer.is_stream
    assert b'"content":"A"' in answer.body.replace(b" ", b"")


async def test_call_between_tags_becomes_one() -> None:
    """Where the step looks for it."""
    text = '<tool_call>{"name": "look", "arguments": {"at": 1}}</tool_call>'
    run = make_run({"a": Said(text)})

    members = whole(await answered(run, ONE, **{"from": "$one", "tagged_tool_calls": True}))

    [call] = members["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "look"
