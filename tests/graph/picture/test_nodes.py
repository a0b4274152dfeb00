"""The steps of a compiled graph as operators see them."""

import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.graph_scene import said, start_graph
from vsr.gateway.request_views import RequestWatch
from vsr.routing.request_views import GraphView, NodeView

NESTED = """
    {id: pick, type: branch,
        cases: [{when: {has_tools: $request.has_tools},
            then: [{id: tools, type: call, model: alpha}]}],
        else: [{id: plain, type: call, model: alpha}]},
    {id: rounds, type: loop, times: 2, do: [
        {id: panel, type: parallel, branches: [
            [{id: left, type: call, model: alpha}], [{id: right, type: call, model: alpha}]]}]},
    {id: inner, type: subgraph, graph: inside},
    {type: respond, from: $inner}"""
INSIDE = "{id: deep, type: call, model: alpha}, {type: respond, from: $deep}"


def outline(nodes: tuple[NodeView, ...]) -> list[object]:
    """Return nodes as lists in lists."""
    return [
        [f"{each.id} {each.type}", *([part.label, *outline(part.nodes)] for part in each.parts)]
        for each in nodes
    ]


async def nested(nursery: trio.Nursery) -> GraphView:
    """Run a graph of many levels; return what is told of it."""
    both = f"steps: [{NESTED}]}}\n    inside: {{limits: {{}}"
    scene = await start_graph(nursery, INSIDE, [(said(),)], limits=both)
    await scene.ask(body=chat_body(model="auto"))
    watch = RequestWatch(scene.router.router.gateway.requests)
    [ended] = watch.list(1).ended
    detail = watch.find(ended.id, "")
    assert detail is not None
    assert detail.routing.graph is not None
    return detail.routing.graph


async def test_steps_lie_inside_each_other_as_they_are_written(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Arms, bodies, branches and graphs of others; steps without an id have that of their paths."""
    graph = await nested(nursery)

    assert outline(graph.nodes) == [
        ["pick branch", ["cases 1", ["tools call"]], ["else", ["plain call"]]],
        [
            "rounds loop",
            [
                "do",
                [
                    "panel parallel",
                    ["branches 1", ["left call"]],
                    ["branches 2", ["right call"]],
                ],
            ],
        ],
        ["inner subgraph", ["inside", ["deep call"], ["respond#1 respond"]]],
        ["respond#3 respond"],
    ]


async def test_paths_of_a_run_lead_to_nodes(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """By their ids alone: every step that ran is a step that is written."""
    graph = await nested(nursery)

    for step in graph.steps:
        nodes, types = graph.nodes, []
        for name in step.path.split("/"):
            [node] = [each for each in nodes if each.id == name.partition("[")[0]]
            nodes = tuple(inner for part in node.parts for inner in part.nodes)
            types.append(node.type)
        assert types[-1] == step.type
