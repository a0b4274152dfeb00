"""`vllm-sr graph dry-run`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.dryrun.small_graphs import FIXTURES
from vsr.cli import main

PANEL = str(FIXTURES / "panel.scenario.yaml")


def invoke(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["graph", "dry-run", *arguments])


def test_report_goes_to_stdout() -> None:
    """It is the golden one, and the run was what its scenario expects."""
    result = invoke(PANEL)

    assert result.exit_code == 0
    assert result.stdout == (FIXTURES / "panel.txt").read_text(encoding="utf-8")


def test_graph_file_runs_without_anything_else() -> None:
    """Models, parameters, request and replies are assumed, and it is said."""
    result = invoke(str(FIXTURES / "panel.yaml"))

    assert result.exit_code == 0
    assert "ASSUMED" in result.stdout
    assert "parameters judge and panel" in result.stdout


def test_built_in_graph_takes_parameters() -> None:
    """Values are YAML."""
    result = invoke("builtin/ratings", "--param", "models=[one, two]", "--output", "json")

    shown = json.loads(result.stdout)
    assert [call["model"] for call in shown["calls"]] == ["one", "two"]
    assert shown["has_succeeded"] is True


@pytest.mark.parametrize("output", ["svg", "html"])
def test_pictures_are_whole_in_one_file(output: str) -> None:
    """Every element is closed, nothing outside is named, and every model is shown."""
    shown = invoke(PANEL, "--output", output).stdout

    names = ("svg", "style", "text", "html", "body", "pre")
    assert all(shown.count(f"<{name}") == shown.count(f"</{name}>") for name in names)
    assert "src=" not in shown
    assert "href=" not in shown
    assert all(model in shown for model in ("alpha", "beta", "gamma", "judge"))


def test_mermaid_shows_every_attempt() -> None:
    """In milliseconds; what the answer waited for is critical."""
    lines = invoke(PANEL, "--output", "mermaid").stdout.splitlines()

    assert lines[0] == "gantt"
    assert "    beta 503 :done, 0, 300" in lines
    assert "    judge ok :crit, active, 1200, 2700" in lines


def test_runs_show_percentiles() -> None:
    """One seed each."""
    text = invoke(PANEL, "--runs", "3").stdout
    shown = json.loads(invoke(PANEL, "--runs", "3", "--output", "json").stdout)

    assert "panel: 3 dry runs, seeds 7 to 9" in text
    assert shown["failure_rate"] == 0
    assert shown["latency_s"]["p99"] == 2.7


def test_broken_expectation_ends_with_1_and_a_diff(tmp_path: Path) -> None:
    """The report is shown all the same; other forms keep stdout for themselves."""
    graph = (FIXTURES / "panel.yaml").read_text(encoding="utf-8")
    (tmp_path / "panel.yaml").write_text(graph, encoding="utf-8")
    scenario = tmp_path / "panel.strict.scenario.yaml"
    scenario.write_text("expect: {latency: 1s, calls: 4}", encoding="utf-8")

    text, as_json = invoke(str(scenario)), invoke(str(scenario), "--output", "json")

    diff = "  latency\n    - at most 1.000s\n    + 2.000s\n"
    assert (text.exit_code, as_json.exit_code) == (1, 1)
    assert text.stdout.endswith(f"\nEXPECTED\n{diff}")
    assert as_json.stderr.endswith(diff)
    assert json.loads(as_json.stdout)["latency_s"] == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nothing"], "there is no graph 'nothing'"),
        (["none.yaml"], "none.yaml:1: (document): can't be read"),
        ([str(FIXTURES / "panel.yaml"), "--param", "panel=alpha"], "panel"),
        ([str(FIXTURES / "panel.yaml"), "--request", "none.json"], "chat completion's body"),
    ],
)
def test_faults_go_to_stderr_and_end_with_1(arguments: list[str], told: str) -> None:
    """Nothing is shown in their place."""
    result = invoke(*arguments)

    assert result.exit_code == 1
    assert told in result.stderr
    assert result.stdout == ""


def test_parameter_without_a_value_is_a_usage_error() -> None:
    """As any flag that is used wrongly."""
    assert invoke("builtin/ratings", "--param", "models").exit_code == 2


def test_request_comes_from_a_file(tmp_path: Path) -> None:
    """Its model does not matter: the graph answers."""
    request = tmp_path / "request.json"
    messages = [{"role": "user", "content": "Hello"}]
    request.write_text(json.dumps({"model": "x", "messages": messages, "stream": True}))

    shown = json.loads(invoke(PANEL, "--request", str(request), "--output", "json").stdout)

    assert "request" not in shown["assumed"]
    assert ["content-type", "text/event-stream"] in shown["answer"]["headers"]


def test_timing_is_told_on_stderr() -> None:
    """It differs from run to run, and so has no place in the report."""
    result = invoke(PANEL, "--timing")

    assert "inside 0." in result.stderr
    assert "inside" not in result.stdout


def test_help_imports_nothing_heavy() -> None:
    """The group's commands import what they need when they run."""
    heavy = ("trio", "yaml", "msgspec", "vsr.compose")
    code = f"import sys, vsr.cli; print([each for each in {heavy} if each in sys.modules])"

    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603  # our own code

    assert told.stdout.strip() == "[]"
