"""Short texts with values in them: error texts and messages."""

import re
from collections.abc import Collection, Iterator, Mapping

import attrs

from vsr.graph.scope import Reference, Scope

_PLACE = re.compile(r"\{\{\s*([A-Za-z_][\w.]*)\s*\}\}")


@attrs.frozen
class TextTemplate:
    """A text in which `{{ name.member }}` stands for a value; nothing else is special."""

    source: str

    def unknown(self, names: Collection[str]) -> Iterator[str]:
        """Yield the names that it uses and that are not among `names`."""
        for found in _PLACE.finditer(self.source):
            name = found[1].split(".")[0]
            if name not in names:
                yield name

    def render(self, scope: Scope, more: Mapping[str, object] | None = None) -> str:
        """Return the text with the values of visible names, and of some more, put in."""
        seen = scope.inner(dict(more or {}))

        def value(found: re.Match[str]) -> str:
            name, *members = found[1].split(".")
            value = Reference(name, tuple(members)).value(seen)
            return "" if value is None else str(value)

        return _PLACE.sub(value, self.source)
