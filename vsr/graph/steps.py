"""All steps of a compiled graph, those of inner lists and of graphs inside it too."""

from collections.abc import Iterable, Iterator, Mapping

import attrs

from vsr.graph.block import Block, CompiledStep
from vsr.graph.compiled import CompiledGraph
from vsr.graph.env import Constant


def steps_of(block: Block) -> Iterator[CompiledStep]:
    """Yield the steps of `block` in the order of the document, each before those inside it."""
    for step in block.steps:
        yield step
        for bound in step.node.bound.values():
            if isinstance(bound, Constant):
                yield from _steps_in(bound.value)


def graphs_of(block: Block) -> Iterator[CompiledGraph]:
    """Yield the graphs that steps of `block` run, without those inside them."""
    for step in steps_of(block):
        for bound in step.node.bound.values():
            if isinstance(bound, Constant) and isinstance(bound.value, CompiledGraph):
                yield bound.value


def _steps_in(value: object) -> Iterator[CompiledStep]:
    if isinstance(value, Block):
        yield from steps_of(value)
    elif isinstance(value, CompiledGraph):
        yield from steps_of(value.block)
    else:
        for part in _parts(value):
            yield from _steps_in(part)


def _parts(value: object) -> Iterable[object]:
    """Return what a field's value is made of, as far as there may be steps in it."""
    if isinstance(value, (tuple, list)):
        return value
    if isinstance(value, Mapping):
        return value.values()
    cls = type(value)
    return [getattr(value, field.name) for field in attrs.fields(cls)] if attrs.has(cls) else ()
