"""Transformer `failure_text`."""

import pytest

from tests.graph.branch_ends import INPUTS, failure
from vsr.graph.transform.failure_text import FailureText
from vsr.graph.value import Failure


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (None, "all models failed"),
        ("", "all models failed"),
        ("too late", "all models failed: too late"),
        (failure("too late"), "all models failed: too late"),
        (failure(""), "all models failed"),
    ],
)
def test_cause_stands_behind_the_message(cause: Failure | str | None, text: str) -> None:
    """Where there is one."""
    assert FailureText("all models failed", cause)(INPUTS) == text
