"""`vllm-sr graph list, show, validate, render`, as their users see them.

The golden files are rewritten by `VSR_REWRITE_GOLDEN=1 .venv/bin/pytest tests/commands`.
"""

import json
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from tests.golden import FIXTURES, golden
from vsr.cli import main

GRAPHS = FIXTURES / "graphs"


def run(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> Result:
    """Run a command where the fixtures are."""
    monkeypatch.chdir(GRAPHS)
    return CliRunner().invoke(main, ["graph", *arguments])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("show-debate.txt", ["show", "debate", "--config", "recipe.yaml"]),
        ("validate-recipe.txt", ["validate", "--config", "recipe.yaml"]),
        ("validate-file.txt", ["validate", "debate.yaml"]),
        ("render-debate.mermaid", ["render", "debate.yaml"]),
        ("render-debate.svg", ["render", "debate.yaml", "--output", "svg"]),
    ],
)
def test_output_is_the_golden_one(
    name: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 0, nothing on standard error; text is at most 80 columns wide."""
    result = run(*arguments, monkeypatch=monkeypatch)

    assert (result.exit_code, result.stderr) == (0, "")
    assert golden(f"graphs/{name}", result.stdout) == result.stdout
    if name.endswith(".txt"):
        assert max(map(len, result.stdout.splitlines())) <= 80


def test_list_has_a_line_for_each_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the document first, each with its recipe unless that is the default one."""
    result = run("list", "--config", "recipe.yaml", monkeypatch=monkeypatch)

    own, other, *shipped = result.stdout.splitlines()
    assert own.split()[0] == "debate"
    assert other.split(maxsplit=1) == ["slow:twice", "Asks twice."]
    assert shipped
    assert all(line.startswith("builtin/") for line in shipped)
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_list_as_json_says_who_runs_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name, description, recipe, decisions."""
    result = run("list", "--config", "recipe.yaml", "--output", "json", monkeypatch=monkeypatch)

    first, second = json.loads(result.stdout)[:2]
    assert (first["name"], first["recipe"], first["decisions"]) == ("debate", "default", ["hard"])
    assert (second["name"], second["recipe"], second["decisions"]) == ("slow:twice", "slow", [])


def test_faults_are_told_where_they_were_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the document or the included file, each with its line; exit 1, nothing else."""
    result = run("validate", "--config", "faulty.yaml", monkeypatch=monkeypatch)

    assert (result.exit_code, result.stdout) == (1, "")
    assert golden("graphs/faulty.problems", result.stderr) == result.stderr


def test_config_validate_tells_the_same_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """A document that the Router refuses is not valid."""
    monkeypatch.chdir(GRAPHS)

    result = CliRunner().invoke(main, ["config", "validate", "faulty.yaml"])

    assert result.exit_code == 1
    assert sorted(result.stderr.splitlines()) == sorted(
        (GRAPHS / "faulty.problems").read_text().splitlines()
    )


def test_config_validate_accepts_a_document_with_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the line that every valid document has."""
    monkeypatch.chdir(GRAPHS)

    result = CliRunner().invoke(main, ["config", "validate", "recipe.yaml"])

    assert result.exit_code == 0
    assert result.stdout.startswith(
        "recipe.yaml: valid (1 listener, 2 models, 1 decision, 1 recipe)"
    )


def test_validate_as_json_has_numbers_and_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    """For programs: the same exit code, all on standard output."""
    good = run(
        "validate", "debate", "--config", "recipe.yaml", "--output", "json", monkeypatch=monkeypatch
    )
    bad = run("validate", "--config", "faulty.yaml", "--output", "json", monkeypatch=monkeypatch)

    (case,) = json.loads(good.stdout)["graphs"]
    assert (case["name"], case["decision"]) == ("debate", "hard")
    assert case["worst_case"]["calls"] == 5
    assert case["worst_case"]["limits"]["calls"] == 12
    told = json.loads(bad.stdout)
    assert (bad.exit_code, told["valid"], told["graphs"]) == (1, False, [])
    assert {problem["file"] for problem in told["problems"]} == {"faulty.yaml", "faulty_part.yaml"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["validate"], 2, "name a graph or its file"),
        (["show", "nothing"], 1, "there is no graph 'nothing', known are builtin/"),
        (["show", "slow:debate", "--config", "recipe.yaml"], 1, "known are debate, slow:twice"),
        (["render", "missing.yaml"], 1, "missing.yaml:1: (document): can't be read"),
        (["validate", "faulty_part.yaml", "--config", "missing.yaml"], 1, "missing.yaml"),
    ],
)
def test_wrong_names_are_told(
    arguments: list[str], code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What there is instead; exit 1, and 2 for a command that is not complete."""
    result = run(*arguments, monkeypatch=monkeypatch)

    assert result.exit_code == code
    assert said in result.stderr


@pytest.mark.parametrize("name", ["debate.yaml", "builtin/ratings"])
def test_picture_is_well_formed_and_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """XML without anything from elsewhere; every box lies inside the page."""
    result = run("render", name, "--output", "svg", monkeypatch=monkeypatch)

    root = ElementTree.fromstring(result.stdout)  # noqa: S314  # our own
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    boxes = [
        each.attrib for each in root.iter("{http://www.w3.org/2000/svg}rect") if "x" in each.attrib
    ]
    assert boxes
    assert all(float(box["x"]) + float(box["width"]) <= width for box in boxes)
    assert all(float(box["y"]) + float(box["height"]) <= height for box in boxes)
    assert "href" not in result.stdout


def test_help_loads_nothing_heavy() -> None:
    """Neither the event loop nor the graphs."""
    code = (
        "import sys\nfrom vsr.cli import main\n"
        "try:\n    main(['graph', 'validate', '--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'trio', 'vsr.compose', 'vsr.graph.compile', 'importlib.metadata', 'msgspec'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )

    result = subprocess.run(  # noqa: S603  # our own
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert result.stderr.strip() == "[]"
