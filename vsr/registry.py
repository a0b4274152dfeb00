"""Named extensions of one kind, fixed once built."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import attrs

from vsr.errors import ConfigRejected, Problem

T = TypeVar("T", covariant=True)  # noqa: PLC0105  # the name style.md shows


@attrs.frozen
class Extension(Generic[T]):
    """One extension: its name in the document and the class of its configuration.

    For a pure kind the configuration class is the strategy itself (its instances are `T`).
    """

    name: str
    config: type[Any]


class Registry(Generic[T]):
    """The extensions of one kind by name; built once, never changed.

    Raises:
        ValueError: a name is given twice.
    """

    def __init__(
        self, kind: str, extensions: Iterable[Extension[T]] | Callable[[], Iterable[Extension[T]]]
    ) -> None:
        """Take the extensions, or what imports them with the first question for one."""
        self.kind = kind
        self._load: Callable[[], Iterable[Extension[T]]] | None = None
        self._known: dict[str, Extension[T]] = {}
        if callable(extensions):
            self._load = extensions
        else:
            self._fill(extensions)

    @property
    def _by_name(self) -> dict[str, Extension[T]]:
        load, self._load = self._load, None
        if load is not None:
            self._fill(load())
        return self._known

    def _fill(self, extensions: Iterable[Extension[T]]) -> None:
        for extension in extensions:
            if extension.name in self._known:
                raise ValueError(f"{self.kind} {extension.name!r} is registered twice")
            self._known[extension.name] = extension

    def __iter__(self) -> Iterator[Extension[T]]:
        return iter(self._by_name.values())

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def names(self) -> list[str]:
        """Return the known names, sorted."""
        return sorted(self._by_name)

    def get(self, name: str, *, path: str = "") -> Extension[T]:
        """Return the extension called `name`; `path` is where the document asks for it.

        Raises:
            ConfigRejected: no such extension; the message lists the known ones.
        """
        extension = self._by_name.get(name)
        if extension is None:
            raise ConfigRejected(
                [
                    Problem(
                        path=path,
                        what=f"unknown {self.kind} {name!r}",
                        why=f"known are {', '.join(self.names())}",
                        mend="use one of them",
                    )
                ]
            )
        return extension
