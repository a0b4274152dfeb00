"""Signal `context`."""

import json

import pytest

from vsr.codec.chat import read_chat
from vsr.decision.signals.context import ContextSignals
from vsr.resources.program import ContextSignal, Program

BANDS = (
    ContextSignal("none", 0, 0),
    ContextSignal("low", 0, 1000),
    ContextSignal("exact", 1000, 1000),
    ContextSignal("medium", 1000, 32_000),
    ContextSignal("open", 32_000),
)


@pytest.mark.parametrize(
    ("tokens", "names"),
    [
        (0, ["none", "low"]),
        (999, ["low"]),
        (1000, ["low", "exact", "medium"]),
        (1001, ["medium"]),
        (32_000, ["medium", "open"]),
        (10**40, ["open"]),
    ],
)
def test_bands_are_inclusive_and_may_overlap(tokens: int, names: list[str]) -> None:
    """Both limits belong to a band; without an upper one it has no end, even for saturation."""
    body = {"model": "auto", "messages": [], "max_tokens": tokens}
    signals = ContextSignals(Program("p", contexts=BANDS))

    found = signals(read_chat(json.dumps(body).encode()))

    assert [match.name for match in found] == names
    assert all(match.confidence == 1.0 for match in found)
