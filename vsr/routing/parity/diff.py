"""Says in which places two results differ, one line per place."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import msgspec

from vsr.routing.parity.body_diff import (
    ABSENT,
    BodyRule,
    Difference,
    Member,
    Value,
    compare_bodies,
    compare_values,
    is_same,
    shown,
)
from vsr.routing.parity.result import CaseResult

_BODIES = frozenset({"body", "chunks"})
_LINES = frozenset({"set", "headers"})


def differences(
    wanted: CaseResult, got: CaseResult, rule: BodyRule = BodyRule.AS_JSON
) -> list[Difference]:
    """Return where two normalised results differ; `variants` do not count."""
    plain = [msgspec.structs.replace(result, variants=[]) for result in (wanted, got)]
    first, second = (msgspec.to_builtins(result) for result in plain)
    return list(_Comparison(rule).compare("", "", first, second))


class _Comparison(msgspec.Struct, frozen=True):
    rule: BodyRule

    def compare(self, path: str, name: str, wanted: Member, got: Member) -> Iterator[Difference]:
        """Yield the differences at and below `path`, whose last named member is `name`."""
        match wanted, got:
            case dict(), dict():
                for key in wanted | got:
                    below = f"{path}.{key}" if path else key
                    pair = wanted.get(key, ABSENT), got.get(key, ABSENT)
                    # Names of signals are free, so none of them means what it means elsewhere.
                    if below == "evidence":
                        yield from compare_values(below, *pair)
                    else:
                        yield from self.compare(below, key, *pair)
            case list(), list():
                yield from self._compare_lists(path, name, wanted, got)
            case str(), str() if name in _BODIES:
                yield from compare_bodies(path, wanted, got, self.rule)
            case _ if not is_same(wanted, got):
                yield Difference(path, shown(wanted), shown(got))

    def _compare_lists(
        self, path: str, name: str, wanted: list[Value], got: list[Value]
    ) -> Iterator[Difference]:
        if name in _LINES:
            yield from _compare_lines(path, wanted, got)
        elif name == "remove":
            yield from _compare_names(path, wanted, got)
        else:
            for index, pair in enumerate(zip_longest(wanted, got, fillvalue=ABSENT)):
                yield from self.compare(f"{path}[{index}]", name, *pair)


def _compare_lines(
    path: str, wanted: Sequence[Value], got: Sequence[Value]
) -> Iterator[Difference]:
    """Yield one difference per name, then one if the lines that both have stand otherwise."""
    first, second = _by_name(wanted), _by_name(got)
    for name in first | second:
        if first.get(name) != second.get(name):
            yield Difference(f"{path}[{name}]", *(_values(each, name) for each in (first, second)))
    as_often = {name for name in first if len(first[name]) == len(second.get(name, ()))}
    orders = [[name for name in _names(lines) if name in as_often] for lines in (wanted, got)]
    if orders[0] != orders[1]:
        yield Difference(f"{path} (order)", *(", ".join(order) for order in orders))


def _compare_names(
    path: str, wanted: Sequence[Value], got: Sequence[Value]
) -> Iterator[Difference]:
    for name in [*wanted, *(each for each in got if each not in wanted)]:
        if name not in wanted or name not in got:
            texts = ["listed" if name in names else ABSENT.value for names in (wanted, got)]
            yield Difference(f"{path}[{name}]", *texts)


def _names(lines: Sequence[Value]) -> list[str]:
    return [str(line[0]) for line in lines if isinstance(line, list)]


def _by_name(lines: Sequence[Value]) -> dict[str, list[list[Value]]]:
    """Return what follows each name, lines of one name in order; names as they first come."""
    found: dict[str, list[list[Value]]] = {}
    for line in lines:
        if isinstance(line, list):
            found.setdefault(str(line[0]), []).append(line[1:])
    return found


def _values(found: dict[str, list[list[Value]]], name: str) -> str:
    if name not in found:
        return shown(ABSENT)
    texts = [shown(rest[0]) + (" (appended)" if rest[1:] == [True] else "") for rest in found[name]]
    return " and ".join(texts)
