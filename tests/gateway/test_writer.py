"""Errors as events of a stream."""

import json

import pytest

from tests.demo.raw_client import CHAT
from vsr.errors import BudgetExhausted, DeadlineExceeded
from vsr.gateway.writer import error_event, event_of_failure
from vsr.routing.request import MESSAGES_PATH


def data_of(event: bytes) -> dict[str, object]:
    """Return what an event says, which is one line."""
    *_, last = event.removesuffix(b"\n\n").split(b"\n")
    members: dict[str, object] = json.loads(last.removeprefix(b"data: "))
    return members


def test_error_event_is_in_the_protocol_of_the_target() -> None:
    """Both official clients raise on it."""
    chat, messages = (
        error_event(BudgetExhausted(), CHAT),
        error_event(DeadlineExceeded(), MESSAGES_PATH),
    )

    assert chat.startswith(b"data: {")
    assert data_of(chat)["error"] == {
        "type": "rate_limit_error",
        "code": "budget_exhausted",
        "message": "The request's budget is exhausted.",
        "param": None,
    }
    assert messages.startswith(b"event: error\ndata: {")
    assert data_of(messages) == {
        "type": "error",
        "error": {"type": "api_error", "message": "upstream request timeout"},
    }


@pytest.mark.parametrize("target", [CHAT, MESSAGES_PATH])
def test_error_that_was_an_answer_is_one_event(target: bytes) -> None:
    """However it was laid out; its members stay as they were."""
    body = b'{\n  "error": {"message": "a\\nb", "code": 1e2},\r\n "more": 10000000000000000001\n}'

    event = event_of_failure(400, body, target)

    assert event.endswith(
        b'data: {"error":{"message":"a\\nb","code":1e2},"more":10000000000000000001}\n\n'
    )
    assert event.startswith(b"event: error\n") is (target == MESSAGES_PATH)


@pytest.mark.parametrize(
    "body", [b"", b"no", b"[]", b'{"error": "text"}', b'{"detail": "x"}', b"\xff"]
)
def test_of_any_other_body_only_the_status_is_told(body: bytes) -> None:
    """It is not in the client's protocol, and may say anything."""
    event = event_of_failure(418, body, CHAT)

    error = data_of(event)["error"]
    assert isinstance(error, dict)
    assert error["message"] == "the answer has status 418"
