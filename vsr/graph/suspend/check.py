"""Whether a compiled graph may wait for the client's tools, and whether it can be kept then."""

from collections.abc import Iterator

import msgspec

from vsr.graph.block import Block, CompiledStep
from vsr.graph.env import Constant
from vsr.graph.kinds import described
from vsr.graph.nodes.call import CallNode
from vsr.graph.steps import graphs_of, steps_of
from vsr.graph.suspend.record import can_keep
from vsr.resources.graph import GraphSource


def may_suspend(block: Block) -> bool:
    """Return whether a call of the graph may wait for the client's tools."""
    return any(_suspends(step) for step in steps_of(block))


def unkept(block: Block) -> Iterator[str]:
    """Yield what is wrong with steps whose values cannot be kept while the graph waits."""
    for step in steps_of(block):
        keeps = getattr(step.node.cls, "keeps", "value")
        if keeps == "value" and not can_keep(step.kind):
            yield (
                f"{step.id}: its value, {described(step.kind)}, cannot be kept "
                "while the graph waits for the client's tools"
            )


def hash_inputs(source: GraphSource, block: Block) -> bytes:
    """Return the bytes that tell one version of a graph from another, inner graphs included."""
    inner = sorted({graph.hash for graph in graphs_of(block)})
    return msgspec.json.encode(
        [source.name, source.params, source.steps, inner], enc_hook=str, order="deterministic"
    )


def _suspends(step: CompiledStep) -> bool:
    bound = step.node.bound.get("on_tool_calls")
    is_call = step.node.cls is CallNode
    return is_call and isinstance(bound, Constant) and bound.value == "suspend"
