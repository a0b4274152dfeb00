"""What of waiting for tools is refused when a graph is compiled."""

import attrs
import pytest

from tests.graph.compiled_graphs import Nodes, compiled, faults
from vsr.graph.block import Node
from vsr.graph.nodes.builtin import BUILTIN_NODES
from vsr.registry import Extension

WAIT = {"id": "answer", "type": "call", "model": "a", "on_tool_calls": "suspend"}
RESPOND = {"type": "respond", "from": "$answer"}
TEXT = {"type": "respond", "from": "text"}
TAIL = [
    {"id": "said", "type": "call", "model": "b", "stream": "tail"},
    {"type": "respond", "from": "$said"},
]


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([{"type": "parallel", "times": 2, "do": [WAIT]}, TEXT], "a branch of a parallel step"),
        (
            [{"type": "parallel", "times": 2, "do": [{"type": "subgraph", "graph": "one"}]}, TEXT],
            "a branch of a parallel step",
        ),
        ([{**WAIT, "stream": "follow"}, RESPOND], "cannot stream"),
        ([{**WAIT, "on_suspend": [{"type": "call", "model": "b"}]}, RESPOND], "without an answer"),
        ([{**WAIT, "on_suspend": [{**WAIT, "id": "b"}, TEXT]}, RESPOND], "cannot wait"),
        ([{**WAIT, "on_suspend": TAIL}, RESPOND], "cannot be a handed out call"),
        (
            [{**WAIT, "on_suspend": [{"type": "branch", "cases": [], "else": TAIL}]}, RESPOND],
            "cannot be a handed out call",
        ),
        (
            [
                {"type": "loop", "times": 1, "do": [{**WAIT, "on_suspend": [{"type": "break"}]}]},
                TEXT,
            ],
            "no loop around",
        ),
    ],
)
def test_faults_are_named(steps: list[dict[str, object]], words: str) -> None:
    """An author learns of them before a client does."""
    assert any(words in fault for fault in faults(steps, one=[WAIT, RESPOND]))


def test_call_may_wait_in_a_nested_graph() -> None:
    """The graph around it then waits, too."""
    steps = [{"id": "inner", "type": "subgraph", "graph": "one"}, TEXT]

    assert compiled(steps, one=[WAIT, RESPOND]).may_suspend
    assert not compiled([{**WAIT, "on_tool_calls": "return"}, RESPOND]).may_suspend


def test_call_may_wait_in_every_list_of_steps() -> None:
    """They are all looked through."""
    branch = {"type": "branch", "cases": [{"when": {"has_tools": True}, "then": [WAIT]}]}

    assert compiled([branch, TEXT]).may_suspend
    assert compiled([{"type": "loop", "times": 1, "do": [branch]}, TEXT]).may_suspend


@attrs.frozen
class Opaque:
    """Asks for something that no JSON can hold."""

    async def run(self, ctx: object, /) -> complex:
        """Return it."""
        del ctx
        return 1j


OPAQUE = Extension[Node](name="opaque", config=Opaque)


def test_value_that_cannot_be_kept_is_refused_where_the_graph_waits() -> None:
    """A run would be lost with the first tool call."""
    nodes: Nodes = (*BUILTIN_NODES, OPAQUE)
    odd = {"id": "odd", "type": "opaque"}

    (fault,) = faults([odd, WAIT, RESPOND], nodes=nodes)

    assert "odd: its value, complex, cannot be kept" in fault
    assert faults([odd, TEXT], nodes=nodes) == []


def test_hash_tells_graphs_apart() -> None:
    """Also where only a graph inside is another one."""
    outer = [{"id": "inner", "type": "subgraph", "graph": "one"}, TEXT]
    plain = compiled(outer, one=[WAIT, RESPOND])

    assert plain.hash == compiled(outer, one=[WAIT, RESPOND]).hash
    assert plain.hash != compiled(outer, one=[{**WAIT, "timeout": 5}, RESPOND]).hash
    assert plain.hash != compiled([*outer[:1], {**TEXT, "from": "other"}], one=[WAIT, RESPOND]).hash
