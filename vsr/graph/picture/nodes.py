"""The steps of a compiled graph as operators see them: names, types, who lies inside of whom."""

from collections.abc import Iterable, Iterator, Mapping

import attrs

from vsr.graph.block import Block, CompiledStep
from vsr.graph.compiled import CompiledGraph
from vsr.graph.env import Constant
from vsr.routing.request_views import NodePart, NodeView


def nodes_of(block: Block) -> tuple[NodeView, ...]:
    """Return the steps of `block`, graphs inside it included, with the ids that paths have."""
    return tuple(NodeView(step.id, step.type, tuple(_parts(step))) for step in block.steps)


def _parts(step: CompiledStep) -> Iterator[NodePart]:
    for name, bound in step.node.bound.items():
        if not isinstance(bound, Constant):
            continue
        for label, block in _blocks(bound.value, name.rstrip("_")):
            yield NodePart(label, nodes_of(block))


def _blocks(value: object, label: str) -> Iterator[tuple[str, Block]]:
    """Yield the lists of steps in one field, each with what it is called."""
    if isinstance(value, Block):
        yield label, value
    elif isinstance(value, CompiledGraph):
        yield value.name, value.block
    else:
        for name, each in _inside(value, label):
            yield from _blocks(each, name)


def _inside(value: object, label: str) -> Iterable[tuple[str, object]]:
    """Return what a field's value is made of, as far as there may be steps in it."""
    if isinstance(value, (tuple, list)):
        return [(f"{label} {at}", each) for at, each in enumerate(value, 1)]
    if isinstance(value, Mapping):
        return [(str(name), each) for name, each in value.items()]
    cls = type(value)
    if not attrs.has(cls):
        return ()
    return [(label, getattr(value, field.name)) for field in attrs.fields(cls)]
