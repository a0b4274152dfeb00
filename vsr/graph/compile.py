"""From authored steps to a graph that can run: node types, references, the tail call."""

from collections.abc import Mapping, Sequence

import attrs

from vsr.errors import ConfigRejected, Problem
from vsr.graph.nodes.call import CallNode
from vsr.graph.nodes.node import Node
from vsr.graph.nodes.respond import RespondNode
from vsr.registry import Registry


@attrs.frozen
class Step:
    """One authored step: an id, a node type and the node's fields."""

    id: str
    type: str
    fields: Mapping[str, object]


@attrs.frozen
class CompiledGraph:
    """Steps to run in order, then the call to hand out, if the graph ends in one."""

    name: str
    steps: tuple[tuple[str, Node], ...]
    tail: CallNode | None
    """The last call when nothing but `respond` of it follows; it is not among `steps`."""


def compile_graph(
    name: str, steps: Sequence[Step], registry: Registry[Node], *, params: Sequence[str] = ()
) -> CompiledGraph:
    """Check `steps` and return them ready to run.

    Raises:
        ConfigRejected: an unknown node type or field, a reference to nothing earlier, a repeated
            id, or no `respond` at the end.
    """
    problems: list[Problem] = []
    known = {f"$params.{param}" for param in params}
    calls: set[str] = set()
    nodes: list[tuple[str, Node]] = []
    for index, step in enumerate(steps):
        path = f"graphs[{name}].steps[{index}]"
        problems += _check_step(step, path, known, calls)
        try:
            nodes.append((step.id, registry.get(step.type, path=path).config(**step.fields)))
        except TypeError:
            problems.append(Problem(path, f"fields do not fit a {step.type}"))
        except ConfigRejected as rejected:
            problems += rejected.problems
        known.add(f"${step.id}")
        if step.type == "call":
            calls.add(f"${step.id}")
    if not steps or steps[-1].type != "respond":
        problems.append(Problem(f"graphs[{name}]", "does not end with a respond step"))
    if problems:
        raise ConfigRejected(problems)
    return _with_tail(name, nodes)


def _check_step(step: Step, path: str, known: set[str], calls: set[str]) -> list[Problem]:
    problems = [
        Problem(path, f"{field} refers to {value}, which no earlier step or parameter provides")
        for field, value in step.fields.items()
        if isinstance(value, str) and value.startswith("$") and value not in known
    ]
    if f"${step.id}" in known:
        problems.append(Problem(path, f"id {step.id!r} is taken"))
    return problems + _check_respond(step, path, calls)


def _check_respond(step: Step, path: str, calls: set[str]) -> list[Problem]:
    """Check that a respond step answers with a call's reply: nothing else is an answer."""
    source = step.fields.get("from_", "")
    if step.type != "respond" or source in calls:
        return []
    return [Problem(path, f"from_ is {source!r}", mend="name a call step, as $id")]


def _with_tail(name: str, nodes: list[tuple[str, Node]]) -> CompiledGraph:
    """Split off the last call when nothing but `respond` of it follows."""
    if len(nodes) > 1:
        (call_id, call), (_, respond) = nodes[-2:]
        is_tail = isinstance(respond, RespondNode) and respond.from_ == f"${call_id}"
        if isinstance(call, CallNode) and is_tail:
            return CompiledGraph(name, tuple(nodes[:-2]), call)
    return CompiledGraph(name, tuple(nodes), None)


PLAIN_STEPS = (
    Step("answer", "call", {"model": "$params.model"}),
    Step("reply", "respond", {"from_": "$answer"}),
)
"""The graph of a plain request: one call, handed out, and its answer."""
