"""Extensions of graphs that installed packages add, found by their entry points."""

import functools
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from vsr.errors import ConfigRejected, Problem
from vsr.graph.compile import Registries
from vsr.registry import Extension, Registry

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

NODES, AGGREGATES = "vsr.nodes", "vsr.aggregates"
TRANSFORMERS, CONDITIONS = "vsr.transformers", "vsr.conditions"
GROUPS = (NODES, AGGREGATES, TRANSFORMERS, CONDITIONS)
"""Of entry points; the value of each is an `Extension`, or a tuple of them."""
_MARK = b"[vsr."
_METADATA = ("*.dist-info/entry_points.txt", "*.egg-info/entry_points.txt")


@functools.cache
def with_installed(shipped: Registries) -> Registries:
    """Return what graphs may ask for by name: what ships, and what installed packages add.

    Every package on the path is looked at, which takes milliseconds; that is done once. The
    library that reads their metadata takes ten times as long, so it is only loaded for a package
    that has something for us.

    Raises:
        ConfigRejected: an entry point cannot be used; every such one is told.
    """
    if not any(map(_may_add, sys.path)):
        return shipped
    from importlib.metadata import entry_points  # noqa: PLC0415  # see above

    everything = entry_points()
    found = {group: sorted(everything.select(group=group), key=_order) for group in GROUPS}
    if not any(found.values()):
        return shipped
    problems: list[Problem] = []

    def extended(shipped: Registry[object], group: str) -> Registry[object]:
        return _extended(shipped, group, found[group], problems)

    registries = Registries(
        extended(shipped.nodes, NODES),
        extended(shipped.aggregates, AGGREGATES),
        extended(shipped.transformers, TRANSFORMERS),
        extended(shipped.conditions, CONDITIONS),
    )
    if problems:
        raise ConfigRejected(problems)
    return registries


def _may_add(place: str) -> bool:
    """Return whether a package at one place of the path says that it has an extension."""
    folder = Path(place)
    if folder.is_file():
        return True  # an archive, which the library reads
    for pattern in _METADATA:
        for file in folder.glob(pattern):
            if _MARK in file.read_bytes():
                return True
    return False


def _order(point: "EntryPoint") -> tuple[str, str]:
    return _package(point), point.name


def _extended(
    shipped: Registry[object], group: str, points: Iterable["EntryPoint"], problems: list[Problem]
) -> Registry[object]:
    owners = dict.fromkeys(shipped.names(), "the Router itself")
    added: list[Extension[object]] = []
    for point in points:
        place = f"{_package(point)}, entry point {point.name!r} of {group}"
        try:
            extensions = _load(point, group)
        except _Unusable as error:
            mend = "mend the package or remove it"
            problems.append(Problem(place, "cannot be used", str(error), mend))
            continue
        for extension in extensions:
            name = extension.name
            if name in owners:
                what = f"gives the {shipped.kind} {name!r}, which is there already"
                why = f"it comes from {owners[name]}"
                problems.append(Problem(place, what, why, "remove one of the packages"))
                continue
            owners[name] = _package(point)
            added.append(extension)
    return shipped.with_more(added)


class _Unusable(Exception):
    """What an entry point gives is no extension."""


def _load(point: "EntryPoint", group: str) -> Sequence[Extension[object]]:
    try:
        value: object = point.load()
    except Exception as error:  # whatever a package's own code raises
        raise _Unusable(f"{point.value} raises {type(error).__name__}: {error}") from error
    extensions = value if isinstance(value, tuple) else (value,)
    method = "run" if group == NODES else "__call__"
    for each in extensions:
        if not isinstance(each, Extension):
            raise _Unusable(f"{point.value} holds {type(each).__name__}, and not an Extension")
        if not attrs.has(each.config) or not hasattr(each.config, method):
            raise _Unusable(f"{each.config.__name__} is no attrs class with a method {method}")
    return extensions


def _package(point: "EntryPoint") -> str:
    dist = point.dist
    return "an unknown package" if dist is None else f"{dist.name} {dist.version}"
