"""The names that a step sees while a graph runs, and references to them."""

from collections.abc import Mapping

import attrs
import msgspec

from vsr.graph.kinds import LENGTH


class Scope(msgspec.Struct, gc=False):
    """Names of one list of steps; those of the lists around it are visible, too."""

    names: dict[str, object]
    outer: "Scope | None" = None

    def look_up(self, name: str) -> object:
        """Return a name's value; it was checked when the graph was compiled that there is one.

        None is the value of a step that did not run or has none.
        """
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return None

    def assign(self, name: str, value: object) -> None:
        """Give a variable a new value where it was declared."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                scope.names[name] = value
                return
            scope = scope.outer
        self.names[name] = value

    def inner(self, names: dict[str, object] | None = None) -> "Scope":
        """Return the scope of a list of steps inside this one."""
        return Scope({} if names is None else names, self)

    def visible(self) -> dict[str, object]:
        """Return all names, the inner one where two are the same."""
        found = {} if self.outer is None else self.outer.visible()
        found.update(self.names)
        return found


@attrs.frozen
class Reference:
    """`$name.member.0`: a name and the way into its value."""

    name: str
    members: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "$" + ".".join((self.name, *self.members))

    def value(self, scope: Scope) -> object:
        """Return what it refers to; None where something on the way is missing."""
        found = scope.look_up(self.name)
        for member in self.members:
            if found is None:
                return None
            found = read_member(found, member)
        return found


def parse_reference(text: str) -> Reference | None:
    """Return the reference that `text` is; None if it is a literal."""
    if not text.startswith("$") or text.startswith("$$"):
        return None
    name, *members = text[1:].split(".")
    return Reference(name, tuple(members))


def literal(text: str) -> str:
    """Return what a text that is no reference means: `$$` begins one that starts with a `$`."""
    return text[1:] if text.startswith("$$") else text


def read_member(value: object, name: str) -> object:
    """Return `value.name`; None where there is no such member."""
    if isinstance(value, Mapping):
        return value.get(name)
    if isinstance(value, (tuple, list)):
        if name == LENGTH:
            return len(value)
        index = int(name) if name.isdigit() else -1
        return value[index] if 0 <= index < len(value) else None
    return None if name.startswith("_") else getattr(value, name, None)
