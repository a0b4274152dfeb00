"""What a condition provides."""

from typing import Protocol

from vsr.graph.value import Inputs


class Condition(Protocol):
    """Pure: its fields are its configuration, with every reference replaced by its value.

    What it is mainly about is its field `value`, so that `{empty: $answer}` can stand for
    `{empty: {value: $answer}}`. It is asked before anyone knows how the steps ended: a value that
    is missing, or a failure in its place, is an answer (mostly no) and not an error.

    A class whose `value` is all that is written, a mapping too, says so by the class variable
    `takes_all = True`.
    """

    def __call__(self, inputs: Inputs, /) -> bool:
        """Return whether it holds."""
        ...
