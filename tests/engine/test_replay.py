"""Runs that stopped for tools come to what they would have come to without stopping."""

import json
import math
from collections import Counter
from typing import Any

import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.looper_reply import Response, reply_of
from tests.conformance.looper_server import SeenCall
from tests.engine.suspending import (
    QUESTION,
    asks,
    says,
    start,
    start_answering,
)

Step = dict[str, Any]
PARALLEL = """
steps:
  - id: panel
    type: parallel
    times: 3
    first_k: 2
    on_error: skip
    do:
      - {id: said, type: call, model: b}
      - type: transform
        transformer: prompt
        template: "{{ index }}: {{ said.content }}"
  - {id: texts, type: aggregate, strategy: collect_texts, from: $panel}
  - {id: answer, type: call, model: a, on_tool_calls: suspend}
  - {type: respond, from: told, trace_name: told, trace: {panel: $panel, texts: $texts}}
"""
OUTER = """
steps:
  - {id: draft, type: call, model: b}
  - {id: nested, type: subgraph, graph: inner, params: {word: $draft.content}}
  - {type: respond, from: $nested}
"""
INNER = """
params: {word: {type: string}}
steps:
  - {id: ask, type: transform, transformer: prompt, template: "{{ params.word }}"}
  - {id: answer, type: call, model: a, request: $ask, on_tool_calls: suspend}
  - {type: respond, from: $answer}
"""
TIMED = """
steps:
  - id: first
    type: loop
    times: 2
    timeout: 1s
    do: [{id: said, type: call, model: b, on_error: value}]
  - id: second
    type: loop
    times: 1
    timeout: 1s
    do: [{id: answer, type: call, model: a, on_tool_calls: suspend}]
  - {type: respond, from: told, trace_name: told, trace: {first: $first, second: $second}}
"""


class Backend:
    """Says by the number of the call; `a` asks for tools first, if it is to stop runs."""

    def __init__(self, *, stops: bool) -> None:
        self.stops = stops
        self.counts: Counter[str] = Counter()

    def answer(self, call: SeenCall) -> Response:
        """Return the reply: some come late, no two of them at once, and some of `b` fail."""
        model, messages = call.body["model"], call.body["messages"]
        if model == "a" and self.stops and messages[-1]["role"] != "tool":
            return reply_of(asks("x"), model)
        number = self.counts[model]
        self.counts[model] += 1
        untied = math.sqrt(number) / 1000  # sums of these differ, too: two calls of one branch
        if model == "b" and number % 5 == 3:
            return reply_of({"status": 500, "delay_ms": 10 + untied}, model)
        return reply_of(says(f"{model}{number}", delay_ms=number * 7 % 5 * 10 + untied), model)


def numbered(steps: list[Step], prefix: str = "s", *, is_branch: bool = False) -> list[Step]:
    """Return the steps with ids that no two of them share, and with a variable in each loop.

    A parallel step that may fail stands in a loop that does not. Within another one it has no
    time of its own: of branches whose time passes at one instant any may be first.
    """
    named = []
    for at, step in enumerate(steps):
        own = {**step, "id": f"{prefix}{at}"}
        if own["type"] == "parallel" and is_branch:
            del own["timeout"]
        if own["type"] == "parallel":
            own["do"] = numbered(own["do"], own["id"] + "_", is_branch=True)
        if own["type"] == "loop" or (own["type"] == "parallel" and not is_branch):
            own = _looped(own, is_branch=is_branch)
        named.append(own)
    return named


def _looped(step: Step, *, is_branch: bool) -> Step:
    name, variable = step["id"], step["id"] + "_v"
    if step["type"] == "loop":
        loop = {**step, "do": numbered(step["do"], name + "_", is_branch=is_branch)}
    else:
        guarded = {**step, "id": name + "_p"}
        loop = {"id": name, "type": "loop", "times": 1, "on_error": "value", "do": [guarded]}
    last = loop["do"][-1]["id"]
    loop["do"] = [*loop["do"], {"type": "set", "values": {variable: f"${last}"}}]
    return {**loop, "state": {variable: "none"}, "yield": f"${variable}"}


ASK: Step = {"type": "call", "model": "b", "on_error": "value"}
WAIT: Step = {"type": "call", "model": "a", "on_tool_calls": "suspend"}


def lists_of(items: st.SearchStrategy[Step]) -> st.SearchStrategy[list[Step]]:
    """Return lists of at least one step."""
    return st.lists(items, min_size=1, max_size=3)


def parallels(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[Step]:
    """Return parallel steps with such steps in their branches."""
    return st.fixed_dictionaries(
        {
            "type": st.just("parallel"),
            "times": st.integers(1, 3),
            "first_k": st.sampled_from([None, 1]),
            "timeout": st.sampled_from([None, "25ms"]),
            "on_timeout": st.sampled_from(["partial", "fail"]),
            "on_error": st.sampled_from(["skip", "fail", "fail_after_all"]),
            "do": lists_of(inner),
        }
    )


def loops(inner: st.SearchStrategy[Step]) -> st.SearchStrategy[Step]:
    """Return loops over such steps."""
    return st.fixed_dictionaries(
        {"type": st.just("loop"), "times": st.integers(1, 2), "do": lists_of(inner)}
    )


ASKS = st.recursive(st.just(ASK), lambda inner: parallels(inner) | loops(inner), max_leaves=4)
SIDE_BY_SIDE = parallels(st.just(ASK))
STEPS = st.recursive(
    st.just(WAIT) | SIDE_BY_SIDE | ASKS, lambda inner: loops(inner) | st.just(WAIT), max_leaves=4
)


async def told(graph: str, *, stops: bool) -> tuple[object, Counter[str]]:
    """Return what a graph has told in the end, and how often each model has answered."""
    backend = Backend(stops=stops)
    async with trio.open_nursery() as nursery:
        scene = await start_answering(nursery, graph, backend.answer)
        reply = await scene.ask([QUESTION])
        while reply.status == 200 and reply.body["choices"][0]["finish_reason"] == "tool_calls":
            reply = await scene.resume(reply)
        nursery.cancel_scope.cancel(reason="told")
    assert reply.status == 200, reply.body
    return _without_rounds(reply.body["told"]), backend.counts


def _without_rounds(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_rounds(each) for key, each in value.items() if key != "tool_rounds"}
    return [_without_rounds(each) for each in value] if isinstance(value, list) else value


@settings(max_examples=25, deadline=None)
@given(steps=lists_of(STEPS).map(lambda steps: [*steps, WAIT]))
def test_run_that_stops_comes_to_the_same(steps: list[Step]) -> None:
    """Values, variables, losers and failures; and no call is made twice."""
    named = numbered(steps)
    trace = {step["id"]: f"${step['id']}" for step in named}
    end = {"type": "respond", "from": "told", "trace_name": "told", "trace": trace}
    graph = json.dumps({"steps": [*named, end]})

    def run(*, stops: bool) -> tuple[object, Counter[str]]:
        async def main() -> tuple[object, Counter[str]]:
            return await told(graph, stops=stops)

        return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))

    assert run(stops=True) == run(stops=False)


async def test_branches_are_not_run_twice(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Not the losers either: who was first, and who was left, is kept."""
    slow = [says("one", delay_ms=50), says("never", delay_ms=90), says("three")]
    scene = await start(nursery, PARALLEL, {"b": slow, "a": [asks("x"), says("done")]})

    last = await scene.resume(await scene.ask([QUESTION]))

    panel = last.body["told"]["panel"]
    assert [outcome["rank"] for outcome in panel] == [1, None, 0]
    assert [(each["value"] or {}).get("text") for each in panel] == ["0: one", None, "2: three"]
    assert last.body["told"]["texts"] == ["0: one", "2: three"]
    assert scene.called() == ["b", "b", "b", "a", "a"]


async def test_nested_graph_stops_the_one_around_it(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """And goes on in its place, with the parameters that it was given."""
    replies = {"b": [says("a draft")], "a": [asks("x"), says("done")]}
    scene = await start(nursery, OUTER, replies, INNER)

    first = await scene.ask([QUESTION])
    last = await scene.resume(first)

    assert last.text == "done"
    assert scene.calls[-1].body["messages"][1]["content"] == "a draft"
    assert scene.called() == ["b", "a", "a"]


async def test_nested_graph_that_took_too_long_does_not_run_twice(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """That it failed, and how, is kept, though what it asked had no answer."""
    inner = """
limits: {timeout: 1s}
steps:
  - {id: said, type: call, model: b}
  - {type: respond, from: $said}
"""
    outer = """
steps:
  - {id: nested, type: subgraph, graph: inner, on_error: value}
  - {id: answer, type: call, model: a, on_tool_calls: suspend}
  - {type: respond, from: told, trace_name: told, trace: $nested.code}
"""
    replies = {"b": [says("late", delay_ms=5000)], "a": [asks("x"), says("done")]}
    scene = await start(nursery, outer, replies, inner)

    last = await scene.resume(await scene.ask([QUESTION]))

    assert last.body["told"] == "deadline_exceeded"
    assert scene.called() == ["b", "a", "a"]


async def test_time_of_a_loop_is_that_of_all_its_calls(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Where a run goes on that had stopped in a round there is none: the client took its time."""
    replies = {
        "b": [says("one", delay_ms=600), says("late", delay_ms=600)],
        "a": [asks("x"), says("done", delay_ms=3000)],
    }
    scene = await start(nursery, TIMED, replies)

    last = await scene.resume(await scene.ask([QUESTION]))

    first, second = last.body["told"]["first"]
    assert (first["content"], second["code"]) == ("one", "deadline_exceeded")
    assert last.body["told"]["second"][0]["content"] == "done"
