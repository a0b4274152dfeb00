"""The page about dry runs does what it says."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.docs.markdown import ROOT, blocks, rows
from vsr.cli import main
from vsr.config.document.kinds import key_of
from vsr.dryrun.written import (
    WrittenExpectations,
    WrittenModel,
    WrittenScenario,
)

PAGE = ROOT / "docs" / "dry-run.md"
CONSOLE = [block for block in blocks("console") if block.place.startswith("docs/dry-run.md")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the page's files, and work in it."""
    [graph], [scenario] = blocks("yaml graph"), blocks("yaml scenario")
    (tmp_path / "hedge.yaml").write_text(graph.text, encoding="utf-8")
    (tmp_path / "hedge.slow.scenario.yaml").write_text(scenario.text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _invoke(line: str) -> Result:
    return CliRunner().invoke(main, line.replace("1000", "5").split()[1:])


@pytest.mark.usefixtures("folder")
def test_commands_print_what_the_page_shows() -> None:
    """A reader who types them sees the same; a thousand runs are five here."""
    assert CONSOLE
    for block in CONSOLE:
        command, _, shown = block.text.removeprefix("$ ").partition("\n")

        result = _invoke(command)

        assert result.exit_code == 0
        assert shown in result.stdout


@pytest.mark.usefixtures("folder")
def test_graph_of_the_page_runs_without_a_scenario() -> None:
    """What nobody has said is assumed."""
    assert _invoke("vllm-sr graph dry-run hedge.yaml").exit_code == 0


@pytest.mark.parametrize("cls", [WrittenScenario, WrittenModel, WrittenExpectations])
def test_every_key_is_described(cls: type) -> None:
    """In the first column of a table."""
    described = {
        word for _, line in rows(PAGE) for word in line.split("|")[1].replace("`", "").split(", ")
    }

    keys = {key_of(name) for name in cls.__annotations__}

    assert keys <= {word.strip() for word in described}
