"""Runs a compiled graph for one request."""

from vsr.errors import RoutingFailed
from vsr.graph.compile import CompiledGraph
from vsr.graph.context import NodeContext, TailCall
from vsr.routing.effect import ImmediateResponse


async def execute(graph: CompiledGraph, ctx: NodeContext) -> ImmediateResponse | TailCall:
    """Run `graph` in the request's own nursery until it answers or hands out its tail call.

    Raises:
        BudgetExhausted, UpstreamFailure: a step failed.
    """
    for step_id, node in graph.steps:
        value = await node.run(ctx)
        if isinstance(value, ImmediateResponse):
            return value
        ctx.values[step_id] = value
    if graph.tail is None:
        raise RoutingFailed  # unreachable in a graph that was compiled: it ends with respond
    return graph.tail.hand_out(ctx)
