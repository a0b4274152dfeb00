"""Graphs and scenarios for dry runs, small enough to be read in a test."""

from pathlib import Path

from vsr.commands.virtual_router import start_virtual_router
from vsr.config.source import read_graph
from vsr.dryrun.reading import read_scenario
from vsr.dryrun.record import CallRecord, Record
from vsr.dryrun.run import dry_run
from vsr.dryrun.scenario import Scenario
from vsr.dryrun.subject import Subject, around_file

FIXTURES = Path(__file__).parents[2] / "fixtures" / "dryrun"

ONE_CALL = """
steps:
  - {id: answer, type: call, model: alpha}
  - {type: respond, from: $answer}
"""
TAIL = """
steps:
  - {id: answer, type: call, model: alpha, stream: tail}
  - {type: respond, from: $answer}
"""
RACE = """
steps:
  - id: race
    type: parallel
    branches:
      - [{id: answer, type: call, model: alpha}]
      - [{id: answer, type: call, model: beta}]
    first_k: 1
    on_error: skip
  - {id: winner, type: aggregate, strategy: first_success, from: $race, order: arrival}
  - {type: respond, from: $winner}
"""


def scenario_of(text: str) -> Scenario:
    """Return a scenario from its YAML."""
    return read_scenario(text.encode(), "test.scenario.yaml", folder=Path())


def subject_of(graph: str, scenario: Scenario) -> Subject:
    """Return a graph, from its YAML, with models that are assumed."""
    source = read_graph("test", graph.encode(), {}, file="test.yaml")
    return around_file(source, scenario.params, scenario)


def run(graph: str, scenario: str = "{}", *, seed: int = 0) -> Record:
    """Dry-run a graph in a scenario, both YAML."""
    world = scenario_of(scenario)
    return dry_run(subject_of(graph, world), world, seed, start_virtual_router)


def ledger(record: Record) -> list[object]:
    """Return what of a run's calls does not depend on how long they took."""
    return [_told(call) for call in record.calls]


def _told(call: CallRecord) -> object:
    return (
        call.ordinal,
        call.step,
        call.model,
        call.terminal,
        call.cause,
        call.reserved,
        tuple(attempt.end for attempt in call.attempts),
    )
