"""An extension must not have fields that its step reads before it: they would never be set."""

from collections.abc import Sequence

import attrs
import pytest

from tests.fakes.extensions import REGISTRIES
from tests.fakes.graph import plain_facts, source_of
from vsr.graph.aggregate.strategy import Aggregate
from vsr.graph.context import NodeContext
from vsr.graph.env import Path
from vsr.graph.graph import GraphCompiler
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import BranchOutcome, Inputs
from vsr.registry import Extension, Registry
from vsr.resources.graph import CallBudget, GraphCall

TEXT = {"type": "transform", "transformer": "text", "parts": ["a"]}


@attrs.frozen
class Typed:
    """A node with a field that every step has."""

    type: str = ""

    async def run(self, ctx: NodeContext) -> str:
        """Return it."""
        del ctx
        return self.type


@attrs.frozen
class Sorted:
    """An aggregate with a field that its step has."""

    from_: str = ""

    def __call__(self, outcomes: Sequence[BranchOutcome[object]], inputs: Inputs, /) -> str:
        """Return it."""
        del outcomes, inputs
        return self.from_


@attrs.frozen
class Warned:
    """A transformer with fields of which one is what every step has."""

    error: str = ""
    text: str = ""

    def __call__(self, inputs: Inputs, /) -> str:
        """Return one."""
        del inputs
        return self.error


def _problems_of(step: dict[str, object]) -> list[str]:
    registries = attrs.evolve(
        REGISTRIES,
        nodes=Registry("node type", [*REGISTRIES.nodes, Extension(name="typed", config=Typed)]),
        aggregates=Registry[Aggregate]("aggregate", [Extension(name="sorted", config=Sorted)]),
        transformers=Registry[Transformer](
            "transformer",
            [*REGISTRIES.transformers, Extension(name="warned", config=Warned)],
        ),
    )
    found: list[str] = []

    def complain(path: Path, what: str, why: str, mend: str) -> None:
        del why
        found.append(f"{'.'.join(map(str, path))}: {what}, {mend}")

    source = source_of([step | {"id": "one"}, TEXT | {"id": "done"}, END])
    graphs = {"main": source}
    compiler = GraphCompiler(registries, graphs.get, plain_facts)
    compiler.compile(GraphCall("main", {}, CallBudget()), ("algorithm",), complain)
    return found


END = {"type": "respond", "from": "$done"}


@pytest.mark.parametrize(
    ("step", "key", "what"),
    [
        ({"type": "typed"}, "type", "node type 'typed' has a field 'type'"),
        (
            {"type": "aggregate", "strategy": "sorted"},
            "strategy",
            "aggregate 'sorted' has a field 'from_'",
        ),
        (
            {"type": "transform", "transformer": "warned", "error": "Sorry.", "text": "a"},
            "transformer",
            "transformer 'warned' has a field 'error'",
        ),
    ],
)
def test_field_that_the_step_reads_itself_is_refused(
    step: dict[str, object], key: str, what: str
) -> None:
    """It would stay unset without a word."""
    [found] = _problems_of(step)

    assert found == (
        f"graphs.main.steps.0.{key}: {what}, which its step reads, "
        "rename the field in the extension's class"
    )
