"""What the core is built from besides the configuration."""

from collections.abc import Callable

import attrs

from vsr.decision.selection.selection import Selection
from vsr.decision.signals.signal import LearnedSignal, Signal
from vsr.engine.plugins.plugin import Plugin
from vsr.graph.nodes.node import Node
from vsr.registry import Registry
from vsr.routing.ports import NoRuntime, Runtime


@attrs.frozen
class Extensions:
    """Everything that a document may ask for by name."""

    nodes: Registry[Node]
    signals: Registry[Signal | LearnedSignal]
    selections: Registry[Selection]
    plugins: Registry[Plugin]


@attrs.frozen
class Surroundings:
    """What sessions see of the world."""

    monotonic: Callable[[], float]
    """Seconds, for latencies."""
    unix: Callable[[], float]
    """Seconds since 1970, for what is shown to clients."""
    runtime: Runtime = attrs.field(factory=NoRuntime)
    """Answers what learned signals ask."""
