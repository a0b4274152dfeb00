"""A graph whose budget ends it answers the client: with its best reply, if it says so."""

import json

import trio
import trio.testing

from tests.demo.raw_client import Got, chat_body
from tests.engine.suspending import QUESTION, asks, says, start

THREE = """
limits: {max_hops: HOPS, on_exhausted: respond_best}
steps:
  - {id: draft, type: call, model: b}
  - {id: answer, type: call, model: a, on_tool_calls: suspend, answers: false}
  - {id: checked, type: call, model: c, edits: [{append: "Check it."}]}
  - {id: last, type: call, model: c}
  - {type: respond, from: $last}
"""


def lines_of(got: Got) -> dict[bytes, bytes]:
    """Return the header lines of an answer."""
    assert got.head is not None
    return dict(got.head.lines)


async def test_client_gets_the_best_reply_and_is_told_if_it_asks(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """With status 200, the real usage, and a header for who debugs."""
    del autojump_clock
    replies = {"b": [says("the draft")] * 2, "a": [says("an answer")] * 2, "c": []}
    scene = await start(nursery, THREE.replace("HOPS", "2"), replies)
    body = chat_body(model="auto")

    plain = await scene.router.ask(body)
    debugged = await scene.router.ask(body, lines=[(b"x-vsr-debug", b"true")])

    for got in (plain, debugged):
        assert got.status == 200
        assert b"the draft" in got.body
        assert json.loads(got.body)["usage"]["total_tokens"] == 4
    assert lines_of(plain).get(b"x-vsr-graph-exhausted") is None
    assert lines_of(debugged)[b"x-vsr-graph-exhausted"] == b"budget"


async def test_run_that_goes_on_still_has_the_best_reply_of_before(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its calls are numbered anew, and later ones would count more."""
    del autojump_clock
    replies = {"b": [says("the draft")], "a": [asks("1"), says("an answer")], "c": [says("fine")]}
    scene = await start(nursery, THREE.replace("HOPS", "2"), replies)

    first = await scene.ask([QUESTION])
    second = await scene.resume(first)

    assert (second.status, second.text) == (200, "the draft")
    assert scene.called() == ["b", "a", "a", "c"]


async def test_resumed_call_that_the_budget_refuses_can_be_tried_again(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The client's tools have answered; an older reply in place of theirs would lose that."""
    del autojump_clock
    replies = {"b": [says("the draft")], "a": [asks("1", usage=[1, 1000, 1001])], "c": []}
    limits = "limits: {max_tokens: 3000, on_exhausted: respond_best}"
    graph = THREE.replace("limits: {max_hops: HOPS, on_exhausted: respond_best}", limits)
    graph = graph.replace("answers: false}", "answers: false, edits: [{max_completion_tokens: 9}]}")
    scene = await start(nursery, graph, replies)
    first = await scene.ask([QUESTION], max_completion_tokens=1)
    assert first.status == 200

    refused = await scene.resume(first, "seen" * 5000)

    assert (refused.status, refused.body["error"]["code"]) == (429, "budget_exhausted")
    assert scene.called() == ["b", "a"]
    again = await scene.resume(first, "seen" * 5000)
    assert again.body == refused.body
