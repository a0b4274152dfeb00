"""Scripted replies of looper fixtures as responses."""

import json
from typing import Any

import pytest

from tests.conformance.looper_case import Fields
from tests.conformance.looper_grounding import ScriptedClassifiers, answer_to
from tests.conformance.looper_reply import Response, reply_of, verifier_reply_of


def body(response: Response) -> Any:  # noqa: ANN401  # JSON
    """Return the body's value."""
    return json.loads(b"".join(response.pieces))


def test_reply_is_a_chat_completion() -> None:
    """With every member that the script names, and no other."""
    response = reply_of({"content": "x", "usage": [1, 2, 3], "delay_ms": 40}, "a")

    assert (response.status, response.content_type, response.delay_s) == (
        200,
        "application/json",
        0.04,
    )
    assert body(response) == {
        "id": "chatcmpl-a",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "upstream-a",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    }


def test_choice_has_what_the_script_says() -> None:
    """Reasoning, tool calls, log-probabilities with and without alternatives."""
    reply = {
        "content": None,
        "reasoning": "r",
        "tool_calls": [{"id": "1", "name": "f", "arguments": "{}"}],
        "logprobs": [["a", -1], ["b", -2, [["c", -3]]]],
    }

    made = body(reply_of(reply, "a"))
    overridden = body(reply_of({**reply, "finish_reason": "stop"}, "a"))

    [choice] = made["choices"]
    function = {"name": "f", "arguments": "{}"}
    assert choice["message"] == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "r",
        "tool_calls": [{"id": "1", "type": "function", "function": function}],
    }
    assert choice["finish_reason"] == "tool_calls"
    assert choice["logprobs"]["content"] == [
        {"token": "a", "logprob": -1, "top_logprobs": []},
        {"token": "b", "logprob": -2, "top_logprobs": [{"token": "c", "logprob": -3}]},
    ]
    assert "usage" not in made
    assert overridden["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ({"status": 503, "body": "late"}, Response(503, "text/plain", (b"late",))),
        ({"status": 500, "body": {"a": 1}}, Response(500, "application/json", (b'{"a": 1}',))),
        ({"status": 500}, Response(500, "text/plain", (b"",))),
        ({"raw": "{"}, Response(200, "application/json", (b"{",))),
        ({"raw": "data:x\n\n"}, Response(200, "text/event-stream", (b"data:x\n\n",))),
        ({"reset": True, "delay_ms": 5}, Response(0, "", (), 0.005, is_reset=True)),
        (
            {"sse": [{"a": 1}, "[DONE]"]},
            Response(200, "text/event-stream", (b'data: {"a": 1}\n\n', b"data: [DONE]\n\n")),
        ),
    ],
)
def test_other_replies_are_as_they_are_written(reply: dict[str, Any], expected: Response) -> None:
    """Nothing is made of them."""
    assert reply_of(reply, "a") == expected


def test_verifier_answers_with_a_body_unless_it_fails() -> None:
    """A status alone is a failure; one among other members is a member."""
    assert verifier_reply_of({"status": 500}).status == 500
    assert verifier_reply_of({"raw": "{"}).pieces == (b"{",)
    named = verifier_reply_of({"status": 1, "confidence": 0.5})
    assert (named.status, body(named)) == (200, {"status": 1, "confidence": 0.5})


PAIRS = [{"premise": "p", "hypothesis": "h", "entailment": 0.8, "contradiction": 0.1}]
NONE = {"entailment": 0.0, "contradiction": 0.0}


@pytest.mark.parametrize(
    ("ask", "grounding", "expected"),
    [
        (
            {"premise": "p", "hypothesis": "h"},
            {"nli": PAIRS},
            {"entailment": 0.8, "contradiction": 0.1},
        ),
        ({"premise": "h", "hypothesis": "p"}, {"nli": PAIRS}, NONE),
        ({"premise": "p", "hypothesis": "h"}, {"nli": []}, NONE),
        ({"premise": "p", "hypothesis": "h"}, {"detector": {}}, None),
        ({"answer": "a"}, {"detector": {"a": ["x"]}}, {"unsupported_spans": ["x"]}),
        (
            {"answer": "a"},
            {"detector": [{"answer": "a", "unsupported_spans": ["x"]}]},
            {"unsupported_spans": ["x"]},
        ),
        ({"answer": "b"}, {"detector": {"a": ["x"]}}, {"unsupported_spans": []}),
        ({"answer": "a"}, {"nli": PAIRS}, None),
        ([], {"nli": PAIRS}, None),
    ],
)
def test_classifier_answers_from_its_table(
    ask: object, grounding: Fields, expected: object
) -> None:
    """Unlisted pairs are 0; a classifier without a table does not exist."""
    answer = answer_to("key", json.dumps(ask).encode(), grounding)

    assert (None if answer is None else json.loads(answer)) == expected


async def test_bundle_is_answered_ask_by_ask() -> None:
    """What nobody knows has no answer."""
    asks = {"one": b'{"premise": "p", "hypothesis": "h"}', "two": b"{", "three": b"[]"}

    answers = await ScriptedClassifiers({"nli": PAIRS}).evaluate(asks)

    assert {key: json.loads(answer) for key, answer in answers.items()} == {
        "one": {"entailment": 0.8, "contradiction": 0.1}
    }
