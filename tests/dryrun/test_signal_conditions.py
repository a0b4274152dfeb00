"""Dry runs of graphs whose conditions ask for signals."""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
import trio

from tests.dryrun.small_graphs import run, scenario_of
from tests.engine.extensions import WITH_LEARNED_SIGNALS
from tests.fakes.router import as_snapshot
from vsr.commands.dry_runs import Source, prepare
from vsr.commands.virtual_router import start_virtual_router
from vsr.compose.generation import Parts
from vsr.compose.router import Router
from vsr.dryrun.record import PolicyNote, Record
from vsr.dryrun.run import Surroundings, dry_run
from vsr.dryrun.subject import in_snapshot
from vsr.errors import ConfigRejected
from vsr.resources.snapshot import Snapshot
from vsr.telemetry.access_log import AccessLog

DOCUMENT = """
version: v0.3
listeners: [{name: http, address: 127.0.0.1, port: 8899}]
providers:
  defaults: {model: alpha}
  models:
    - {name: alpha, backend_refs: [{endpoint: "127.0.0.1:8001"}]}
    - {name: beta, backend_refs: [{endpoint: "127.0.0.1:8002"}]}
routing:
  signals:
    keywords: [{name: math, operator: OR, keywords: [prove]}]
  graphs:
    picky:
      steps:
        - id: pick
          type: branch
          cases:
            - when: {signal: {type: keyword, name: math}}
              then: [{id: a, type: call, model: alpha}, {type: respond, from: $a}]
          else: [{id: b, type: call, model: beta}, {type: respond, from: $b}]
  decisions:
    - name: hard
      rules: {type: keyword, name: math}
      algorithm: {type: graph, graph: picky}
"""


def models_of(record: Record) -> list[str]:
    """Return the models that were called."""
    return [call.model for call in record.calls]


@pytest.mark.parametrize(("question", "model"), [("prove it", "alpha"), ("hello", "beta")])
def test_signals_of_the_document_are_evaluated_for_real(
    tmp_path: Path, question: str, model: str
) -> None:
    """For the request of a file as for that of a scenario, whatever the decision's rules say."""
    document, request = tmp_path / "config.yaml", tmp_path / "request.yaml"
    document.write_text(DOCUMENT)
    request.write_text(f"messages: [{{role: user, content: {question}}}]")
    scenario = tmp_path / "picky.scenario.yaml"
    scenario.write_text(f"{{graph: picky, config: config.yaml, request: {{question: {question}}}}}")
    sources = Source("picky", document, request=request), Source(str(scenario))

    for source in sources:
        subject, world = prepare(source, {})
        assert models_of(dry_run(subject, world, 0, start_virtual_router)) == [model]


async def _start_learned(
    nursery: trio.Nursery, snapshot: Snapshot, around: Surroundings
) -> Callable[[], Sequence[PolicyNote]]:
    """Start a Router that has learned signals, too; see `vsr.dryrun.run.StartRouter`."""

    async def forget(data: bytes) -> None:
        del data
        await trio.lowlevel.checkpoint()

    parts = msgspec.structs.replace(
        Parts.default(around.network),
        extensions=WITH_LEARNED_SIGNALS,
        runtime=around.runtime,
        monotonic=around.monotonic,
        unix=around.unix,
        on_run=around.on_run,
    )
    router = await Router.bind(parts, snapshot, AccessLog(forget))
    await nursery.start(router.run)
    return tuple


@pytest.mark.parametrize(
    ("answers", "model"), [("{'domain:math': 0.9}", "alpha"), ("{'domain:math': 0.1}", "beta")]
)
def test_scenario_says_what_a_model_makes_of_the_request(answers: str, model: str) -> None:
    """The runtime is scripted for signals as for steps, and takes its time."""
    scenario = scenario_of(f"{{runtime: {{latency: 1s, answers: {answers}}}}}")
    snapshot = as_snapshot(DOCUMENT.replace("signal: {type: keyword", "signal: {type: domain"))
    program = snapshot.programs[0]
    subject = in_snapshot(snapshot, (program, program.graphs[0]), {})

    record = dry_run(subject, scenario, 0, _start_learned)

    assert models_of(record) == [model]
    assert record.latency_s > 1.5
    assert ("no answer of the runtime", ("domain:law",)) in record.assumed


def test_graph_of_a_file_has_no_signals() -> None:
    """There is no recipe that declares any."""
    graph = """
steps:
  - id: pick
    type: branch
    cases: [{when: {type: keyword, name: math}, then: [{type: respond, from: a}]}]
    else: [{type: respond, from: b}]
"""

    with pytest.raises(ConfigRejected) as raised:
        run(graph)

    assert str(raised.value.problems[0]) == (
        "test.yaml:5: steps[0].cases[0].when: asks for keyword:math, and there is no document, "
        "signals are declared by the recipe whose decision runs the graph, "
        "give the document with --config"
    )
