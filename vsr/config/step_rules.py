"""What a condition of a graph says of signals: a rule tree, in the form that decisions have."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import cast

import msgspec

from vsr.config.compile.programs import rule_tree
from vsr.config.document.rules import RuleNode
from vsr.config.not_served import NOT_SERVED_KEYS
from vsr.config.position import LineIndex, Path, Value
from vsr.config.report import Report
from vsr.config.structure import read_class
from vsr.config.validate.declared import Declared
from vsr.config.validate.rules import check_rules
from vsr.resources.program import RuleTree

Complain = Callable[[Path, str, str, str], None]
_KEY = re.compile(r"\[(\d+)\]|\[\"(.*?)\"\]|([^.\[\]]+)")
_NOWHERE = "signals are declared by the recipe whose decision runs the graph"


class RecipeSignals(msgspec.Struct, frozen=True):
    """The signals of the recipe that a graph stands in."""

    declared: Mapping[str, Collection[str]] | None
    """Names by type; of a type that is missing, any. None: there is no document."""
    served: Collection[str]
    """Types that this version evaluates."""

    def read(self, raw: object, path: Path, complain: Complain) -> RuleTree | None:
        """Return the rule tree that was written; None if it is faulty.

        Args:
            raw: as authored.
            path: of it in its document.
            complain: gets every fault: where, what, why, how to mend it.
        """
        if not isinstance(raw, Mapping) or not raw:
            what = "names no signal"
            complain(path, what, "", "write a type and a name, or an operator and conditions")
            return None
        report = Report("", LineIndex(_plain(raw)))
        node = read_class(RuleNode, _plain(raw), (), report)
        if not report.has_problems():
            for place, what in self._unserved(node, ()):
                report.add(place, what, "", "use another or remove it")
        if not report.has_problems():
            check_rules(node, _declared(self.declared or {}), (), report)
        named = ", ".join(_named(node))
        if not report.has_problems() and self.declared is None and named:
            what = f"asks for {named}, and there is no document"
            complain(path, what, _NOWHERE, "give the document with --config")
            return None
        for problem in report.problems():
            place = (*path, *_path_of(problem.path))
            complain(place, problem.what, problem.why, problem.mend)
        return None if report.has_problems() else rule_tree(node)

    def _unserved(self, node: RuleNode, path: Path) -> Iterator[tuple[Path, str]]:
        """Yield what of a tree this version would have to ignore."""
        if node.type is not None and node.type not in self.served:
            yield (*path, "type"), f"{node.type!r} is not served by this version"
        elif node.predicate is not None and "predicate" in NOT_SERVED_KEYS["RuleNode"]:
            yield (*path, "predicate"), "is not served by this version"
        for at, condition in enumerate(node.conditions or ()):
            yield from self._unserved(condition, (*path, "conditions", at))


def _declared(names: Mapping[str, Collection[str]]) -> Declared:
    """Return what a recipe declares, as far as types that are served need it."""
    nothing = frozenset[str]()
    return Declared(("routing",), names, nothing, {}, nothing, {}, {})


def _named(node: RuleNode) -> Iterator[str]:
    if node.type is not None:
        yield f"{node.type}:{node.name}"
    for condition in node.conditions or ():
        yield from _named(condition)


def _path_of(dotted: str) -> Path:
    """Return the path that a problem shows."""
    found = (match.groups() for match in _KEY.finditer(dotted))
    return tuple(int(index) if index else key or plain for index, key, plain in found)


def _plain(raw: object) -> Value:
    """Return a value of a graph as a document has it: tuples are lists again."""
    if isinstance(raw, Mapping):
        return {str(key): _plain(each) for key, each in raw.items()}
    if isinstance(raw, (list, tuple)):
        return [_plain(each) for each in raw]
    return cast("Value", raw)
