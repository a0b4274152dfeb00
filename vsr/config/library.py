"""The graphs that ship with the Router, read when something names them."""

import functools
import re
from collections.abc import Sequence
from pathlib import Path

import attrs

from vsr.config.names import BUILT_IN
from vsr.config.source import read_graph
from vsr.resources.graph import GraphSource

_NAME = re.compile(r"[a-z][a-z0-9_]*")
# In a wheel they lie inside the package, in a working tree beside it.
_FOLDERS = (Path(__file__).parent.parent / "graphs", Path(__file__).parent.parent.parent / "graphs")


@functools.cache
def find_graph(name: str) -> GraphSource | None:
    """Return the graph called `builtin/NAME`; None if none ships under that name.

    Raises:
        ConfigRejected: it is faulty, which a test makes sure that it is not.
    """
    short = name.removeprefix(BUILT_IN)
    if short == name or not _NAME.fullmatch(short):
        return None
    file = _folder() / f"{short}.yaml"
    if not file.is_file():
        return None
    source = read_graph(short, file.read_bytes(), {}, file=f"{name}.yaml")
    return attrs.evolve(source, name=name)


def graph_names() -> Sequence[str]:
    """Return the names of all graphs that ship, sorted."""
    return sorted(BUILT_IN + file.stem for file in _folder().glob("*.yaml"))


def _folder() -> Path:
    return next((folder for folder in _FOLDERS if folder.is_dir()), _FOLDERS[0])
