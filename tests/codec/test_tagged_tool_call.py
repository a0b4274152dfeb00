"""A tool call between tags in a model's text."""

import json
import time

import pytest

from vsr.codec.chat_reply import ToolCall, read_reply
from vsr.codec.tagged_tool_call import find_tagged_call, with_tagged_call
from vsr.errors import GraphFailed


def _tagged(*objects: str) -> str:
    return "so " + " ".join(f"<tool_call>\n{text}\n</tool_call>" for text in objects) + " done"


@pytest.mark.parametrize(
    ("arguments", "read"),
    [
        ("", "{}"),
        (', "arguments": null', "{}"),
        (', "arguments": {"q":  {"a": 1}}', '{"q":  {"a": 1}}'),
        (', "arguments": "{\\"q\\": 1}"', '{"q": 1}'),
        (', "arguments": "over \\"there\\""', '{"input":"over \\"there\\""}'),
        (', "arguments": [1]', "[1]"),
    ],
)
def test_arguments_become_json_text(arguments: str, read: str) -> None:
    """An object keeps its text, a string is taken as JSON or wrapped, nothing means none."""
    content = _tagged(f'{{"name": "f"{arguments}}}')

    assert find_tagged_call(content, fresh_id="x") == ToolCall("x", "f", read)


def test_the_first_call_counts_up_to_its_closing_tag() -> None:
    """The object is the shortest that the closing tag follows; a second call is not read."""
    content = _tagged('{"name": "f", "arguments": {"a": "}</x>"}}', '{"name": "g"}')

    assert find_tagged_call(content, fresh_id="x") == ToolCall("x", "f", '{"a": "}</x>"}')


@pytest.mark.parametrize(
    "content",
    [
        "",
        "<tool_call>",
        '<tool_call>{"name": "f"}',
        '<tool_call>x {"name": "f"}</tool_call>',
        _tagged('{"name": "f",}', '{"name": "g"}'),
        _tagged('{"name": " "}'),
        _tagged('{"name": 5}'),
        _tagged('{"name": "f", "arguments": 1e999}'),
        _tagged("{}"),
    ],
)
def test_what_is_no_call(content: str) -> None:
    """A call needs both tags, an object that parses, and a name."""
    assert find_tagged_call(content, fresh_id="x") is None


@pytest.mark.parametrize("unit", ["<tool_call>{", "<tool_call> ", "} ", "<tool_call>{}"])
def test_time_is_linear(unit: str) -> None:
    """Tags without end take no more than a moment."""
    started = time.process_time()

    assert find_tagged_call(unit * 50_000, fresh_id="x") is None

    assert time.process_time() - started < 1.0


def test_with_tagged_call_rewrites_the_first_choice() -> None:
    """The message loses its text and gets the call; all else of the body stays."""
    body = json.dumps(
        {
            "id": "u",
            "choices": [
                {"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"},
                {"message": {"content": "second"}},
            ],
        }
    ).encode()

    rewritten = with_tagged_call(body, ToolCall("c", "f", "{}"))

    assert json.loads(rewritten) == {
        "id": "u",
        "choices": [
            {
                "message": {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [
                        {
                            "id": "c",
                            "type": "function",
                            "function": {"name": "f", "arguments": "{}"},
                        }
                    ],
                },
                "finish_reason": "tool_calls",
            },
            {"message": {"content": "second"}},
        ],
    }
    assert read_reply("m", rewritten, is_stream=False).tool_calls == (ToolCall("c", "f", "{}"),)


def test_with_tagged_call_of_an_odd_body() -> None:
    """Without a choice there is none to rewrite; what is no completion fails."""
    assert with_tagged_call(b'{"choices": []}', ToolCall("c", "f", "{}")) == b'{"choices": []}'
    with pytest.raises(GraphFailed):
        with_tagged_call(b"[]", ToolCall("c", "f", "{}"))
