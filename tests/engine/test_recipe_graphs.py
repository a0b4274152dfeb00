"""The graphs of one recipe, for its decisions and for nobody."""

import sys

import pytest
import trio

from tests.fakes.router import as_snapshot
from vsr.compose.generation import Parts, build_generation
from vsr.config.library import find_graph
from vsr.engine.recipe_graphs import RecipeGraphs, check_graphs, unknown_model
from vsr.engine.shipped import BUILTIN
from vsr.errors import ConfigRejected
from vsr.graph.graph import PLAIN, GraphCompiler
from vsr.graph.run import PLAIN_TAIL
from vsr.network.memory import MemoryNetwork
from vsr.resources.snapshot import Snapshot

HEAD = """listeners: [{name: main, address: 127.0.0.1, port: 8899}]
providers:
  models:
    - name: small
      pricing: {prompt_per_1m: 0, completion_per_1m: 2}
      reliability: {total_timeout: 9s}
      backend_refs: [{endpoint: "127.0.0.1:8001"}]
recipes:
  - name: other
    routing:
      reliability: {retry_on: 5xx, retry_count: 3}
      graphs:
        lonely:
          steps:
            - {id: a, type: call, model: small, colour: red}
            - {type: respond, from: $a}
"""
GOOD = "colour: red"


def document(routing: str = "routing: {}\n", other: str = "timeout: 3s") -> Snapshot:
    """Return a document whose recipe `other` has a graph that nobody runs."""
    return as_snapshot(HEAD.replace(GOOD, other) + routing)


def test_graph_that_nobody_runs_is_looked_through() -> None:
    """Its fault is told where it stands, and every graph of every recipe is looked at."""
    snapshot = document(other=GOOD)

    (problem,) = check_graphs(snapshot.programs, snapshot.clusters, BUILTIN)

    assert (problem.file, problem.line) == ("test document", 15)
    assert problem.path == "recipes[0].routing.graphs.lonely.steps[0].colour"


def test_router_refuses_what_config_validate_refuses() -> None:
    """The very same problems, at activation."""
    snapshot = document(other=GOOD)

    with pytest.raises(ConfigRejected) as refused:
        build_generation(Parts.default(MemoryNetwork()), snapshot, 1)

    assert refused.value.problems == check_graphs(snapshot.programs, snapshot.clusters, BUILTIN)


def test_parameter_of_a_decision_is_told_where_it_was_written() -> None:
    """In the document, also where the graph is one that ships."""
    snapshot = document(
        "routing:\n"
        "  decisions:\n"
        "    - name: all\n"
        "      rules: {operator: AND, conditions: []}\n"
        "      algorithm:\n"
        "        type: graph\n"
        "        graph: builtin/ratings\n"
        "        params:\n"
        "          models: [small]\n"
        "          volume: 11\n"
    )

    (problem,) = check_graphs(snapshot.programs, snapshot.clusters, BUILTIN)

    assert (problem.file, problem.line) == ("test document", 26)
    assert problem.path == "routing.decisions[0].algorithm.params.volume"
    assert problem.what == "is no parameter of the graph"


def test_worst_case_knows_the_models_and_every_layer() -> None:
    """Price and timeout of the model, retries of the recipe."""
    snapshot = document()
    other = snapshot.programs[1]
    graphs = RecipeGraphs(other, snapshot.clusters, BUILTIN, (other.calls,))

    _, worst = graphs.opened(other.graphs[0])

    assert graphs.problems == []
    assert (worst.calls, worst.attempts, worst.time_s) == (1, 4, 3)
    assert {gap.why for gap in worst.gaps} == {"small has no longest answer"}


def test_documents_without_models_at_hand_are_still_checked() -> None:
    """A document that is valid and not served has none; its steps are read all the same."""
    snapshot = document(other=GOOD)

    assert check_graphs(snapshot.programs, (), BUILTIN)


def test_plain_requests_run_the_graph_that_their_authored_form_compiles_to() -> None:
    """It stands ready, so that a Router without graphs loads nothing that compiles them."""
    problems: list[object] = []
    registries = BUILTIN.shipped_registries()

    graph = GraphCompiler(registries, find_graph, unknown_model).open(
        PLAIN, lambda *fault: problems.append(fault)
    )

    assert problems == []
    assert graph.tail == PLAIN_TAIL


async def test_router_without_graphs_loads_nothing_that_compiles_them() -> None:
    """A fifth of the start, and ten megabytes."""
    code = (
        "import sys, vsr.compose.process;"
        "graphs = 'vsr.graph.nodes.', 'vsr.graph.transform.', 'vsr.graph.compile';"
        "print([name for name in sys.modules if name.startswith(graphs) and 'builtin' not in name])"
    )

    found = await trio.run_process([sys.executable, "-c", code], capture_stdout=True)

    assert found.stdout == b"[]\n"
