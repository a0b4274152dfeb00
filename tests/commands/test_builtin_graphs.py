"""The graphs that ship do what their scenarios in `fixtures/graphs` say."""

from click.testing import CliRunner

from tests.dryrun.small_graphs import FIXTURES
from vsr.cli import main

ROOT = FIXTURES.parents[1]
SCENARIOS = ROOT / "fixtures" / "graphs"


def test_scenarios_of_the_built_in_graphs_hold() -> None:
    """Nobody's change to a graph, or to what runs it, changes what it does unseen."""
    result = CliRunner().invoke(main, ["graph", "test", str(SCENARIOS)])

    assert [line for line in result.stdout.splitlines() if not line.startswith("ok ")] == [
        f"{len(list(SCENARIOS.glob('*.scenario.yaml')))} passed, 0 failed"
    ]
    assert result.exit_code == 0


def test_every_built_in_graph_has_a_scenario() -> None:
    """One that is added brings at least one."""
    told = {file.name.partition(".")[0] for file in SCENARIOS.glob("*.scenario.yaml")}

    assert {file.stem for file in (ROOT / "graphs").glob("*.yaml")} <= told
