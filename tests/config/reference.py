"""Where the reference's documents are, for tests that compare with them."""

import os
from pathlib import Path

import pytest

_CHECKOUT = Path(__file__).parents[2]


def find_reference_dir() -> Path | None:
    """Return the folder of the reference if it is here, to list what there is to test."""
    given = os.environ.get("VSR_REFERENCE_DIR")
    folder = Path(given) if given else _CHECKOUT.parent / "shared" / "reference"
    return folder if folder.is_dir() else None


def reference_dir() -> Path:
    """Return the folder of the reference; without it skip, or fail in continuous integration."""
    folder = find_reference_dir()
    if folder is None:
        reason = "the reference is not here; set VSR_REFERENCE_DIR"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
