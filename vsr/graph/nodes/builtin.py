"""The node types that ship with the Router."""

from vsr.graph.block import Node
from vsr.graph.nodes.aggregate import AGGREGATE
from vsr.graph.nodes.assess import ASSESS
from vsr.graph.nodes.branch import BRANCH
from vsr.graph.nodes.call import CALL
from vsr.graph.nodes.loop import LOOP
from vsr.graph.nodes.parallel import PARALLEL
from vsr.graph.nodes.respond import RESPOND
from vsr.graph.nodes.small import BREAK, FAIL, SET
from vsr.graph.nodes.subgraph import SUBGRAPH
from vsr.graph.nodes.transform import TRANSFORM
from vsr.registry import Extension

BUILTIN_NODES: tuple[Extension[Node], ...] = (
    AGGREGATE,
    ASSESS,
    BRANCH,
    BREAK,
    CALL,
    FAIL,
    LOOP,
    PARALLEL,
    RESPOND,
    SET,
    SUBGRAPH,
    TRANSFORM,
)
