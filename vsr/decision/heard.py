"""What signals have found in one request, so that each is evaluated once."""

from collections.abc import Mapping, MutableMapping, Sequence

from vsr.codec.chat import ChatRequest
from vsr.decision.signals.signal import LearnedSignal, Signal, SignalMatch

Heard = MutableMapping[str, Sequence[SignalMatch]]
"""By type, what signals that need no model have found in one request."""


def hear(
    signal_type: str, signal: Signal, chat: ChatRequest, heard: Heard
) -> Sequence[SignalMatch]:
    """Return what a signal finds in a request, or has found before."""
    found = heard.get(signal_type)
    if found is None:
        found = heard[signal_type] = signal(chat)
    return found


def judged(
    signal_type: str,
    signal: LearnedSignal | None,
    asked: tuple[ChatRequest, Mapping[str, bytes]],
    matches: MutableMapping[str, float | None],
) -> Sequence[SignalMatch]:
    """Return what a learned signal finds in a request; what it does not know goes to `matches`.

    Args:
        signal_type: its type.
        signal: None finds nothing.
        asked: the request, and what the model runtime has answered.
        matches: gets what is unknown, by label.
    """
    found: list[SignalMatch] = []
    for it in () if signal is None else signal.judge(*asked):
        if it.confidence is None:
            matches[f"{signal_type}:{it.name}"] = None
        else:
            found.append(it)
    return found
