"""Signals that match what a test says."""

from collections.abc import Mapping, Sequence

from vsr.codec.chat import ChatRequest
from vsr.decision.signals.signal import Signal, SignalMatch
from vsr.registry import Extension, Registry
from vsr.resources.program import Program


def fake_signals(matches: Mapping[str, float]) -> Registry[Signal]:
    """Return signal types that match the rules `type:name` with these confidences."""
    by_type: dict[str, list[SignalMatch]] = {}
    for label, confidence in matches.items():
        signal_type, name = label.split(":", maxsplit=1)
        by_type.setdefault(signal_type, []).append(SignalMatch(name, confidence))
    return Registry(
        "signal",
        [Extension(name=name, config=_fake(found)) for name, found in by_type.items()],
    )


def _fake(found: Sequence[SignalMatch]) -> type[Signal]:
    class FakeSignal:
        def __init__(self, program: Program) -> None:
            self._program = program

        def __call__(self, chat: ChatRequest) -> Sequence[SignalMatch]:
            del chat
            return found

    return FakeSignal
