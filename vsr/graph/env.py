"""What is known of names before a graph runs: their types, some values, where they may change."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import attrs

from vsr.graph.kinds import Kind, described, member_of
from vsr.graph.scope import Reference, Scope, read_member

Path = tuple[str | int, ...]
"""Keys and indices from the root of the document."""

Complain = Callable[[Path, str, str, str], None]
"""Notes one problem: where, what, why, how to mend it."""

RESERVED = frozenset({"params", "request", "it", "cause"})
"""Names that no step and no variable may have."""
_UNKNOWN = object()


@attrs.frozen
class Known:
    """What is known beforehand of a value that only a run brings."""

    is_given: bool = False
    """Whether parameters and literals alone make it, and nothing that a step has found."""
    options: tuple[object, ...] | None = None
    """All values that it may have; None: nobody can tell."""
    most: int | None = None
    """Of a list its most items, of a whole number the greatest; None: nobody can tell."""

    def member(self, name: str) -> "Known":
        """Return what is known of a member."""
        options = self.options
        if options is None:
            return Known(self.is_given)
        return known_options(tuple(read_member(each, name) for each in options), self)

    def item(self) -> "Known":
        """Return what is known of each item of a list."""
        lists = self.options
        if lists is None or not all(isinstance(each, (tuple, list)) for each in lists):
            return Known(self.is_given)
        items = (item for each in lists for item in each)  # type: ignore[attr-defined]  # see above
        return known_options(tuple(items), self)


NOT_KNOWN = Known()


def known_options(options: tuple[object, ...], of: Known = Known(is_given=True)) -> Known:
    """Return what is known of a value that is one of `options`."""
    sizes = [_size_of(each) for each in options]
    counted = [each for each in sizes if each is not None]
    most = max(counted) if counted and len(counted) == len(sizes) else None
    return Known(of.is_given, options, most)


def _size_of(value: object) -> int | None:
    if isinstance(value, (tuple, list)):
        return len(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


@attrs.frozen
class Static:
    """What is known of a value before it is there."""

    kind: Kind
    value: object = _UNKNOWN
    zone: int = 0
    """How many parallel steps lie around the place that declares it."""
    is_variable: bool = False
    """Whether `set` may change it."""
    known: Known = NOT_KNOWN
    """Of what is no constant."""

    @property
    def is_constant(self) -> bool:
        """Return whether it is the same in every run."""
        return self.value is not _UNKNOWN


@attrs.frozen
class Env:
    """The names that a list of steps sees."""

    names: Mapping[str, Static]
    params: Mapping[str, Static] = attrs.field(factory=dict)
    zone: int = 0
    """How many parallel steps lie around."""
    in_loop: bool = False
    """Whether a `break` ends a loop from here, without leaving a parallel step."""
    may_respond: bool = True
    may_suspend: bool = True
    """Whether a call may wait for the client's tools here."""
    may_hand_out: bool = True
    """Whether the graph may end with a call that the adapter makes."""

    def with_names(self, names: Mapping[str, Static]) -> "Env":
        """Return what is seen with some names more."""
        return attrs.evolve(self, names={**self.names, **names})


@attrs.frozen
class Constant:
    """A field whose value is the same in every run."""

    value: object
    kind: Kind = object


@attrs.frozen
class Deferred:
    """A field whose value is found when its step begins."""

    evaluate: Callable[[Scope], object]
    kind: Kind = object
    """Type of what is found."""
    is_checked: bool = False
    """Whether only the value itself can tell that its type is the wanted one."""
    known: Known = NOT_KNOWN
    parts: Mapping[str, "Bound"] = attrs.field(factory=dict, eq=False)
    """Of a list or mapping that is written with references in it: its members, by key or index."""


Bound = Constant | Deferred


def name_faults(names: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with the names that a step declares."""
    for name in names:
        if name in RESERVED:
            yield f"{name!r} is taken"
        elif not name.isidentifier():
            yield f"{name!r} is no name: use letters, digits and _"


def known_of(bound: Bound | None) -> Known:
    """Return what is known of a field's value; None is a field that is left out."""
    if bound is None:
        return known_options((None,))
    return known_options((bound.value,)) if isinstance(bound, Constant) else bound.known


def resolve(reference: Reference, env: Env) -> Static | str:
    """Return what is known of the value that `reference` means, or what is wrong with it."""
    known, members = env.names.get(reference.name), reference.members
    if reference.name == "params" and members:
        known, members = env.params.get(members[0]), members[1:]
    if known is None:
        return f"{reference} refers to nothing that an earlier step or a parameter provides"
    kind, value, before = known.kind, known.value, known.known
    for member in members:
        if known.is_constant and value is None:
            return Static(type(None), None)  # of a parameter that nobody has given
        found = member_of(kind, member)
        if found is None:
            return f"{reference}: {described(kind)} has no member {member!r}"
        kind, before = found, before.member(member)
        if known.is_constant:
            value = read_member(value, member)
    if known.is_constant:
        return Static(kind, value)
    return Static(kind, zone=known.zone, is_variable=known.is_variable, known=before)
