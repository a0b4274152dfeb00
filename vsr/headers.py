"""Header lines of one message, in order, with case-insensitive names."""

from collections.abc import Collection, Iterator
from itertools import chain, compress
from operator import itemgetter

import msgspec

HeaderLine = tuple[bytes, bytes]
"""Name (lower case) and value of one line."""


_KNOWN_NAMES = 1024
_name_of = itemgetter(0)


class LineFilter(dict[bytes, bool]):
    """Tells by their names which lines stay; what it found for a name it knows, up to a bound."""

    def __init__(self, dropped: Collection[bytes], prefix: bytes = b"\n") -> None:
        """Drop the lines whose name is in `dropped` or starts with `prefix`; by default none do."""
        super().__init__()
        self._dropped = dropped
        self._prefix = prefix

    def __missing__(self, name: bytes) -> bool:
        stays = name not in self._dropped and not name.startswith(self._prefix)
        if len(self) >= _KNOWN_NAMES:
            self.clear()
        self[name] = stays
        return stays

    def kept(self, lines: list[HeaderLine]) -> list[HeaderLine]:
        """Return the lines that stay, in order; no byte code runs per line."""
        return list(compress(lines, map(self.__getitem__, map(_name_of, lines))))


class Headers(msgspec.Struct, eq=False, gc=False):
    """An ordered multimap of header lines; names are lower-case bytes.

    Whoever builds one lower-cases the names; every method takes them lower-cased, so that no
    look-up pays for it. A list handed in becomes the object's own. Pseudo-headers (`:method`,
    `:path`, ...) stand in front of the others. `lines` is for reading: change it by the methods.
    """

    lines: list[HeaderLine] = []
    _first: dict[bytes, bytes] | None = None
    """First value of every name, once somebody asked or where it is known anyway."""
    most_bytes: int | None = None
    """What names and values together are at most, if known; whoever adds a line says so."""

    def __iter__(self) -> Iterator[HeaderLine]:
        return iter(self.lines)

    def __len__(self) -> int:
        return len(self.lines)

    def __contains__(self, name: bytes) -> bool:
        return name in self.first_values()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Headers) and self.lines == other.lines

    __hash__ = None  # type: ignore[assignment]  # mutable, hence not hashable

    def __repr__(self) -> str:
        # Names only: values carry credentials.
        return f"<Headers {[line[0].decode('latin-1') for line in self.lines]}>"

    def first_values(self) -> dict[bytes, bytes]:
        """Return the first value of every name; not to be changed, and stale after a change."""
        first = self._first
        if first is None:
            # Built in C, and backwards, so that of several values the first one stays.
            first = self._first = dict(reversed(self.lines))
        return first

    def get(self, name: bytes, default: bytes = b"") -> bytes:
        """Return the first value of `name`, or `default`."""
        first = self._first
        return (self.first_values() if first is None else first).get(name, default)

    def get_all(self, name: bytes) -> list[bytes]:
        """Return every value of `name`, in order."""
        return [value for key, value in self.lines if key == name]

    def replace_lines(self, lines: list[HeaderLine], most_bytes: int | None = None) -> None:
        """Take `lines`, of that size at most, in place of all that were there."""
        self.lines = lines
        self._first = None
        self.most_bytes = most_bytes

    def append(self, name: bytes, value: bytes) -> None:
        """Add one line at the end."""
        self.lines.append((name, value))
        self._first = self.most_bytes = None

    def set(self, name: bytes, value: bytes) -> None:
        """Replace every line of `name` with one.

        A pseudo-header moves behind the other pseudo-headers, any other name to the end.
        """
        self.remove((name,))
        at = self.pseudo_count() if name[:1] == b":" else len(self.lines)
        self.lines.insert(at, (name, value))

    def remove(self, names: Collection[bytes]) -> None:
        """Drop every line whose name is in `names`."""
        self.replace_lines([line for line in self.lines if line[0] not in names])

    def pseudo_count(self) -> int:
        """Return how many pseudo-headers stand in front."""
        count = 0
        for name, _ in self.lines:
            if name[:1] != b":":
                break
            count += 1
        return count

    def has_none_of(self, names: frozenset[bytes]) -> bool:
        """Return whether no line has one of these names."""
        return names.isdisjoint(map(_name_of, self.lines))

    def copy(self) -> "Headers":
        """Return an independent copy."""
        return Headers(self.lines.copy())

    def size_bytes(self) -> int:
        """Return the bytes of all names and values together."""
        return sum(map(len, chain.from_iterable(self.lines)))
