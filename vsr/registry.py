"""Named extensions of one kind, fixed once built."""

import importlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from vsr.errors import ConfigRejected, Problem

T = TypeVar("T", covariant=True)  # noqa: PLC0105  # the name style.md shows


class Extension(msgspec.Struct, Generic[T], frozen=True):
    """One extension: its name in the document and the class of its configuration.

    For a pure kind the configuration class is the strategy itself (its instances are `T`).
    """

    name: str
    config: type[Any]


class Place(msgspec.Struct, Generic[T], frozen=True):
    """Where an extension stands; its module is imported when the extension is asked for."""

    name: str
    """The extension's."""
    module: str
    constant: str
    """The module's, an `Extension` of that name."""

    def load(self) -> Extension[T]:
        """Return the extension.

        Raises:
            ValueError: another one stands there.
        """
        extension: Extension[T] = getattr(importlib.import_module(self.module), self.constant)
        if extension.name != self.name:
            raise ValueError(f"{extension.name!r} stands where {self.name!r} should")
        return extension


def places(package: str, constants: Mapping[str, str]) -> tuple[Place[Any], ...]:
    """Return the places of extensions, given as `module:CONSTANT` of a package by their names."""
    split = {name: constant.split(":") for name, constant in constants.items()}
    return tuple(Place(name, f"{package}.{module}", it) for name, (module, it) in split.items())


class Registry(Generic[T]):
    """The extensions of one kind by name; built once, never changed.

    Raises:
        ValueError: a name is given twice.
    """

    def __init__(self, kind: str, extensions: Iterable[Extension[T] | Place[T]]) -> None:
        self.kind = kind
        self._by_name: dict[str, Extension[T] | Place[T]] = {}
        for extension in extensions:
            if extension.name in self._by_name:
                raise ValueError(f"{kind} {extension.name!r} is registered twice")
            self._by_name[extension.name] = extension

    def __iter__(self) -> Iterator[Extension[T]]:
        return map(self._load, list(self._by_name))

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def with_more(self, extensions: Iterable[Extension[T]]) -> "Registry[T]":
        """Return a registry that has these extensions, too.

        Raises:
            ValueError: a name is there already.
        """
        return Registry(self.kind, [*self._by_name.values(), *extensions])

    def _load(self, name: str) -> Extension[T]:
        known = self._by_name[name]
        if isinstance(known, Place):
            known = self._by_name[name] = known.load()
        return known

    def names(self) -> list[str]:
        """Return the known names, sorted."""
        return sorted(self._by_name)

    def get(self, name: str, *, path: str = "") -> Extension[T]:
        """Return the extension called `name`; `path` is where the document asks for it.

        Raises:
            ConfigRejected: no such extension; the message lists the known ones.
        """
        if name not in self._by_name:
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
        return self._load(name)
