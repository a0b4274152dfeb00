"""One decision's graph from its start to the end of its request, and what it came to."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import trio

from vsr.graph.block import Answer
from vsr.graph.evidence import Ended, execution_of
from vsr.graph.run import GraphRun
from vsr.routing.execution import Execution, GraphFailure
from vsr.routing.outcome import Outcome, Terminal
from vsr.routing.plan import Label

if TYPE_CHECKING:
    from vsr.graph.timeline import Timeline
    from vsr.routing.request_views import NodeView

Tell = Callable[[Execution], None]


class GraphRecord(msgspec.Struct, eq=False):
    """Who runs the graph notes its end; the rest follows from its ledger."""

    run: GraphRun
    algorithm: str
    """What metrics and traces call it: see `routing.execution.Execution`."""
    label: Label
    """Without the model."""
    started_at: float
    """Monotonic seconds, as is `ended_at`."""
    tell: Tell | None = None
    """Told of what it came to."""
    ended_at: float | None = None
    """None while its steps run, and for good where they were cancelled or its last call went out
    to the Router."""
    answer: Answer | None = None
    failure: GraphFailure | None = None
    """What the client is told of."""
    nodes: "tuple[NodeView, ...]" = ()
    """All steps of the graph, as operators see them."""
    timeline: "Timeline | None" = None
    """Of its steps; None where somebody else watches them."""

    @property
    def told_label(self) -> Label:
        """Return what logs call the request, unless its last call went out to the Router."""
        label = self.label
        return (
            label if self.answer is None else Label(label.recipe, label.decision, self.answer.model)
        )

    def finish(self, outcome: Outcome) -> Execution:
        """Return what it came to, and tell of it; its request ends now.

        Args:
            outcome: of the request; the end of a graph that has not ended by itself.
        """
        trace, answer, failure = self.run.trace, self.answer, self.failure
        terminal, cause = outcome.terminal, outcome.cause
        if answer is not None:
            terminal, cause = Terminal.SUCCEEDED, None
        elif failure is not None:
            terminal, cause = failure.end
        ended = Ended(
            self.algorithm,
            terminal,
            cause,
            self.started_at,
            trio.current_time() if self.ended_at is None else self.ended_at,
            None if answer is None else answer.value,
            "" if failure is None else failure.code,
            None if trace is None else trace.trace_id.decode("latin-1"),
        )
        execution = execution_of(self.run.ledger, ended)
        if self.tell is not None:
            self.tell(execution)
        return execution
