"""The scripted world, as steps of a graph see it."""

import pytest
import trio

from tests.dryrun.small_graphs import run
from vsr.dryrun.clock import JumpingClock
from vsr.dryrun.scenario import RuntimeScript, Scenario
from vsr.dryrun.transport import ScriptedRuntime, World

ASSESS = """
steps:
  - {id: scores, type: assess, topic: nli, asks: [{text: a}, {text: b}]}
  - {type: respond, from: done}
"""
VERIFY = """
steps:
  - {id: verdict, type: assess, on_error: value, verifier: {url: "http://v/", request: {a: 1}}}
  - {type: respond, from: done}
"""
FULL = """
steps:
  - {id: answer, type: call, model: alpha, stream: STREAM, edits: [{logprobs: 2}]}
  - {type: respond, from: $answer}
"""


def test_runtime_answers_by_key_and_by_topic() -> None:
    """The key comes first; what has neither is unknown."""
    script = RuntimeScript(answers={"nli/1": 0.5, "nli": {"label": "neutral"}})
    runtime = ScriptedRuntime(World(Scenario(), 0), script)
    bundle = {"nli/0": b"{}", "nli/1": b"{}", "other/0": b"{}"}

    answers = trio.run(runtime.evaluate, bundle, clock=JumpingClock())

    assert answers == {"nli/0": b'{"label":"neutral"}', "nli/1": b"0.5"}


def test_steps_wait_for_the_runtime_and_gaps_are_told() -> None:
    """A scenario that has no answer says so in the report."""
    slow = run(ASSESS, "{runtime: {latency: 100ms, answers: {nli: 1}}}")

    assert slow.steps[0].ended_s == pytest.approx(0.1)
    assert "no answer of the runtime" not in dict(slow.assumed)
    assert dict(run(ASSESS).assumed)["no answer of the runtime"] == ("nli",)


def test_verifier_answers_by_url() -> None:
    """Nobody listens at a URL that the scenario does not have."""
    world = "{verifiers: {'http://v/': {latency: 2s, answer: {label: entailment}}}}"

    known, unknown = run(VERIFY, world), run(VERIFY)

    assert known.steps[0].failure is None
    assert round(known.latency_s, 6) == 2
    assert unknown.steps[0].failure is not None
    assert dict(unknown.assumed)["no verifier"] == ("http://v/",)


def test_tool_calls_and_finish_reason_reach_the_client() -> None:
    """As a backend would send them."""
    world = "{models: {alpha: {reply: {tool_calls: [{name: look, arguments: {q: 1}}]}}}}"

    record = run(FULL.replace("STREAM", "never"), world)

    assert record.answer.tool_calls == (("look", '{"q": 1}'),)
    assert '"finish_reason":"tool_calls"' in record.answer.body


def test_logprobs_are_made_up_where_a_request_asks_for_them() -> None:
    """And it is told; those that the scenario gives are taken."""
    graph = FULL.replace("STREAM", "never")

    assert "logprobs" in dict(run(graph).assumed)
    assert "logprobs" not in dict(
        run(graph, "{models: {alpha: {reply: {content: a, logprobs: -1}}}}").assumed
    )


def test_collected_stream_tells_its_usage() -> None:
    """The step reads the events that the backend sends."""
    world = "{models: {alpha: {reply: One two., usage: {prompt_tokens: 7, completion_tokens: 2}}}}"

    [call] = run(FULL.replace("STREAM", "collect"), world).calls

    assert (call.prompt_tokens, call.completion_tokens) == (7, 2)


def test_untold_usage_counts_as_unknown() -> None:
    """It is never zero: what was reserved counts."""
    graph = "limits: {max_tokens: 9000}" + FULL.replace("STREAM", "never")

    record = run(graph, "{models: {alpha: {usage: unknown}}}")

    assert record.totals.unknown_usage == 1
    assert record.totals.tokens == record.totals.reserved_tokens


def test_later_arrival_ends_later() -> None:
    """Equally fast calls end in the order in which they came."""
    world = World(Scenario(), 0)

    delays = [world.delay(None, "model", "alpha", at) for at in range(3)]

    assert delays == sorted(set(delays))
    assert delays[-1] - delays[0] < 1e-6
