"""Where the reference's documents are, for tests that compare with them."""

import os
from pathlib import Path

import pytest

_CHECKOUT = Path(__file__).parents[2]


def reference_dir() -> Path:
    """Return the folder of the reference; without it skip, or fail in continuous integration."""
    given = os.environ.get("VSR_REFERENCE_DIR")
    folder = Path(given) if given else _CHECKOUT.parent / "shared" / "reference"
    if not folder.is_dir():
        reason = "the reference is not here; set VSR_REFERENCE_DIR"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
