"""What a looper fixture expects of the client's answer."""

import json
from typing import Any

import pytest

from tests.conformance.looper_response import ClientReply, response_differences

BODY = {"id": "1", "choices": [{"message": {"tool_calls": [{"id": "one"}, {"id": "two"}]}}]}
HEADERS = {
    "content-type": "application/json; charset=utf-8",
    "x-vsr-model": "a",
    "x-vsr-latency": "3",
    "x-vsr-total-ms": "3",
    "x-vsr-trace-id": "3",
    "x-vsr-replay-id": "3",
    "x-vsr-request-id": "3",
    "server": "s",
}
STREAM = (
    b'data:{"choices":[{"delta":{"tool_calls":[{"id":"one"}]}}]}\n\n: nothing\n\ndata: [DONE]\n\n'
)


def found(wanted: dict[str, Any], body: bytes | None = None, **more: str) -> list[str]:
    """Return the differences."""
    data = json.dumps(BODY).encode() if body is None else body
    return list(response_differences(wanted, ClientReply(200, HEADERS, data, **more)))


@pytest.mark.parametrize(
    ("wanted", "where"),
    [
        ({"status": 200}, ""),
        ({"status": 201}, "status"),
        ({"content_type": "application/json"}, ""),
        ({"content_type": "text/event-stream"}, "content_type"),
        ({"body": {"id": "1"}}, ""),
        ({"body": {"id": "2"}}, "body.id"),
        ({"absent": ["flow"]}, ""),
        ({"absent": ["flow", "id"]}, "body.id"),
        ({"keys": ["choices", "id"]}, ""),
        ({"keys": ["choices"]}, "keys"),
        ({"keys": ["choices", "id", "usage"]}, "keys"),
        ({"headers": {"X-VSR-Model": "a"}}, ""),
        ({"headers": {"x-vsr-model": "b"}}, "headers.x-vsr-model"),
        ({"headers": {"x-vsr-other": {"$absent": True}}}, ""),
        ({"headers": {"x-vsr-model": {"$absent": True}}}, "headers.x-vsr-model"),
        ({"headers": {"x-vsr-other": "b"}}, "headers.x-vsr-other"),
        (
            {
                "headers_complete": True,
                "headers": {"x-vsr-model": "a", "content-type": {"$regex": "json"}},
            },
            "",
        ),
        ({"headers_complete": True, "headers": {"x-vsr-model": "a"}}, "headers.content-type"),
        (
            {"headers_complete": True, "headers": {"content-type": {"$any": True}}},
            "headers.x-vsr-model",
        ),
    ],
)
def test_members_of_the_answer(wanted: dict[str, Any], where: str) -> None:
    """Each is compared; names of headers have no case."""
    places = [line.partition(": ")[0] for line in found(wanted)]

    assert places == ([f"response.{where}"] if where else [])


def test_body_that_is_no_json_is_a_difference() -> None:
    """And no error of the runner."""
    assert found({"body": {"id": "1"}}, b"oops") == [
        'response.body: expected {"id": "1"}, got nothing'
    ]


def test_events_are_the_complete_list() -> None:
    """Each as JSON, or as text where it is none; comments are no events."""
    first = {"choices": [{"delta": {"tool_calls": [{"id": "one"}]}}]}

    assert found({"events": [first, "[DONE]"]}, STREAM) == []
    assert len(found({"events": [first]}, STREAM)) == 1
    assert len(found({"events": [first, "[DONE]"]}, STREAM + b"data: [DO")) == 1
    assert found({"events": [{}, {}]}, STREAM) == ['response.events[1]: expected {}, got "[DONE]"']


def test_answer_that_breaks_off_is_a_difference() -> None:
    """Even where what came is as expected."""
    assert found({"status": 200}, how_it_ended="cut") == [
        "response: expected to end whole, got one that ended cut"
    ]


def test_tool_call_ids_are_those_of_either_form() -> None:
    """In order, and none of an answer that has no tool calls."""
    stream = {"content-type": "text/event-stream"}

    assert ClientReply(200, HEADERS, json.dumps(BODY).encode()).tool_call_ids() == ["one", "two"]
    assert ClientReply(200, stream, STREAM).tool_call_ids() == ["one"]
    assert ClientReply(200, HEADERS, b"oops").tool_call_ids() == []
