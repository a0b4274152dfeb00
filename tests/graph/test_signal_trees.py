"""Rule trees of one graph, numbered."""

from vsr.graph.env import Constant, Path
from vsr.graph.signal_trees import SignalTree, SignalTrees, no_signals
from vsr.resources.program import Leaf, RuleTree


def read(raw: object, path: Path, complain: object) -> RuleTree:
    """Return a tree of one leaf."""
    del path, complain
    return RuleTree(Leaf("keyword", str(raw)))


def complain(*told: object) -> None:
    """Fail: nothing is wrong."""
    raise AssertionError(told)


def test_same_tree_has_the_same_number() -> None:
    """A request is asked once, however often a graph asks."""
    trees = SignalTrees(read)

    numbers = [trees.bind(name, (), complain) for name in ("a", "b", "a")]

    assert numbers == [Constant(SignalTree(at), SignalTree) for at in (0, 1, 0)]
    assert trees.found == (RuleTree(Leaf("keyword", "a")), RuleTree(Leaf("keyword", "b")))


def test_faulty_tree_is_not_among_them() -> None:
    """Where there are no signals at all, each is complained of."""
    told: list[object] = []
    trees = SignalTrees(no_signals)

    trees.bind({}, ("when",), lambda *text: told.append(text))

    assert told == [(("when",), "asks for signals, and there are none here", "", "remove it")]
    assert trees.found == ()
