"""What the core is built from besides the configuration."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from vsr.decision.selection.selection import Selection
from vsr.decision.signals.signal import LearnedSignal, Signal
from vsr.engine.plugins.plugin import Plugin
from vsr.registry import Registry
from vsr.resources.graph import GraphSource
from vsr.routing.execution import Execution
from vsr.routing.ports import NoRuntime, Runtime

if TYPE_CHECKING:  # what graphs are made of is loaded where there are any
    from vsr.graph.aggregate.strategy import Aggregate
    from vsr.graph.block import Node
    from vsr.graph.compile import Registries
    from vsr.graph.conditions.condition import Condition
    from vsr.graph.run import GraphRun
    from vsr.graph.suspend.store import SuspendStore
    from vsr.graph.suspend.tool_ids import DrawBytes
    from vsr.graph.transform.transformer import Transformer


def _no_graph(name: str) -> GraphSource | None:
    del name
    return None


def _nothing_installed(shipped: "Registries") -> "Registries":
    return shipped


class Extensions(msgspec.Struct, frozen=True):
    """Everything that a document may ask for by name."""

    nodes: "Registry[Node]"
    signals: Registry[Signal | LearnedSignal]
    selections: Registry[Selection]
    plugins: Registry[Plugin]
    aggregates: "Registry[Aggregate]"
    transformers: "Registry[Transformer]"
    conditions: "Registry[Condition]"
    find_graph: Callable[[str], GraphSource | None] = _no_graph
    """Returns a graph that ships with the Router, by its name."""
    with_installed: "Callable[[Registries], Registries]" = _nothing_installed
    """Returns what graphs may ask for with what installed packages add to what ships. Asked only
    when a graph of the document is compiled, for looking takes a while."""

    def graph_registries(self) -> "Registries":
        """Return what graphs may ask for by name.

        Raises:
            ConfigRejected: what a package adds cannot be used.
        """
        return self.with_installed(self.shipped_registries())

    def shipped_registries(self) -> "Registries":
        """Return what graphs may ask for without what installed packages add."""
        from vsr.graph.compile import Registries  # noqa: PLC0415  # see above

        return Registries(self.nodes, self.aggregates, self.transformers, self.conditions)


class StateKeeper(msgspec.Struct, frozen=True):
    """Keeps runs that wait for their clients' tools."""

    store: "SuspendStore"
    draw: "DrawBytes"
    """For ids."""


class Surroundings(msgspec.Struct, frozen=True):
    """What sessions see of the world."""

    monotonic: Callable[[], float]
    """Seconds, for latencies."""
    unix: Callable[[], float]
    """Seconds since 1970, for what is shown to clients."""
    runtime: Runtime = msgspec.field(default_factory=NoRuntime)
    """Answers what learned signals ask."""
    on_run: "Callable[[GraphRun], None] | None" = None
    """Told of the run of each decision's graph before its first step."""
    keeper: StateKeeper | None = None
    """None: a graph that wants to wait for tools fails."""
    on_execution: Callable[[Execution], None] | None = None
    """Told of what each run has come to, when its request has ended."""
