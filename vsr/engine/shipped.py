"""Everything that ships with the Router and that a document may ask for by name."""

from typing import TYPE_CHECKING

from vsr.config.library import find_graph
from vsr.decision.selection.builtin import BUILTIN_SELECTIONS
from vsr.decision.signals.builtin import BUILTIN_SIGNALS
from vsr.engine.extensions import Extensions
from vsr.engine.plugins.builtin import BUILTIN_PLUGINS
from vsr.graph.aggregate.builtin import BUILTIN_AGGREGATES
from vsr.graph.conditions.builtin import BUILTIN_CONDITIONS
from vsr.graph.nodes.builtin import BUILTIN_NODES
from vsr.graph.transform.builtin import BUILTIN_TRANSFORMERS
from vsr.registry import Registry

if TYPE_CHECKING:
    from vsr.graph.compile import Registries


def _with_installed(shipped: "Registries") -> "Registries":
    from vsr.engine.installed import with_installed  # noqa: PLC0415  # loaded for graphs alone

    return with_installed(shipped)


BUILTIN = Extensions(
    nodes=Registry("node type", BUILTIN_NODES),
    signals=Registry("signal", BUILTIN_SIGNALS),
    selections=Registry("selection algorithm", BUILTIN_SELECTIONS),
    plugins=Registry("plugin", BUILTIN_PLUGINS),
    aggregates=Registry("aggregate strategy", BUILTIN_AGGREGATES),
    transformers=Registry("transformer", BUILTIN_TRANSFORMERS),
    conditions=Registry("condition", BUILTIN_CONDITIONS),
    find_graph=find_graph,
    with_installed=_with_installed,
)
"""What ships with the Router; graphs of the document may use what installed packages add, too."""
