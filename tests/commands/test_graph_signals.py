"""`vllm-sr graph` and graphs whose conditions ask for signals."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.dryrun.test_signal_conditions import DOCUMENT
from vsr.cli import main

ALONE = """
steps:
  - id: pick
    type: branch
    cases:
      - when: {operator: OR, conditions: [{type: keyword, name: math}]}
        then: [{type: respond, from: a}]
    else: [{type: respond, from: b}]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with a document, and a graph that is none of its."""
    (tmp_path / "config.yaml").write_text(DOCUMENT)
    (tmp_path / "alone.yaml").write_text(ALONE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def graph(*arguments: str) -> Result:
    """Run a command about graphs."""
    return CliRunner().invoke(main, ["graph", *arguments])


def test_validate_tells_what_a_graph_asks() -> None:
    """As text and as JSON; signals cost no call."""
    text = graph("validate", "--config", "config.yaml")
    told = json.loads(graph("validate", "--config", "config.yaml", "--output", "json").stdout)

    assert text.stdout.splitlines()[:2] == [
        "picky: valid, as the decision hard runs it",
        "  asks keyword:math",
    ]
    assert told["graphs"][0]["signals"] == ["keyword:math"]
    assert told["graphs"][0]["worst_case"]["calls"] == 1


def test_show_and_render_tell_it_in_words() -> None:
    """Beside the arm."""
    words = "when signal keyword:math"

    for command in (("show",), ("render", "--output", "mermaid"), ("render", "--output", "svg")):
        assert words in graph(command[0], "picky", "--config", "config.yaml", *command[1:]).stdout


def test_file_is_looked_at_in_the_document_that_is_given() -> None:
    """Without one it has no signals."""
    alone, inside = (
        graph("validate", "alone.yaml"),
        graph("validate", "alone.yaml", "--config", "config.yaml"),
    )

    assert alone.exit_code == 1
    assert alone.stderr == (
        "alone.yaml:6: steps[0].cases[0].when: asks for keyword:math, and there is no document, "
        "signals are declared by the recipe whose decision runs the graph, "
        "give the document with --config\n"
    )
    assert inside.exit_code == 0
    assert "asks keyword:math" in inside.stdout


def test_graph_that_nobody_runs_is_held_to_its_recipe(folder: Path) -> None:
    """By `graph validate` and by `config validate`, with the line of the name."""
    text = DOCUMENT.replace(
        "signal: {type: keyword, name: math}", "signal: {type: keyword, name: x}"
    )
    text = text.replace("algorithm: {type: graph, graph: picky}", "modelRefs: [{model: alpha}]")
    (folder / "config.yaml").write_text(text)
    line = 1 + text[: text.index("name: x}")].count("\n")
    fault = (
        f"config.yaml:{line}: routing.graphs.picky.steps[0].cases[0].when.signal.name: "
        "'x' is not declared under routing.signals.keywords"
    )

    validated = graph("validate", "--config", "config.yaml")
    config = CliRunner().invoke(main, ["config", "validate", "config.yaml"])

    assert (validated.exit_code, config.exit_code) == (1, 1)
    assert validated.stderr.startswith(fault)
    assert fault in config.output
