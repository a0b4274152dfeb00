"""The way from a session to its decision's graph, and what is told of one that goes on."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from vsr.graph.run import GraphRun, TailCall
from vsr.routing.effect import Effect, HeaderEdit

if TYPE_CHECKING:
    from vsr.engine.session import RoutingSession

STREAM = HeaderEdit(b"content-type", b"text/event-stream")


async def run_graph(session: "RoutingSession", tell: Callable[[str], None] | None = None) -> Effect:
    """Run the graph of the session's decision; see `graph_phase.answer_by_graph`."""
    # Loaded where there are graphs: then it was, when they were compiled.
    from vsr.engine.graph_phase import answer_by_graph  # noqa: PLC0415

    return await answer_by_graph(session, tell)


def confidence_edits(session: "RoutingSession") -> list[HeaderEdit]:
    """Return what tells how sure the decision is, where it says so."""
    verdict = session.verdict
    if verdict is None or verdict.decision is None or verdict.confidence < 0:
        return []
    return [HeaderEdit(b"x-vsr-selected-confidence", b"%.4f" % verdict.confidence)]


def tail_edits(run: GraphRun | None, tail: TailCall | None) -> list[HeaderEdit]:
    """Return the diagnostic headers of a run whose last call was handed out; none of others."""
    if run is None or tail is None or tail.hop is None:
        return []
    models = [entry.model for entry in run.ledger.entries]
    return [
        HeaderEdit(b"x-vsr-graph-models-used", ",".join(models).encode()),
        HeaderEdit(b"x-vsr-graph-calls", b"%d" % len(models)),
    ]
