"""Node type `transform`: make a value of others, without asking anybody."""

from collections.abc import Mapping
from typing import ClassVar

import attrs

from vsr.graph.bind import REGISTRY
from vsr.graph.block import Node
from vsr.graph.context import NodeContext
from vsr.graph.env import Bound
from vsr.graph.kinds import Kind
from vsr.graph.suspend.record import Keeps
from vsr.graph.transform.transformer import Transformer
from vsr.registry import Extension


@attrs.frozen
class TransformNode:
    """Applies a transformer, whose own fields stand beside its name."""

    keeps: ClassVar[Keeps] = "nothing"
    transformer: Transformer = attrs.field(metadata={REGISTRY: "transformer"})

    @staticmethod
    def result_kind(bound: Mapping[str, Bound]) -> Kind:
        """Return the type of the transformer's value."""
        return bound["transformer"].kind

    async def run(self, ctx: NodeContext) -> object:
        """Return what the transformer makes.

        Raises:
            GraphFailed: it cannot.
        """
        return self.transformer(ctx.inputs)


TRANSFORM = Extension[Node](name="transform", config=TransformNode)
