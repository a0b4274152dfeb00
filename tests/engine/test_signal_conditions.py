"""Graphs whose conditions ask for signals of the client's request."""

import json
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import attrs
import msgspec
import pytest
import trio
import trio.testing

from tests.conformance.looper_reply import Response, reply_of
from tests.conformance.looper_server import ScriptedServer, SeenCall
from tests.engine.extensions import WITH_LEARNED_SIGNALS
from tests.engine.suspending import QUESTION, Scene, answered_by, asks, document, says
from tests.fakes.router import as_snapshot, start_router
from tests.fakes.runtime import ScriptedRuntime
from vsr.codec.chat import ChatRequest
from vsr.compose.generation import Parts, build_generation
from vsr.decision.signals.signal import LearnedSignal, Signal, SignalMatch
from vsr.engine.extensions import Extensions
from vsr.engine.shipped import BUILTIN
from vsr.errors import ConfigRejected
from vsr.network.memory import MemoryNetwork
from vsr.registry import Extension, Registry
from vsr.resources.program import And, Decision, Leaf, ModelRef, Program
from vsr.resources.snapshot import Snapshot

SIGNALS = """
  signals:
    keywords:
      - {name: math, operator: OR, keywords: [prove]}
      - {name: code, operator: OR, keywords: [python]}
    context: [{name: long, min_tokens: 1K}]
"""
PICKY = """
steps:
  - id: pick
    type: branch
    cases:
      - when: {signal: {type: keyword, name: math}}
        then: [{id: a, type: call, model: a}, {type: respond, from: $a}]
      - when:
          operator: AND
          conditions:
            - {type: keyword, name: code}
            - {operator: NOT, conditions: [{type: context, name: long}]}
        then: [{id: b, type: call, model: b}, {type: respond, from: $b}]
    else: [{id: c, type: call, model: c}, {type: respond, from: $c}]
"""
LEARNED = """
steps:
  - id: pick
    type: branch
    cases:
      - when: {signal: {type: domain, name: math}}
        then: [{id: a, type: call, model: a}, {type: respond, from: $a}]
    else: [{id: c, type: call, model: c}, {type: respond, from: $c}]
"""
Change = Callable[[Program], Program]


def said(text: str) -> list[dict[str, Any]]:
    """Return a conversation of one question."""
    return [{"role": "user", "content": text}]


def with_signals(text: str) -> str:
    """Return a document with signals."""
    return text.replace("routing:\n", f"routing:{SIGNALS}")


def changed(snapshot: Snapshot, change: Change) -> Snapshot:
    """Return a configuration whose default recipe is another."""
    programs = tuple(change(it) if it.name == "default" else it for it in snapshot.programs)
    return msgspec.structs.replace(snapshot, programs=programs)


async def start(
    nursery: trio.Nursery,
    graph: str,
    replies: Callable[[str], dict[str, Any]] = lambda model: says(f"from {model}"),
    *,
    inner: str = "",
    change: Change = lambda program: program,
    extensions: Extensions = BUILTIN,
    runtime: ScriptedRuntime | None = None,
) -> Scene:
    """Start a Router with signals whose decision `all` is answered by a graph."""
    network = MemoryNetwork()

    def answer(call: SeenCall) -> Response:
        model = call.body["model"]
        return reply_of(replies(model), model)

    backend = ScriptedServer(network, answer)
    await backend.start(nursery)
    snapshot = as_snapshot(with_signals(document(graph, backend.port, inner)))
    router = await start_router(
        nursery,
        network,
        changed(snapshot, change),
        extensions=extensions,
        runtime=runtime or ScriptedRuntime(),
    )
    return Scene(router, backend)


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("prove it in python", "a"),
        ("hello python", "b"),
        ("python " + "word " * 2000, "c"),
        ("hello", "c"),
    ],
)
async def test_arm_is_chosen_by_signals_of_the_request(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, text: str, model: str
) -> None:
    """Though no decision asks for them."""
    scene = await start(nursery, PICKY)

    got = await scene.ask(said(text))

    assert (got.status, got.text) == (200, f"from {model}")


async def test_signals_stand_in_loops_branches_and_graphs_inside(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One set of answers serves all of a graph, and those that it runs."""
    inner = """
steps:
  - id: pick
    type: branch
    cases:
      - {when: {type: keyword, name: code}, then: [{type: respond, from: code}]}
    else: [{type: respond, from: none}]
"""
    graph = """
steps:
  - id: race
    type: parallel
    times: 2
    first_k: 1
    success: {all: [{signal: {type: keyword, name: math}}, {usable: true}]}
    do: [{id: one, type: call, model: a}]
  - id: rounds
    type: loop
    max_items: 5
    until: {type: keyword, name: code}
    do: [{id: two, type: call, model: b}]
  - {id: told, type: subgraph, graph: inner}
  - {id: out, type: transform, transformer: prompt, template: "{{ rounds|length }} {{ told }}"}
  - {type: respond, from: $out.text}
"""
    scene = await start(nursery, graph, inner=inner)

    both = await scene.ask(said("prove it in python"))
    none = await scene.ask(said("hello"))

    assert [both.text, none.text] == ["1 code", "5 none"]


async def test_answers_of_the_runtime_come_with_those_of_decisions(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """In one bundle, once per request; an ask without an answer is unknown, and does not hold."""
    runtime = ScriptedRuntime({"domain:math": b"0.9"})

    def change(program: Program) -> Program:
        rude = Decision("rude", Leaf("tone", "rude"), priority=9, model_refs=(ModelRef("b"),))
        return msgspec.structs.replace(program, declared={}, decisions=(rude, *program.decisions))

    scene = await start(
        nursery, LEARNED, change=change, extensions=WITH_LEARNED_SIGNALS, runtime=runtime
    )

    known = await scene.ask(said("prove"))
    runtime.answers = {}
    unknown = await scene.ask(said("prove"))

    bundle = {"domain:math": b"prove", "domain:law": b"prove", "tone:rude": b"prove"}
    assert [known.text, unknown.text] == ["from a", "from c"]
    assert runtime.bundles == [bundle, bundle]


async def test_runtime_is_not_asked_for_a_graph_that_cannot_run(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A keyword decides which requests it gets; others have nothing to do with what it asks."""
    runtime = ScriptedRuntime({"domain:math": b"0.9"})

    def change(program: Program) -> Program:
        graph = msgspec.structs.replace(program.decisions[0], rules=Leaf("keyword", "code"))
        other = Decision("other", model_refs=(ModelRef("b"),), priority=-1)
        return msgspec.structs.replace(program, declared={}, decisions=(graph, other))

    scene = await start(
        nursery, LEARNED, change=change, extensions=WITH_LEARNED_SIGNALS, runtime=runtime
    )

    other = await scene.ask(said("hello"))
    taken = await scene.ask(said("python"))

    assert [other.text, taken.text] == ["from b", "from a"]
    assert [bundle.keys() for bundle in runtime.bundles] == [{"domain:math", "domain:law"}]


@attrs.define
class Counted:
    """A signal that counts how often it is evaluated."""

    calls: ClassVar[list[str]] = []
    program: Program

    def __call__(self, chat: ChatRequest) -> Sequence[SignalMatch]:
        """Match `math`."""
        self.calls.append(chat.evaluation_text)
        return [SignalMatch("math")]


async def test_signal_is_evaluated_once_and_for_graphs_only(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A request that another decision takes pays nothing."""
    Counted.calls.clear()
    signals: Registry[Signal | LearnedSignal] = Registry(
        "signal",
        [
            *(it for it in BUILTIN.signals if it.name != "context"),
            Extension[Signal | LearnedSignal](name="context", config=Counted),
        ],
    )
    graph = LEARNED.replace("domain", "context").replace(
        "steps:",
        "steps:\n  - {type: branch, cases: [{when: {type: context, name: math}, then: "
        "[{id: x, type: call, model: b}]}]}",
    )

    def change(program: Program) -> Program:
        own = msgspec.structs.replace(program.decisions[0], rules=Leaf("keyword", "code"))
        other = Decision("other", And(), priority=-1, model_refs=(ModelRef("b"),))
        return msgspec.structs.replace(program, declared={}, decisions=(own, other))

    scene = await start(
        nursery, graph, change=change, extensions=msgspec.structs.replace(BUILTIN, signals=signals)
    )

    await scene.ask(said("hello"))
    assert Counted.calls == []
    await scene.ask(said("python"))

    assert Counted.calls == ["python"]
    assert scene.called() == ["b", "b", "a"]


async def test_graph_may_fail_a_request_that_it_cannot_judge(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """As a decision may, before any step, whatever the steps make of failures."""
    graph = """
steps:
  - type: branch
    on_error: skip
    cases:
      - when: {type: domain, name: math, on_unknown: fail_request}
        then: [{id: a, type: call, model: a}]
  - {type: respond, from: went on}
"""
    runtime = ScriptedRuntime(failure=OSError("canary"))
    scene = await start(
        nursery,
        graph,
        change=lambda program: msgspec.structs.replace(program, declared={}),
        extensions=WITH_LEARNED_SIGNALS,
        runtime=runtime,
    )

    got = await scene.ask(said("prove"))

    assert (got.status, got.body["error"]["code"]) == (503, "signal_unknown")
    assert scene.called() == []


SUSPENDING = """
steps:
  - id: pick
    type: branch
    cases:
      - when: {type: keyword, name: math}
        then: [{id: deep, type: call, model: b}]
  - {id: answer, type: call, model: a, on_tool_calls: suspend}
  - id: out
    type: branch
    cases:
      - {when: {type: keyword, name: math}, then: [{type: respond, from: mathematics}]}
    else: [{type: respond, from: something else}]
"""


@pytest.mark.parametrize("first_text", ["prove it", "hello"])
async def test_run_that_goes_on_has_the_answers_that_it_began_with(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, first_text: str
) -> None:
    """The client's next request has another text in its place, and means nothing here."""
    turns = {"a": [asks("x"), says("done")], "b": [says("deep")]}
    scene = await start(nursery, SUSPENDING, lambda model: turns[model].pop(0))

    first = await scene.ask(said(first_text))
    began = scene.called()
    tail = answered_by(first)
    other = "hello" if first_text == "prove it" else "prove it"
    last = await scene.ask([QUESTION | {"content": other}, *tail[1:]])

    is_math = first_text == "prove it"
    assert began == (["b", "a"] if is_math else ["a"])
    assert last.text == ("mathematics" if is_math else "something else")
    assert scene.called() == ["a"]


async def test_run_goes_on_though_its_signals_are_unknown_by_then(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nobody asks for them a second time."""
    graph = SUSPENDING.replace(
        "keyword, name: math", "domain, name: math, on_unknown: fail_request"
    )
    turns = {"a": [asks("x"), says("done")], "b": [says("deep")]}
    runtime = ScriptedRuntime({"domain:math": b"0.9"})
    scene = await start(
        nursery,
        graph,
        lambda model: turns[model].pop(0),
        change=lambda program: msgspec.structs.replace(program, declared={}),
        extensions=WITH_LEARNED_SIGNALS,
        runtime=runtime,
    )

    first = await scene.ask(said("prove it"))
    runtime.failure = OSError("gone")
    last = await scene.resume(first)

    assert last.text == "mathematics"


def refusal(graph: str, more: str = "") -> list[str]:
    """Return why a document with a graph is refused."""
    snapshot = as_snapshot(with_signals(document(graph, 1)) + more)
    with pytest.raises(ConfigRejected) as raised:
        build_generation(Parts.default(MemoryNetwork()), snapshot, 1)
    return [str(problem) for problem in raised.value.problems]


def test_document_is_refused_for_a_signal_that_its_recipe_does_not_have() -> None:
    """With file, line and path of the condition, what is wrong and how to mend it."""
    [unknown] = refusal(PICKY.replace("name: math", "name: maths"))
    [unserved] = refusal(LEARNED)

    assert unknown.startswith("test document:")
    assert unknown.endswith(
        "routing.graphs.own.steps[0].cases[0].when.signal.name: "
        "'maths' is not declared under routing.signals.keywords, did you mean 'math'?"
    )
    assert int(unknown.split(":")[1])
    assert "when.signal.type: 'domain' is not served by this version" in unserved


def test_signals_are_those_of_the_recipe_that_the_graph_stands_in() -> None:
    """Also where no decision runs it."""
    lines = "".join(f"        {line}\n" for line in PICKY.strip("\n").splitlines())
    recipe = f"recipes:\n- name: other\n  routing:\n    graphs:\n      unused:\n{lines}"

    found = refusal("steps: [{type: respond, from: x}]", recipe)

    assert len(found) == 3
    assert all("recipes[0].routing.graphs.unused" in each for each in found)
    assert "'math' is not declared under routing.signals.keywords" in found[0]


async def test_signals_of_a_graph_are_not_shown_as_those_of_the_decision(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Diagnostic headers tell by what a request was routed."""
    scene = await start(nursery, PICKY)
    body = json.dumps({"model": "auto", "messages": said("prove")}).encode()

    got = await scene.router.ask(body, lines=[(b"x-vsr-debug", b"true")])

    assert got.head is not None
    assert not [name for name, value in got.head.lines if b"math" in value]
