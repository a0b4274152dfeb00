"""A whole graph that is ready to run."""

from collections.abc import Mapping

import attrs

from vsr.graph.block import Block
from vsr.graph.budget import UNLIMITED, Limits
from vsr.graph.params import Facts
from vsr.graph.run import PlainTail
from vsr.resources.graph import OnExhausted, ParamSpec
from vsr.resources.program import RuleTree
from vsr.resources.stream_comments import NO_COMMENTS, StreamComments


@attrs.frozen
class CompiledGraph:
    """A graph that is ready to run."""

    name: str
    block: Block
    params: Mapping[str, object] = attrs.field(factory=dict)
    """By name; empty where a run brings its own."""
    specs: Mapping[str, ParamSpec] = attrs.field(factory=dict)
    """Of its parameters."""
    timeout_s: float | None = None
    limits: Limits = UNLIMITED
    on_exhausted: OnExhausted = OnExhausted.SKIP
    is_strict: bool = False
    hash: str = ""
    """Of its steps and parameters' types, graphs inside it included."""
    may_suspend: bool = False
    """Whether a call of it may wait for the client's tools."""
    tail: PlainTail | None = None
    """The call of a graph that is nothing but one, to the parameter `model`."""
    stream: StreamComments = NO_COMMENTS
    """While a client waits for its stream."""
    facts: Facts | None = None
    """What is known of models, where a run brings its own parameters."""
    signals: tuple[RuleTree, ...] = ()
    """Rule trees of its conditions, in the order in which `Inputs.signals` answers them; of a graph
    inside another one, those that were found before it, too."""
