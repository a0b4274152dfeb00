"""Selection algorithm `static`."""

import pytest

from vsr.decision.selection.builtin import BUILTIN_SELECTIONS
from vsr.decision.selection.selection import Selected
from vsr.decision.selection.static import Static
from vsr.resources.program import ModelRef


@pytest.mark.parametrize(
    ("candidates", "expected"),
    [
        ((), None),
        ((ModelRef(""), ModelRef("  ")), None),
        ((ModelRef("a"),), Selected(0, "static")),
        ((ModelRef("a", 0.1), ModelRef("b", 0.9)), Selected(0, "static")),
        ((ModelRef(" "), ModelRef("b")), Selected(1, "static")),
    ],
)
def test_static_takes_the_first_named_candidate(
    candidates: tuple[ModelRef, ...], expected: Selected | None
) -> None:
    """Weights are ignored; without a candidate the caller's default model answers."""
    assert Static()(candidates) == expected


def test_static_is_built_in() -> None:
    """The algorithm that decisions default to exists."""
    assert [extension.name for extension in BUILTIN_SELECTIONS] == ["static"]
