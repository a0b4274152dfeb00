"""The node types that ship with the Router, by name: where each stands."""

from typing import TYPE_CHECKING

from vsr.registry import Place, places

if TYPE_CHECKING:
    from vsr.graph.block import Node

BUILTIN_NODES: "tuple[Place[Node], ...]" = places(
    "vsr.graph.nodes",
    {
        "aggregate": "aggregate:AGGREGATE",
        "assess": "assess:ASSESS",
        "branch": "branch:BRANCH",
        "break": "small:BREAK",
        "call": "call:CALL",
        "fail": "small:FAIL",
        "loop": "loop:LOOP",
        "parallel": "parallel:PARALLEL",
        "rate": "rate:RATE",
        "respond": "respond:RESPOND",
        "set": "small:SET",
        "subgraph": "subgraph:SUBGRAPH",
        "transform": "transform:TRANSFORM",
    },
)
