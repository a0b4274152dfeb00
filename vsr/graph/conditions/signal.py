"""Condition `signal`: what the decision engine knows of the client's request."""

from typing import ClassVar

import attrs

from vsr.graph.conditions.condition import Condition
from vsr.graph.signal_trees import SignalTree
from vsr.graph.value import Inputs
from vsr.registry import Extension


@attrs.frozen
class Signal:
    """Holds if a decision with these `rules` would match the client's request.

    All such questions of a graph are answered before it begins, and once. A run that goes on with
    answers of the client's tools has the answers that it began with.
    """

    takes_all: ClassVar[bool] = True
    value: SignalTree
    """A leaf with `type` and `name`, or `operator` and `conditions`, of signals of the recipe that
    the graph answers for."""

    def __call__(self, inputs: Inputs, /) -> bool:
        """Return the answer."""
        return self.value.holds(inputs)


SIGNAL = Extension[Condition](name="signal", config=Signal)
