"""Where the reference's facts lie, for conformance tests."""

import os
from pathlib import Path

import pytest

_BESIDE_CHECKOUT = Path(__file__).parents[2] / "shared" / "reference"


def reference_dir() -> Path:
    """Return the folder; without it the test is skipped, or fails when `CI=true`.

    `VSR_REFERENCE_DIR` names it, else it is `shared/reference` beside the checkout.
    """
    folder = Path(os.environ.get("VSR_REFERENCE_DIR") or _BESIDE_CHECKOUT)
    if folder.is_dir():
        return folder
    reason = f"the reference's facts are not at {folder}: set VSR_REFERENCE_DIR"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
