"""The command that holds the Router to a corpus."""

from pathlib import Path

from click.testing import CliRunner, Result

from tests.conformance.__main__ import conformance

CONFIG = """
version: v0.3
providers:
  defaults: {model: alpha}
  models: [{name: alpha, backend_refs: [{endpoint: "127.0.0.1:9"}]}]
"""
CASES = """
cases:
  - name: list
    request: {method: GET, path: /v1/models}
  - name: unknown
    request: {method: POST, path: /v1/chat/completions, body: '{"model":"b","messages":[]}'}
"""


def corpus(folder: Path, config: str = CONFIG) -> Path:
    """Write a corpus without expectations and return its folder."""
    (folder / "config.yaml").write_text(config, encoding="utf-8")
    (folder / "cases.yaml").write_text(CASES, encoding="utf-8")
    return folder


def run(*arguments: str | Path) -> Result:
    """Run the command."""
    return CliRunner().invoke(conformance, [str(argument) for argument in arguments])


def test_recorded_corpus_is_equal(tmp_path: Path) -> None:
    """Both ways, and as text."""
    corpus(tmp_path)

    recorded = run("record", tmp_path)
    compared = run("parity", tmp_path, "--exact")

    assert recorded.exit_code == 0, recorded.output
    assert compared.exit_code == 0, compared.output
    assert compared.output.splitlines() == [
        "case     in process  phase driver  first difference",
        "list     equal       equal",
        "unknown  equal       equal",
        "2 of 2 cases are equal",
    ]


def test_difference_is_shown_and_fails_the_run(tmp_path: Path) -> None:
    """The first in the table, every one on demand."""
    run("record", corpus(tmp_path))
    pinned = tmp_path / "expected.yaml"
    text = pinned.read_text(encoding="utf-8").replace("model_not_found", "model_lost")
    pinned.write_text(text, encoding="utf-8")

    short = run("parity", tmp_path)
    long = run("parity", tmp_path, "--case", "unknown", "--all")

    first = 'phases.request_body.immediate.body $.error.code: wanted "model_lost", got "model_not'
    assert short.exit_code == long.exit_code == 1
    assert f"unknown  2 differ    2 differ      {first}" in short.output
    assert short.output.endswith("1 of 2 cases are equal\n")
    assert '  both ways: response.body $.error.code: wanted "model_lost", got' in long.output
    assert "list" not in long.output


def test_refused_document_fails_every_case(tmp_path: Path) -> None:
    """With the first of its problems."""
    run("record", corpus(tmp_path))

    result = run("parity", corpus(tmp_path, CONFIG + "nonsense: 1\n"))

    assert result.exit_code == 1
    assert result.output.count("config.yaml refused: wanted (served), got") == 2
    assert "nonsense" in result.output


def test_corpus_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """Not a run without cases; nor is a case that is not there."""
    missing = run("parity", tmp_path)
    run("record", corpus(tmp_path))
    unknown = run("parity", tmp_path, "--case", "nobody")
    (tmp_path / "expected.yaml").write_text("list: {}\n", encoding="utf-8")
    unpaired = run("parity", tmp_path)

    assert (missing.exit_code, unknown.exit_code, unpaired.exit_code) == (1, 1, 1)
    assert "cases.yaml" in missing.output
    assert "there is no case nobody" in unknown.output
    assert "only in one of the two files: unknown" in unpaired.output


def test_expectations_of_other_origin_are_not_overwritten(tmp_path: Path) -> None:
    """A record of the reference is a fact."""
    pinned = corpus(tmp_path) / "expected.yaml"
    pinned.write_text("# Pinned elsewhere\n", encoding="utf-8")

    result = run("record", tmp_path)

    assert result.exit_code == 1
    assert pinned.read_text(encoding="utf-8") == "# Pinned elsewhere\n"


STATIC = """
id: {name}
config:
  models: {{only: {{}}}}
  decision: {{name: d, modelRefs: [{{model: only}}]}}
turns:
  - request: {{body: {{model: auto, messages: []}}}}
    backend: {{only: [{{content: x}}]}}
    expect:
      calls: [{{model: only}}]
      evidence: {{iterations: 1}}
      response: {{status: {status}}}
"""


def test_looper_fixtures_get_a_line_each_and_a_last_one(tmp_path: Path) -> None:
    """What differs stands below, and so does what was not checked; a broken case hides no other."""
    (tmp_path / "b.yaml").write_text(STATIC.format(name="b", status=201), encoding="utf-8")
    (tmp_path / "c.yaml").write_text("[", encoding="utf-8")
    (tmp_path / "d.yaml").write_text(STATIC.format(name="d", status=200), encoding="utf-8")

    failing = run("looper", tmp_path)
    passing = run("looper", tmp_path, "--case", "d")

    lines = failing.output.splitlines()
    assert (failing.exit_code, passing.exit_code) == (1, 0)
    assert [line for line in lines if not line.startswith(" ")] == [
        "b: failed",
        "c: failed",
        "d: passed",
        "1 passed, 2 failed",
    ]
    assert lines[1].startswith("  response.status: expected 201, got 200 ")
    assert passing.output.splitlines() == [
        "d: passed",
        "  note: evidence is not checked: nothing shows that of a failed run",
        "1 passed, 0 failed",
    ]


def test_looper_folder_without_the_case_is_an_error(tmp_path: Path) -> None:
    """Not a run in which nothing failed."""
    empty = run("looper", tmp_path)
    (tmp_path / "d.yaml").write_text(STATIC.format(name="d", status=200), encoding="utf-8")
    unknown = run("looper", tmp_path, "--case", "nobody")

    assert (empty.exit_code, unknown.exit_code) == (1, 1)
    assert "there is no case nobody" in unknown.output
