"""The graphs on our pages compile, and the commands shown print what is shown."""

import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from tests.docs.markdown import ROOT, Block, blocks
from tests.docs.test_examples import BASE
from vsr.cli import main
from vsr.config.source import load_document, recipes_of
from vsr.engine.recipe_graphs import check_graphs
from vsr.engine.shipped import BUILTIN

WITH_GRAPHS = [block for block in blocks("yaml") if "\n  graphs:\n" in block.text]
PAGE = "graphs.md"


def document_of(block: Block, folder: Path) -> Path:
    """Return a file with the document that a block is part of."""
    whole = {**yaml.safe_load(BASE)}
    for key, value in yaml.safe_load(block.text).items():
        whole[key] = {**whole.get(key, {}), **value} if isinstance(value, dict) else value
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(whole, sort_keys=False))
    return file


@pytest.mark.parametrize("block", WITH_GRAPHS, ids=lambda block: block.place)
def test_graph_compiles(block: Block, tmp_path: Path) -> None:
    """With all of its steps, references and types."""
    recipes = recipes_of(load_document(document_of(block, tmp_path), {}), {})

    assert check_graphs(recipes.programs, recipes.clusters, BUILTIN) == ()


def test_worst_case_is_the_one_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the graph at the top of the page."""
    (shown,) = (each for each in blocks("console") if PAGE in each.place)
    graph = next(each for each in WITH_GRAPHS if PAGE in each.place)
    document_of(graph, tmp_path)
    monkeypatch.chdir(tmp_path)
    command, _, output = shown.text.partition("\n")

    result = CliRunner().invoke(main, shlex.split(command)[2:])

    assert result.stderr == ""
    assert result.stdout == output


def test_example_of_a_node_is_the_example_package() -> None:
    """Whose own tests run it."""
    file = ROOT / "tests" / "plugins" / "example_node" / "example_node.py"

    assert file.read_text(encoding="utf-8") in {block.text for block in blocks("python module")}
