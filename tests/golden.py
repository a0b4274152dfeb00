"""Golden files under `fixtures/`: read, and rewritten where that is asked for."""

import os
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures"


def golden(name: str, text: str) -> str:
    """Return what the file says; with VSR_REWRITE_GOLDEN=1 that is `text` from now on."""
    file = FIXTURES / name
    if os.environ.get("VSR_REWRITE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    return file.read_text(encoding="utf-8")
