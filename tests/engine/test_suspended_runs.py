"""Graphs that wait for their client's tools, from the client's side."""

import json

import trio
import trio.testing

from tests.engine.suspending import (
    DRAFTED,
    ONE_CALL,
    QUESTION,
    Message,
    asks,
    says,
    start,
    state_of,
    store_of,
    tool,
)
from tests.engine.wired import MESSAGES


async def test_tools_of_the_client_stop_a_run_and_let_it_go_on(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What was asked before is not asked again; the call goes on with all that it has seen."""
    replies = {"b": [says("a draft")], "a": [asks("x", "y"), says("done")]}
    scene = await start(nursery, DRAFTED, replies)

    first = await scene.ask([QUESTION])
    again = await scene.resume(first)

    assert first.status == 200
    assert [call_id.split("__")[1:] for call_id in first.tool_ids] == [["0", "x"], ["1", "y"]]
    assert first.body["choices"][0]["finish_reason"] == "tool_calls"
    assert first.body["usage"]["total_tokens"] == 4
    assert (again.status, again.text) == (200, "done")
    # What the reply that asked for the tools used was told with it.
    assert again.body["usage"]["total_tokens"] == 4
    last = scene.calls[-1].body["messages"]
    assert [each["role"] for each in last] == ["user", "user", "assistant", "tool", "tool"]
    assert last[1]["content"] == "Draft: a draft"
    # The backend sees its own ids: it may refuse longer ones.
    assert [call["id"] for call in last[2]["tool_calls"]] == ["x", "y"]
    assert [each["tool_call_id"] for each in last[3:]] == ["x", "y"]
    assert scene.called() == ["b", "a", "a"]


async def test_each_round_of_one_call_keeps_its_state(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Numbers go on, so that no id comes twice; what was answered before stays in the call."""
    scene = await start(nursery, ONE_CALL, {"a": [asks("x"), asks("x"), says("done")]})

    first = await scene.ask([QUESTION])
    second = await scene.resume(first, "one")
    third = await scene.resume(second, "two")

    state = state_of(first)
    assert first.tool_ids == [f"flowtool_{state}__0__x"]
    assert second.tool_ids == [f"flowtool_{state}__1__x"]
    assert third.text == "done"
    contents = [each.get("content") for each in scene.calls[-1].body["messages"]]
    assert contents == ["the question", None, "one", None, "two"]


async def test_another_call_that_waits_has_a_state_of_its_own(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The first call's final answer is kept with it, tools and all else are not asked again."""
    graph = """
steps:
  - {id: one, type: call, model: a, on_tool_calls: suspend}
  - {id: two, type: call, model: b, on_tool_calls: suspend}
  - id: told
    type: transform
    transformer: prompt
    template: "{{ one.content }} {{ two.content }}"
  - {type: respond, from: $told.text}
"""
    replies = {"a": [asks("x"), says("A")], "b": [asks("x"), says("B")]}
    scene = await start(nursery, graph, replies)

    first = await scene.ask([QUESTION])
    second = await scene.resume(first)
    last = await scene.resume(second)

    assert state_of(first) != state_of(second)
    assert second.tool_ids[0].endswith("__0__x")
    assert last.text == "A B"
    assert scene.called() == ["a", "a", "b", "b"]


async def test_rounds_of_tools_have_an_end(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A model that asks again and again does not keep a client at it for ever."""
    graph = ONE_CALL.replace("suspend}", "suspend, max_tool_rounds: 2}")
    scene = await start(nursery, graph, {"a": [asks("x")] * 3})
    first = await scene.ask([QUESTION])
    second = await scene.resume(first)

    assert (await scene.resume(second)).text == "a call had 2 rounds of tools and wants more"


async def test_run_that_cannot_be_kept_fails(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Ids that lead nowhere must not reach the client."""
    scene = await start(nursery, ONE_CALL, {"a": [asks("x")]})
    store_of(scene).max_bytes = 10

    refused = await scene.ask([QUESTION])

    assert refused.status == 500
    assert "could not be stored: too large" in refused.text


async def test_answers_of_a_run_are_streamed_as_each_request_asks(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Backends are asked the same either way."""
    scene = await start(nursery, ONE_CALL, {"a": [asks("x"), asks("x"), says("done")]})

    first = await scene.ask([QUESTION], stream=True)
    events = [json.loads(line[6:]) for line in first.body.split("\n\n") if line[6:7] == "{"]
    [call] = [call for each in events for call in each["choices"][0]["delta"].get("tool_calls", ())]
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    second = await scene.ask([QUESTION, message, tool(call["id"])])
    third = await scene.resume(second, stream=True)

    assert [first.content_type, third.content_type] == [b"text/event-stream"] * 2
    assert (call["function"]["name"], second.status) == ("look", 200)
    assert '"content":"done"' in third.body
    assert [seen.body["stream"] for seen in scene.calls] == [False] * 3


async def test_client_of_the_other_protocol_goes_on_with_its_run(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its tool results carry the same ids."""
    scene = await start(nursery, ONE_CALL, {"a": [asks("x"), says("done")]})
    looking = [{"name": "look", "input_schema": {"type": "object"}}]
    members = {"model": "auto", "max_tokens": 50, "tools": looking}

    async def ask(*messages: Message) -> Message:
        body = json.dumps({**members, "messages": messages}).encode()
        got = await scene.router.ask(body, target=MESSAGES)
        answer: Message = json.loads(got.body)
        return answer

    first = await ask(QUESTION)
    [call] = [block for block in first["content"] if block["type"] == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "seen"}
    turn = {"role": "assistant", "content": first["content"]}
    again = await ask(QUESTION, turn, {"role": "user", "content": [result]})

    assert first["stop_reason"] == "tool_use"
    assert again["content"] == [{"type": "text", "text": "done"}]


async def test_steps_of_the_call_say_what_the_client_is_answered(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """They see the calls with their new ids; each round asks anew what they ask."""
    graph = """
steps:
  - id: answer
    type: call
    model: a
    on_tool_calls: suspend
    on_suspend:
      - {id: note, type: call, model: b}
      - {type: respond, from: $pending.reply, trace_name: note, trace: $note.content}
  - {type: respond, from: $answer}
"""
    replies = {"a": [asks("x"), asks("x"), says("done")], "b": [says("first"), says("second")]}
    scene = await start(nursery, graph, replies)

    first = await scene.ask([QUESTION])
    second = await scene.resume(first)

    assert [first.body["note"], second.body["note"]] == ["first", "second"]
    assert (await scene.resume(second)).text == "done"


async def test_conversation_without_a_run_begins_one(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Tool messages of other origin are the client's history, as is a run's in mid-conversation."""
    scene = await start(nursery, ONE_CALL, {"a": [says("one"), says("two")]})
    asked = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function"}]}
    past = tool(f"flowtool_{'0' * 24}__0__x")

    assert (await scene.ask([QUESTION, asked, tool("c")])).text == "one"
    assert (await scene.ask([QUESTION, asked, past, QUESTION])).text == "two"
