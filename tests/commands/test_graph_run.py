"""`vllm-sr graph run`."""

import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.dryrun.small_graphs import ONE_CALL
from vsr.cli import main


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """Return a document whose one model nobody serves."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    (tmp_path / "one.yaml").write_text(ONE_CALL, encoding="utf-8")
    model = f"{{name: alpha, backend_refs: [{{endpoint: '127.0.0.1:{port}'}}]}}"
    document = tmp_path / "doc.yaml"
    document.write_text(
        f"version: v0.3\nproviders:\n  defaults: {{model: alpha}}\n  models: [{model}]\n"
        "routing: {graphs: {one: {file: one.yaml}}}\n",
        encoding="utf-8",
    )
    return document


def test_progress_goes_to_stderr_and_a_failed_answer_ends_with_1(document: Path) -> None:
    """The call is real: nobody listens, and the report says so."""
    result = CliRunner().invoke(main, ["graph", "run", "one", "Hello?", "--config", str(document)])

    assert result.exit_code == 1
    assert "#1 alpha  answer: asked" in result.stderr
    assert "#1 alpha  answer: failed" in result.stderr
    assert "A real run." in result.stdout
    assert "ASSUMED" not in result.stdout


def test_question_or_request_must_be_given(document: Path) -> None:
    """A real run does not make up what to ask."""
    result = CliRunner().invoke(main, ["graph", "run", "one", "--config", str(document)])

    assert result.exit_code == 2
