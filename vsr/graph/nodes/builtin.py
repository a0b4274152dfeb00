"""The node types that ship with the Router."""

from vsr.graph.nodes.call import CALL
from vsr.graph.nodes.node import Node
from vsr.graph.nodes.respond import RESPOND
from vsr.registry import Extension

BUILTIN_NODES: tuple[Extension[Node], ...] = (CALL, RESPOND)
