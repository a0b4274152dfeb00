"""A decision's graph that is run while its client is told that it does."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from vsr.engine.graph_answer import STREAM, confidence_edits, run_graph
from vsr.errors import VsrError
from vsr.headers import HeaderLine, Headers
from vsr.resources.stream_comments import StreamComments
from vsr.routing.effect import Effect, apply_headers

if TYPE_CHECKING:
    from vsr.engine.session import RoutingSession
    from vsr.routing.plan import Plan


class GraphAhead(msgspec.Struct, frozen=True, eq=False):
    """Implements `routing.plan.Ahead` for one session."""

    session: "RoutingSession"
    comments: StreamComments
    lines: list[HeaderLine]
    finish: "Callable[[RoutingSession, Effect], Plan]"
    """Makes the plan of what the graph comes to."""
    note: Callable[[], None]
    """Keeps what is known of the graph's run, however it ends."""

    async def run(self, tell: Callable[[str], None]) -> "Plan":
        """Run the graph; see `routing.plan.Ahead`."""
        session = self.session
        try:
            try:
                effect = await run_graph(session, tell if self.comments.progress else None)
            except VsrError as error:
                effect = session.refuse(error)
            return self.finish(session, effect)
        finally:
            self.note()


def graph_ahead(
    session: "RoutingSession",
    finish: "Callable[[RoutingSession, Effect], Plan]",
    note: Callable[[], None],
) -> GraphAhead | None:
    """Return the graph that answers for a session, if its client is told while it runs."""
    target, chat = session.target, session.chat
    decided = None if target is None else target.graph
    if decided is None or chat is None or not chat.is_streaming:
        return None
    comments = decided.graph.stream
    if not comments.is_any:
        return None
    edits = [STREAM, *decided.edits, *confidence_edits(session)]
    if session.is_debugging:
        edits += session.debug_edits()
    headers = Headers()
    apply_headers(headers, Effect(edits=tuple(edits)))
    return GraphAhead(session, comments, headers.lines, finish, note)
