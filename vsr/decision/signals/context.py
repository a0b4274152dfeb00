"""Signal `context`: inclusive bands of the request's token count."""

from collections.abc import Sequence

from vsr.codec.chat import ChatRequest
from vsr.codec.chat_tokens import MAX_TOKENS
from vsr.decision.signals.signal import Signal, SignalMatch
from vsr.registry import Extension
from vsr.resources.program import Program


class ContextSignals:
    """Matches every band that the count lies in; bands may overlap."""

    def __init__(self, program: Program) -> None:
        self._bands = [
            (
                rule.min_tokens,
                MAX_TOKENS if rule.max_tokens is None else rule.max_tokens,
                SignalMatch(rule.name),
            )
            for rule in program.contexts
        ]

        self._lowest = min((low for low, _, _ in self._bands), default=0)

    def __call__(self, chat: ChatRequest) -> Sequence[SignalMatch]:
        """Return the bands that hold the request's token count."""
        if chat.is_surely_shorter_than(self._lowest):
            return ()  # most requests are too short for any band, and need no exact count
        count = chat.token_count
        return [match for low, high, match in self._bands if low <= count <= high]


CONTEXT = Extension[Signal](name="context", config=ContextSignals)
