"""Refused documents: every problem, word for word."""

import os
from pathlib import Path

import pytest

from vsr.config.report import Report
from vsr.config.source import check_bytes
from vsr.errors import ConfigRejected

FOLDER = Path(__file__).parents[2] / "fixtures" / "config" / "rejected"
REWRITE = "VSR_REWRITE_GOLDEN=1 .venv/bin/pytest tests/config/test_rejected.py"
HEADER = f"# Rewritten by: {REWRITE}\n"
ENVIRON = {
    "BACKEND_KEY": "canary-backend",
    "CANARY": "canary-value",
    "DIGITS": "8080",
    "EMPTY": "",
    "WITH_NEWLINE": "canary-key\n",
}
DOCUMENTS = sorted(FOLDER.glob("*.yaml"))


def problems_of(document: Path) -> str:
    """Return what an author would read about the document."""
    with pytest.raises(ConfigRejected) as caught:
        check_bytes(document.read_bytes(), ENVIRON, Report(document.name))
    return "".join(f"{problem}\n" for problem in caught.value.problems)


def test_there_are_golden_documents() -> None:
    """The parametrised tests below run on something."""
    assert len(DOCUMENTS) >= 25


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_rejected_document_gives_its_golden_problems(document: Path) -> None:
    """Each problem says where, what, why and how to mend, and none is missing or too many."""
    golden = document.with_suffix(".problems")

    problems = problems_of(document)

    if os.environ.get("VSR_REWRITE_GOLDEN"):
        golden.write_text(HEADER + problems)
    assert HEADER + problems == golden.read_text()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_problems_never_show_a_secret(document: Path) -> None:
    """Credentials, client keys and values from the environment stay out of every message."""
    problems = problems_of(document)

    assert "canary" not in problems
