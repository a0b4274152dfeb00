"""Dry runs: the real engine in virtual time."""

import time
from collections.abc import Callable, Sequence

import msgspec
import pytest
import trio

from tests.dryrun.small_graphs import (
    FIXTURES,
    ONE_CALL,
    RACE,
    TAIL,
    run,
    scenario_of,
    subject_of,
)
from vsr.commands.dry_runs import prepare_scenario
from vsr.commands.virtual_router import start_virtual_router
from vsr.dryrun.record import PolicyNote
from vsr.dryrun.render.as_json import render_json
from vsr.dryrun.render.text import render_text
from vsr.dryrun.run import Surroundings, dry_run
from vsr.errors import ConfigRejected
from vsr.graph.run import GraphRun
from vsr.resources.snapshot import Snapshot
from vsr.routing.outcome import Cause, Terminal

CROWD = """
limits: {max_hops: 7}
steps:
  - id: crowd
    type: parallel
    times: 50
    on_error: skip
    do: [{id: answer, type: call, model: alpha}]
  - {id: first, type: aggregate, strategy: first_success, from: $crowd}
  - {type: respond, from: $first}
"""
HOURLY = """
steps:
  - id: rounds
    type: loop
    times: 10
    do: [{id: answer, type: call, model: alpha}]
  - {type: respond, from: done}
"""


def test_dry_run_tells_what_the_client_gets() -> None:
    """Status, text and latency are those that the Router would give with such a backend."""
    record = run(ONE_CALL, "{models: {alpha: {latency: 2s, reply: Yes.}}}")

    assert (record.answer.status, record.answer.text, record.answer.end) == (200, "Yes.", "whole")
    assert record.latency_s == pytest.approx(2)
    assert ("x-vsr-response-path", "graph") in record.answer.headers


def test_calls_meet_what_the_scenario_says_of_their_number() -> None:
    """Retries reach the model as further requests, and the real policy decides on them."""
    graph = ONE_CALL.replace("alpha}", "alpha, reliability: {retry_count: 2, retry_on: 5xx}}")

    record = run(graph, "{models: {alpha: {calls: [{fault: 503}, {fault: reset}]}}}")

    [call] = record.calls
    assert [attempt.end for attempt in call.attempts] == ["503", "upstream_reset", "200"]
    assert record.totals.attempts == 3


def test_loser_is_cancelled_when_the_winner_ends() -> None:
    """The ledger names the cause, and the backend sees its connection close in the same instant."""
    record = run(RACE, "{models: {alpha: {latency: 5s}, beta: {latency: 1s}}}")

    first, second = record.calls
    assert (first.terminal, first.cause) == (Terminal.CANCELLED, Cause.LOST)
    assert first.ended_s == pytest.approx(1)
    assert second.terminal is Terminal.SUCCEEDED
    [delay_s] = record.cut_delays_s
    assert delay_s == pytest.approx(0, abs=1e-6)


def test_client_that_leaves_ends_every_call() -> None:
    """Nothing is left at work at the backends, and nobody gets an answer."""
    record = run(RACE, "{at: {client_leaves: 400ms}, models: {alpha: {}, beta: {}}}")

    assert record.answer.end == "left"
    assert {call.cause for call in record.calls} == {Cause.CLIENT_GONE}
    assert record.open_calls == 0
    assert list(record.cut_delays_s) == pytest.approx([0, 0], abs=1e-6)


def test_tail_call_streams_to_the_client() -> None:
    """Its answer goes on as it comes, and its ledger entry closes with the answer's end."""
    world = (
        "{request: {question: Hi, stream: true},"
        " models: {alpha: {reply: a b, latency: 1s, chunk_interval: 1s}}}"
    )

    record = run(TAIL, world)

    [call] = record.calls
    assert call.is_tail
    assert (record.answer.text, call.terminal) == ("a b", Terminal.SUCCEEDED)
    assert record.answer.first_byte_s == pytest.approx(1)
    assert call.ended_s == pytest.approx(record.latency_s)
    assert record.steps[0].ended_s == pytest.approx(record.latency_s)


def test_tail_call_has_no_attempts_but_its_own() -> None:
    """Those of the calls before it are in their own ledger entries."""
    graph = """
steps:
  - {id: first, type: call, model: alpha}
  - {id: answer, type: call, model: beta, stream: tail}
  - {type: respond, from: $answer}
"""

    record = run(graph, "{models: {alpha: {latency: 1s}, beta: {latency: 2s}}}")

    ends = [[attempt.ended_s for attempt in call.attempts] for call in record.calls]
    assert ends == [pytest.approx([1]), pytest.approx([3])]


def test_budget_is_exact_however_many_branches_ask() -> None:
    """50 branches under max_hops: 7 make exactly 7 calls, those declared first."""
    record = run(CROWD, "{models: {alpha: {latency: 1s}}}")

    assert [call.step for call in record.calls] == [f"crowd[{at}]/answer" for at in range(7)]
    assert record.totals.attempts == 7


def test_same_seed_gives_the_same_output_to_the_last_byte() -> None:
    """Trio's order of ready tasks, which is random, shows nowhere."""
    world = "{models: {alpha: {latency: {uniform: {min: 1s, max: 1s}}, calls: [{fault: reset}]}}}"
    graph = CROWD.replace(
        "model: alpha", "model: alpha, reliability: {retry_count: 1, retry_on: reset}"
    )

    outputs = {render_json(run(graph, world, seed=3)) for _ in range(8)}

    assert len(outputs) == 1


def test_other_seed_draws_other_latencies() -> None:
    """And the same one the same."""
    world = "{models: {alpha: {latency: {normal: {mean: 5s, deviation: 1s}}}}}"

    first, again, other = (run(ONE_CALL, world, seed=seed).latency_s for seed in (1, 1, 2))

    assert first == again
    assert first != other


def test_pure_extensions_get_the_seed() -> None:
    """What they draw is then the same in every run of that seed."""
    seeds: list[int] = []

    async def start(
        nursery: trio.Nursery, snapshot: Snapshot, around: Surroundings
    ) -> Callable[[], Sequence[PolicyNote]]:
        def watch(run: GraphRun) -> None:
            around.on_run(run)
            assert run.inputs is not None
            seeds.append(run.inputs.seed)

        return await start_virtual_router(
            nursery, snapshot, msgspec.structs.replace(around, on_run=watch)
        )

    dry_run(subject_of(ONE_CALL, scenario_of("{}")), scenario_of("{}"), 11, start)

    assert seeds == [11]


def test_hours_take_no_time() -> None:
    """Nothing waits for real: the deadline of a graph ends a scenario of an hour."""
    graph = HOURLY.replace("steps:", "limits: {timeout: 2h}\nsteps:", 1)

    record = run(graph, "{models: {alpha: {latency: 6m}}}")

    assert record.latency_s == pytest.approx(3600)
    assert record.remaining_s == pytest.approx(3600)


def test_ten_nodes_take_a_tenth_of_a_second() -> None:
    """Of CPU, once everything is imported; the best of five, since machines are busy."""
    graph = HOURLY.replace("times: 10", "times: 4").replace(
        "do: [", "do: [{type: set, values: {}}, "
    )
    world = scenario_of("{}")
    subject = subject_of(graph, world)
    took: list[float] = []
    steps: list[int] = []

    for _ in range(5):
        began = time.process_time()
        steps.append(len(dry_run(subject, world, 0, start_virtual_router).steps))
        took.append(time.process_time() - began)

    assert min(steps) >= 10
    assert min(took) < 0.1


def test_deadline_ends_a_graph() -> None:
    """A silent model costs the graph's time and no more."""
    graph = f"limits: {{timeout: 3s}}{ONE_CALL}"

    record = run(graph, "{models: {alpha: {fault: timeout}}}")

    assert record.answer.status == 504
    assert record.calls[0].terminal is Terminal.TIMED_OUT
    assert record.latency_s == pytest.approx(3)
    assert record.remaining_s == pytest.approx(0)


def test_what_is_not_said_is_assumed_and_marked() -> None:
    """Nobody takes a made-up number for a scripted one."""
    record = run(ONE_CALL, "{models: {alpha: {latency: 1s}}}")

    assert dict(record.assumed) == {"reply": ("alpha",), "request": ("",), "usage": ("alpha",)}
    assert run(ONE_CALL).totals.tokens > 0


def test_limit_of_retries_at_once_is_told_where_it_refuses() -> None:
    """Else an author wonders why some calls are retried and others are not."""
    graph = CROWD.replace("alpha}", "alpha, reliability: {retry_count: 1, retry_on: 5xx}}").replace(
        "max_hops: 7", "max_hops: 60"
    )

    record = run(graph, "{models: {alpha: {fault: 503}}}")

    assert record.policies == (PolicyNote("alpha", "refused", "max_retries", 47),)
    assert "alpha: max_retries refused 47 times" in render_text(record)


def test_what_nobody_came_to_say_is_not_assumed() -> None:
    """A loser's reply was never sent."""
    record = run(RACE, "{models: {alpha: {latency: 5s}, beta: {latency: 1s, reply: Yes.}}}")

    assert dict(record.assumed) == {"request": ("",), "usage": ("beta",)}


def test_faults_that_have_a_rate_meet_that_share_of_the_calls() -> None:
    """Each seed meets its own."""
    world = scenario_of("{models: {alpha: {fault: {status: 500, rate: 0.5}}}}")
    subject = subject_of(ONE_CALL, world)

    ends = {
        seed: dry_run(subject, world, seed, start_virtual_router).has_succeeded
        for seed in range(12)
    }

    assert set(ends.values()) == {True, False}


def test_unreachable_model_refuses_connections() -> None:
    """Nothing listens there."""
    record = run(ONE_CALL, "{models: {alpha: {unreachable: true}}}")

    [call] = record.calls
    assert call.terminal is Terminal.FAILED
    assert {attempt.error for attempt in call.attempts} == {"upstream_connect_failure"}


def test_graph_that_does_not_compile_is_refused() -> None:
    """With the file and the line of the fault."""
    with pytest.raises(ConfigRejected, match=r"test\.yaml:3: .*modl"):
        run(ONE_CALL.replace("model:", "modl:"))


@pytest.mark.parametrize("name", ["panel"])
def test_printed_report_is_the_golden_one(name: str) -> None:
    """The report is what authors read: it changes on purpose only.

    `vllm-sr graph dry-run fixtures/dryrun/NAME.scenario.yaml > fixtures/dryrun/NAME.txt` writes it.
    """
    subject, scenario = prepare_scenario(FIXTURES / f"{name}.scenario.yaml", {})

    text = render_text(dry_run(subject, scenario, scenario.seed, start_virtual_router))

    assert text == (FIXTURES / f"{name}.txt").read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 80
    assert text.isascii()


def test_failure_behind_comments_is_told_with_the_answer() -> None:
    """The client sees status 200, a comment first, and the error at the end of the stream."""
    graph = """
stream: {keep_alive_after: 2s}
limits: {timeout: 5s}
steps:
  - {id: answer, type: call, model: alpha}
  - {type: respond, from: $answer}
"""
    world = "{request: {question: Hi, stream: true}, models: {alpha: {latency: 60s}}}"

    record = run(graph, world)

    answer = record.answer
    assert (answer.status, answer.end) == (200, "whole")
    assert answer.text == "upstream request timeout"
    assert answer.first_byte_s == pytest.approx(2)
    assert answer.ended_s == pytest.approx(5)
    assert "first byte at 2.000s (a comment)" in render_text(record)


def test_comment_and_what_ends_at_its_time_have_an_order() -> None:
    """Or the same seed would not give the same output."""
    graph = """
stream: {progress: true, keep_alive_after: 1s}
steps:
  - {id: rounds, type: loop, times: 5, do: [{id: said, type: call, model: alpha}]}
  - {id: answer, type: call, model: alpha}
  - {type: respond, from: $answer}
"""
    world = "{request: {question: Hi, stream: true}, models: {alpha: {latency: 1s}}}"

    outputs = {run(graph, world).answer.body for _ in range(6)}

    assert len(outputs) == 1
