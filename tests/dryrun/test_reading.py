"""Scenario files: typed, strict, every fault at once."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dryrun.small_graphs import scenario_of
from vsr.demo.faults import Fault
from vsr.dryrun.reading import read_scenario_file
from vsr.dryrun.scenario import Amounts, FaultScript, Latency, Scenario, Shape, TextTest
from vsr.errors import ConfigRejected
from vsr.routing.outcome import Usage

FAULTY = """\
graf: x
seed: soon
models:
  a: {latency: [1], fault: boom, calls: [{latency: 2x}]}
  b: {latency: {normal: {mean: 1s}}}
  c: {fault: 200, usage: 3, reply: {content: hi, logprobs: high}}
  d: {latency: {uniform: {min: 2s, max: 1s}}, fault: {rate: 0.5}}
  e: {latency: {zipf: {}}, reply: 7}
request: {question: a, messages: []}
expect: {calls: many, result: {matches: "("}, status: 1000}
"""


def test_every_fault_is_told_at_once_with_its_line() -> None:
    """An author mends a file in one go."""
    with pytest.raises(ConfigRejected) as caught:
        scenario_of(FAULTY)

    places = {(each.line, each.path) for each in caught.value.problems}
    assert {each.file for each in caught.value.problems} == {"test.scenario.yaml"}
    assert places == {
        (1, "graf"),
        (2, "seed"),
        (4, "models.a.latency"),
        (4, "models.a.fault"),
        (4, "models.a.calls[0].latency"),
        (5, "models.b.latency.normal.deviation"),
        (6, "models.c.fault"),
        (6, "models.c.usage"),
        (6, "models.c.reply.logprobs"),
        (7, "models.d.latency.uniform"),
        (7, "models.d.fault"),
        (8, "models.e.latency"),
        (8, "models.e.latency.zipf"),
        (8, "models.e.reply"),
        (9, "request"),
        (10, "expect.calls"),
        (10, "expect.result.matches"),
        (10, "expect.status"),
    }


def test_empty_scenario_says_nothing() -> None:
    """Everything is then assumed."""
    assert scenario_of("{}") == Scenario()


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2", Latency(Shape.FIXED, 2.0)),
        ("250ms", Latency(Shape.FIXED, 0.25)),
        (
            "{normal: {mean: 2s, deviation: 0.5}, seed: 3}",
            Latency(Shape.NORMAL, 2.0, 0.5, seed=3),
        ),
        ("{lognormal: {median: 1m, sigma: 0.8}}", Latency(Shape.LOGNORMAL, 60.0, 0.8)),
        ("{uniform: {min: 1s, max: 3s}}", Latency(Shape.UNIFORM, 1.0, 3.0)),
        ("{exponential: {mean: 100ms}}", Latency(Shape.EXPONENTIAL, 0.1)),
    ],
)
def test_latency_is_a_time_or_a_distribution(written: str, read: Latency) -> None:
    """Numbers are seconds."""
    scenario = scenario_of(f"{{models: {{a: {{latency: {written}}}}}}}")

    assert scenario.models["a"].every.latency == read


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("503", FaultScript(Fault.STATUS, 503)),
        ("timeout", FaultScript(Fault.SILENCE)),
        ("none", FaultScript(None)),
        ("length_too_long", FaultScript(Fault.LENGTH_TOO_LONG)),
        ("{status: 429, retry_after: 2}", FaultScript(Fault.STATUS, 429, 2)),
        (
            "{kind: slow_first_byte, delay: 5s, rate: 0.1}",
            FaultScript(Fault.SLOW_FIRST_BYTE, late_s=5.0, rate=0.1),
        ),
        ("{kind: truncated, after_events: 4}", FaultScript(Fault.DROP_MIDSTREAM, after_events=4)),
    ],
)
def test_fault_is_a_status_a_word_or_a_mapping(written: str, read: FaultScript) -> None:
    """Every fault of the demo models has a name here."""
    scenario = scenario_of(f"{{models: {{a: {{fault: {written}}}}}}}")

    assert scenario.models["a"].every.fault == read


def test_call_says_only_what_is_its_own() -> None:
    """What it leaves out is what holds for every call; `none` takes a fault away."""
    scenario = scenario_of(
        "{models: {a: {latency: 1s, usage: {prompt_tokens: 3}, fault: 500,"
        " calls: [{fault: none, reply: First.}, {usage: unknown}]}}}"
    )

    first, second, third = (scenario.models["a"].turn(at) for at in range(3))
    assert first.reply is not None
    assert (first.reply.content, first.fault, first.usage) == (
        "First.",
        FaultScript(None),
        Usage(3, 0),
    )
    assert (second.no_usage, second.fault) == (True, FaultScript(Fault.STATUS, 500))
    assert (third.reply, third.usage) == (None, Usage(3, 0))


def test_told_usage_of_a_call_comes_before_the_untold_one_of_all() -> None:
    """The last word is the call's."""
    told = scenario_of("{models: {a: {usage: unknown, calls: [{usage: {prompt_tokens: 3}}]}}}")

    first, second = (told.models["a"].turn(at) for at in range(2))
    assert (first.no_usage, first.usage) == (False, Usage(3, 0))
    assert (second.no_usage, second.usage) == (True, None)


def test_reply_may_be_json_and_have_tool_calls_and_logprobs() -> None:
    """A mapping as content is written as JSON; one logprob holds for every word."""
    scenario = scenario_of(
        "{models: {a: {reply: {content: {a: 1}, tool_calls: [{name: f, arguments: {x: 1}}],"
        " logprobs: -0.5, finish_reason: stop}}}}"
    )

    reply = scenario.models["a"].every.reply
    assert reply is not None
    assert reply.content == '{"a": 1}'
    assert (reply.tool_calls[0].id, reply.tool_calls[0].arguments) == ("call_1", '{"x": 1}')
    assert [(each.token, each.logprob) for each in reply.logprobs or ()] == [
        ('{"a":', -0.5),
        (" 1}", -0.5),
    ]


def test_expectations_have_short_and_long_forms() -> None:
    """A number, or a range; a text, or what it must contain."""
    expect = scenario_of(
        "{expect: {calls: {a: 1, b: {min: 1, max: 2}, total: 3}, attempts: {max: 4},"
        " result: {contains: x}, latency: 2s}}"
    ).expect

    assert expect is not None
    assert (expect.calls, expect.attempts) == (Amounts(3, 3), Amounts(None, 4))
    assert expect.calls_of == {"a": Amounts(1, 1), "b": Amounts(1, 2)}
    assert (expect.result, expect.latency_s) == (TextTest(contains="x"), 2.0)


def test_references_of_graphs_are_no_variables_of_the_environment() -> None:
    """`$name` stays what it is, as in graphs."""
    scenario = scenario_of("{params: {text: $HOME}, request: {question: $HOME}}")

    assert scenario.params == {"text": "$HOME"}


def test_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """As any other fault."""
    with pytest.raises(ConfigRejected, match="can't be read"):
        read_scenario_file(tmp_path / "none.scenario.yaml")


@given(seed=st.integers(0, 2**32), place=st.text(max_size=5), shape=st.sampled_from(list(Shape)))
@settings(max_examples=60, deadline=None)
def test_drawn_latency_is_a_time_that_seed_and_place_decide(
    seed: int, place: str, shape: Shape
) -> None:
    """Never negative, whatever the deviation; the order of draws does not matter."""
    latency = Latency(shape, 0.5, 1.5)

    drawn = latency.draw(seed, place)

    assert drawn >= 0
    assert latency.draw(seed, place) == drawn
    if shape is Shape.UNIFORM:
        assert 0.5 <= drawn <= 1.5
