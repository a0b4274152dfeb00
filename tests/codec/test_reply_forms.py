"""The answer of a request graph as one chat completion."""

import json

import pytest

from vsr.codec.chat_reply import ReplyUsage
from vsr.codec.reply_forms import Answer, render_completion, render_kept
from vsr.errors import GraphFailed

_USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 4}
_ANSWER = Answer(
    id="i", created=7, model="m", contents=("é",), usage=ReplyUsage(1, 2, 4), extra={"trace": [1]}
)


def _call_choice(reason: str) -> dict[str, object]:
    return {"message": {"content": None, "tool_calls": [{"id": "t"}]}, "finish_reason": reason}


def test_render_completion_has_the_content_and_nothing_of_a_backend() -> None:
    """One choice, the summed usage as it is, and the extra members on top."""
    assert json.loads(render_completion(_ANSWER)) == {
        "id": "i",
        "object": "chat.completion",
        "created": 7,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "é"},
                "finish_reason": "stop",
            }
        ],
        "usage": _USAGE,
        "trace": [1],
    }


def test_render_completion_numbers_several_contents() -> None:
    """Each content is a choice, an empty one too."""
    answer = Answer(id="i", created=7, model="m", contents=("a", ""))

    choices = json.loads(render_completion(answer))["choices"]

    assert [(choice["index"], choice["message"]["content"]) for choice in choices] == [
        (0, "a"),
        (1, ""),
    ]


def test_render_kept_changes_what_is_the_routers() -> None:
    """Id, model, usage and finish reasons change; every other member keeps its bytes and place."""
    body = {
        "id": "u",
        "created": 5,
        "model": "up",
        "choices": [_call_choice("stop"), {"message": {"content": "x"}, "finish_reason": "length"}],
        "system_fingerprint": "f",
    }

    kept = json.loads(render_kept(_ANSWER, json.dumps(body).encode()))

    assert kept == {
        "id": "i",
        "created": 5,
        "model": "m",
        "choices": [_call_choice("tool_calls"), body["choices"][1]],  # type: ignore[index]
        "system_fingerprint": "f",
        "usage": _USAGE,
        "trace": [1],
    }
    assert list(kept)[:5] == list(body)


def test_render_kept_may_leave_later_choices() -> None:
    """An interrupted run answers for its first choice only."""
    body = json.dumps({"choices": [_call_choice("stop"), _call_choice("stop")]}).encode()

    every = json.loads(render_kept(_ANSWER, body))["choices"]
    first = json.loads(render_kept(_ANSWER, body, first_only=True))["choices"]

    assert [choice["finish_reason"] for choice in every] == ["tool_calls", "tool_calls"]
    assert [choice["finish_reason"] for choice in first] == ["tool_calls", "stop"]


def test_render_kept_keeps_numbers_as_written() -> None:
    """A choice whose reason is right is not written anew, whatever its numbers."""
    body = b'{"choices":[{"message":{"content":"x"},"logprobs":{"p":-1.50e0}}],"n":1.0}'

    kept = render_kept(Answer(id="i", created=1, model="m"), body)

    assert b'"p":-1.50e0' in kept
    assert b'"n":1.0' in kept


@pytest.mark.parametrize("choices", [None, 5, [], [5], [{"message": 5}]])
def test_render_kept_of_odd_choices(choices: object) -> None:
    """What is no choice passes as it came."""
    body = json.dumps({"choices": choices}).encode()

    assert json.loads(render_kept(_ANSWER, body))["choices"] == choices


def test_render_kept_refuses_what_is_no_completion() -> None:
    """Nothing can be kept of a body that is no object."""
    with pytest.raises(GraphFailed):
        render_kept(_ANSWER, b"[]")
