"""Graphs that are compiled with what ships with the Router."""

from collections.abc import Mapping, Sequence

from vsr.graph.aggregate.builtin import BUILTIN_AGGREGATES
from vsr.graph.block import Node
from vsr.graph.compile import Registries
from vsr.graph.compiled import CompiledGraph
from vsr.graph.conditions.builtin import BUILTIN_CONDITIONS
from vsr.graph.graph import GraphCompiler
from vsr.graph.nodes.builtin import BUILTIN_NODES
from vsr.graph.transform.builtin import BUILTIN_TRANSFORMERS
from vsr.graph.value import ModelRef
from vsr.registry import Extension, Place, Registry
from vsr.resources.graph import GraphCall, GraphSource

Steps = Sequence[Mapping[str, object]]
Nodes = Sequence[Place[Node] | Extension[Node]]


def compiled(steps: Steps, **inner: Steps) -> CompiledGraph:
    """Return a graph without parameters; `inner` are graphs that it may run, by name."""
    graph, found = _compile(steps, inner, BUILTIN_NODES)
    assert found == []
    assert graph is not None
    return graph


def faults(steps: Steps, *, nodes: Nodes = BUILTIN_NODES, **inner: Steps) -> list[str]:
    """Return what is wrong with it."""
    return _compile(steps, inner, nodes)[1]


def _compile(
    steps: Steps, inner: Mapping[str, Steps], nodes: Nodes
) -> tuple[CompiledGraph | None, list[str]]:
    registries = Registries(
        Registry("node type", nodes),
        Registry("aggregate strategy", BUILTIN_AGGREGATES),
        Registry("transformer", BUILTIN_TRANSFORMERS),
        Registry("condition", BUILTIN_CONDITIONS),
    )
    sources = {name: GraphSource(name, steps=tuple(each)) for name, each in inner.items()}
    sources["own"] = GraphSource("own", steps=tuple(steps))
    found: list[str] = []
    compiler = GraphCompiler(registries, sources.get, lambda ref: ModelRef(ref.model, ref.model))
    graph = compiler.compile(
        GraphCall("own"), (), lambda path, *text: found.append(" ".join((*map(str, path), *text)))
    )
    return graph, found
