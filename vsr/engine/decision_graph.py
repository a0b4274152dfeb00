"""The graph that answers for a decision; all of it is known at activation."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from vsr.engine.hop import HopModel
from vsr.errors import GraphFailed
from vsr.graph.compiled import CompiledGraph
from vsr.graph.run import MAX_ANSWER_BYTES
from vsr.graph.suspend.run import RunIdentity
from vsr.routing.effect import HeaderEdit
from vsr.routing.plan import Label

if TYPE_CHECKING:
    from vsr.routing.request_views import NodeView


class DecisionGraph(msgspec.Struct, frozen=True, eq=False):
    """One decision's graph and the models that its steps may call."""

    graph: CompiledGraph
    algorithm: str
    """Type of the decision's algorithm."""
    is_looper: bool
    """Whether its failures are told as those of the reference's multi-model algorithms."""
    label: Label
    """Without the model."""
    models: Callable[[str], HopModel | None]
    """By alias or adapter; None: there is no such model."""
    edits: tuple[HeaderEdit, ...]
    """Response headers of a success: which schema, path and configuration answered."""
    failed_edits: tuple[HeaderEdit, ...]
    identity: RunIdentity | None = None
    """What its kept runs are known by; None where it never waits for the client's tools."""
    static_headers: tuple[tuple[bytes, bytes], ...] = ()
    """Set on every call."""
    max_answer_bytes: int = MAX_ANSWER_BYTES
    """Of one call."""
    nodes: "tuple[NodeView, ...]" = ()
    """Its steps, as operators see them."""

    @property
    def told_name(self) -> str:
        """Return what metrics and traces call it: a type of algorithm, or the graph's name."""
        return self.algorithm if self.is_looper else self.graph.name

    def model(self, name: str) -> HopModel:
        """Return the model that a step calls `name`.

        Raises:
            GraphFailed: there is no such model.
        """
        found = self.models(name)
        if found is None:
            raise GraphFailed(f"request failed: there is no model {name}")
        return found
