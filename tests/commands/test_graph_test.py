"""`vllm-sr graph test`."""

from pathlib import Path

from click.testing import CliRunner, Result

from tests.dryrun.small_graphs import FIXTURES, ONE_CALL
from vsr.cli import main


def invoke(folder: Path) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["graph", "test", str(folder)])


def write(folder: Path, **files: str) -> None:
    """Write files; `__` in a name is a dot."""
    for name, text in files.items():
        (folder / f"{name.replace('__', '.')}.yaml").write_text(text, encoding="utf-8")


def test_scenarios_that_hold_pass() -> None:
    """The shipped fixture does."""
    result = invoke(FIXTURES)

    assert result.exit_code == 0
    assert result.stdout == "ok      panel.scenario.yaml (13 expected)\n1 passed, 0 failed\n"


def test_each_failure_is_told_with_its_diff(tmp_path: Path) -> None:
    """One that fails does not hide the others; the name before the first dot is the graph's."""
    write(
        tmp_path,
        one=ONE_CALL,
        one__a__scenario="{models: {alpha: {fault: 500}}, expect: {status: 200}}",
        one__b__scenario="{expect: {status: 200}}",
        one__c__scenario="{models: {alpha: {}}}",
        other__scenario="{graph: one.yaml, expect: {calls: 1}}",
        none__scenario="{expect: {calls: 1}}",
    )

    result = invoke(tmp_path)

    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "FAILED  none.scenario.yaml"
    assert "can't be read" in lines[1]
    assert lines[2:5] == ["FAILED  one.a.scenario.yaml", "  status", "    - 200"]
    assert lines[5].startswith("    + 502: request failed with status 500")
    assert "ok      one.b.scenario.yaml (1 expected)" in lines
    assert "FAILED  one.c.scenario.yaml" in lines
    assert "ok      other.scenario.yaml (1 expected)" in lines
    assert lines[-1] == "2 passed, 3 failed"


def test_folder_without_scenarios_is_a_failure(tmp_path: Path) -> None:
    """A wrong path must not look like success."""
    result = invoke(tmp_path)

    assert result.exit_code == 1
    assert "there is no *.scenario.yaml" in result.stderr
