"""Everything that ships with the Router and that a document may ask for by name."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from vsr.config.library import find_graph
from vsr.decision.selection.builtin import BUILTIN_SELECTIONS
from vsr.decision.signals.builtin import BUILTIN_SIGNALS
from vsr.engine.extensions import Extensions
from vsr.engine.plugins.builtin import BUILTIN_PLUGINS
from vsr.registry import Extension, Registry

if TYPE_CHECKING:
    from vsr.graph.aggregate.strategy import Aggregate
    from vsr.graph.block import Node
    from vsr.graph.compile import Registries
    from vsr.graph.conditions.condition import Condition
    from vsr.graph.transform.transformer import Transformer

# ruff: noqa: PLC0415  # what graphs are made of is a fifth of the start, and many have none


def _nodes() -> "Iterable[Extension[Node]]":
    from vsr.graph.nodes.builtin import BUILTIN_NODES

    return BUILTIN_NODES


def _aggregates() -> "Iterable[Extension[Aggregate]]":
    from vsr.graph.aggregate.builtin import BUILTIN_AGGREGATES

    return BUILTIN_AGGREGATES


def _transformers() -> "Iterable[Extension[Transformer]]":
    from vsr.graph.transform.builtin import BUILTIN_TRANSFORMERS

    return BUILTIN_TRANSFORMERS


def _conditions() -> "Iterable[Extension[Condition]]":
    from vsr.graph.conditions.builtin import BUILTIN_CONDITIONS

    return BUILTIN_CONDITIONS


def _with_installed(shipped: "Registries") -> "Registries":
    from vsr.engine.installed import with_installed

    return with_installed(shipped)


BUILTIN = Extensions(
    nodes=Registry("node type", _nodes),
    signals=Registry("signal", BUILTIN_SIGNALS),
    selections=Registry("selection algorithm", BUILTIN_SELECTIONS),
    plugins=Registry("plugin", BUILTIN_PLUGINS),
    aggregates=Registry("aggregate strategy", _aggregates),
    transformers=Registry("transformer", _transformers),
    conditions=Registry("condition", _conditions),
    find_graph=find_graph,
    with_installed=_with_installed,
)
"""What ships with the Router; graphs of the document may use what installed packages add, too."""
