"""Rule trees on signals in the conditions of one graph, numbered as they are found."""

from collections.abc import Callable

import attrs

from vsr.graph.env import Bound, Complain, Constant, Path
from vsr.graph.value import Inputs
from vsr.resources.program import RuleTree

ReadTree = Callable[[object, Path, Complain], RuleTree | None]
"""Reads a rule tree as it is authored; complains, and returns None, if it is faulty."""


@attrs.frozen
class SignalTree:
    """One rule tree of a graph's conditions; the client's request is asked once, beforehand."""

    number: int
    """Of its answer."""

    def holds(self, inputs: Inputs) -> bool:
        """Return whether it holds for the request that began the run."""
        return inputs.signals[self.number]


def no_signals(raw: object, path: Path, complain: Complain) -> RuleTree | None:
    """Complain that there are no signals here; see `ReadTree`."""
    del raw
    complain(path, "asks for signals, and there are none here", "", "remove it")
    return None


@attrs.define
class SignalTrees:
    """Collects the trees of one graph and of the graphs inside it while they are compiled."""

    _read: ReadTree = no_signals
    _numbers: dict[RuleTree, int] = attrs.field(factory=dict, init=False)

    @property
    def found(self) -> tuple[RuleTree, ...]:
        """Return the trees in the order of their numbers."""
        return tuple(self._numbers)

    def bind(self, raw: object, path: Path, complain: Complain) -> Bound:
        """Return the tree that was written, with its number; the same tree has the same one."""
        tree = self._read(raw, path, complain)
        if tree is None:
            return Constant(SignalTree(0), SignalTree)
        return Constant(SignalTree(self._numbers.setdefault(tree, len(self._numbers))), SignalTree)
