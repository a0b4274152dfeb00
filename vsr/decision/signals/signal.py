"""What a signal is: named rules of one type, asked about one request."""

from collections.abc import Sequence
from typing import Protocol

import attrs

from vsr.codec.chat import ChatRequest


@attrs.frozen
class SignalMatch:
    """A rule that matched."""

    name: str
    confidence: float = 1.0
    """1.0 for a signal that scores nothing; 0 is a score like any other."""


class Signal(Protocol):
    """All rules of one type in a program, compiled; pure.

    An extension's config class is called with the program and returns this. It gets every rule of
    its type, used or not, so that rules can share passes over the text.
    """

    def __call__(self, chat: ChatRequest) -> Sequence[SignalMatch]:
        """Return the rules that match, in configuration order."""
