"""What a signal is: named rules of one type, asked about one request."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from vsr.codec.chat import ChatRequest


class SignalMatch(msgspec.Struct, frozen=True):
    """A rule that matched."""

    name: str
    confidence: float | None = 1.0
    """1.0 for a signal that scores nothing; 0 is a score like any other. None: a model would have
    to say whether it matches, and did not; see `LearnedSignal.judge`."""


class Signal(Protocol):
    """All rules of one type in a program, compiled; pure.

    An extension's config class is called with the program and returns this. It gets every rule of
    its type, used or not, so that rules can share passes over the text.
    """

    def __call__(self, chat: ChatRequest) -> Sequence[SignalMatch]:
        """Return the rules that match, in configuration order."""


@runtime_checkable
class LearnedSignal(Protocol):
    """Rules that take a model to judge; pure all the same: the model runtime is asked by others.

    What all learned signals of a program ask goes to the runtime in one bundle.
    """

    def asks(self, chat: ChatRequest) -> Mapping[str, bytes]:
        """Return what the runtime is to be asked, each under a key of its own; maybe nothing."""
        ...

    def judge(self, chat: ChatRequest, answers: Mapping[str, bytes]) -> Sequence[SignalMatch]:
        """Return the rules that match, in configuration order.

        Args:
            chat: the request.
            answers: by key; an ask that is missing is unknown. A rule that needs it is returned
                without a confidence, or left out where nobody could want to know.
        """
        ...
