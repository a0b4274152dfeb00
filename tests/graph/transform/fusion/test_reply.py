"""Transformer `fusion_reply`."""

import pytest

from vsr.codec.chat_body import ChatBody
from vsr.codec.chat_reply import Reply, ToolCall
from vsr.errors import BudgetExhausted, GraphFailed
from vsr.graph.transform.fusion.reply import RequireReply
from vsr.graph.value import Failure, Inputs

INPUTS = Inputs(ChatBody({}))
FAILURE = Failure("request failed with status 429", "upstream")
EMPTY = Reply("m")
CALLING = Reply("m", tool_calls=(ToolCall("1", "f", "{}"),), has_tool_calls=True)


@pytest.mark.parametrize(
    ("reply", "fields", "message"),
    [
        (FAILURE, {"stage": "panel", "on_failure": "skip"}, FAILURE.message),
        (
            FAILURE,
            {"stage": "panel", "on_failure": "fail"},
            'fusion panel model "m" failed: request failed with status 429',
        ),
        (
            Reply("m", " ", "\n"),
            {"stage": "panel", "on_failure": "fail"},
            'fusion panel model "m" failed: the reply has neither content nor reasoning',
        ),
        (
            FAILURE,
            {"stage": "final"},
            'fusion final synthesis failed for judge model "m": request failed with status 429',
        ),
        (
            FAILURE,
            {"stage": "fallback"},
            'fusion quorum fallback failed for model "m": request failed with status 429',
        ),
        (
            Reply("m", "", "only a thought"),
            {"stage": "fallback"},
            'fusion quorum fallback failed for model "m": ',
        ),
    ],
)
def test_reply_names_what_failed(
    reply: Reply | Failure, fields: dict[str, object], message: str
) -> None:
    """The text says which call of which model ended the run, and why."""
    with pytest.raises(GraphFailed) as caught:
        RequireReply(reply=reply, model="m", **fields)(INPUTS)  # type: ignore[arg-type]

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("stage", ["panel", "final", "fallback"])
def test_reply_that_the_budget_refused_is_no_failure_of_its_model(stage: str) -> None:
    """It stays what it is, so that the client learns not to ask again."""
    refused = Failure(str(BudgetExhausted()), BudgetExhausted.code)

    with pytest.raises(BudgetExhausted):
        RequireReply(refused, "m", stage, "skip")(INPUTS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reply", "stage", "on_failure"),
    [
        (EMPTY, "panel", "skip"),
        (Reply("m", "", "only a thought"), "panel", "fail"),
        (EMPTY, "final", "fail"),
        (CALLING, "fallback", "fail"),
        (Reply("m", "text"), "fallback", "fail"),
    ],
)
def test_reply_is_passed_on_where_it_is_enough(reply: Reply, stage: str, on_failure: str) -> None:
    """A judge may say nothing; a fallback may call tools instead of speaking."""
    strategy = RequireReply(reply, "m", stage, on_failure)  # type: ignore[arg-type]

    assert strategy(INPUTS) is reply
