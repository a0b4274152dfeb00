"""The routing core as its adapters see it."""

from collections.abc import Mapping
from typing import Protocol

from vsr.headers import Headers
from vsr.routing.plan import Answer, Plan
from vsr.routing.ports import Journal, Tasks
from vsr.routing.request import Request
from vsr.routing.session import BodyMode, Session


class Engine(Protocol):
    """Routes requests under one configuration; serves any number at once."""

    may_wait: bool
    """Whether `plan` may wait for anything, so that it needs a deadline."""

    def open(self, request: Request, tasks: Tasks) -> Session:
        """Open a session; the ext_proc adapter drives it by callbacks."""
        ...

    def passes_body(self, method: bytes, target: bytes, fields: Mapping[bytes, bytes]) -> bool:
        """Return whether a request's body goes to the backend unread, and is not asked for here.

        Args:
            method: of the request.
            target: path and query.
            fields: one value of each header of the request.
        """
        ...

    async def plan(self, request: Request, tasks: Tasks, journal: Journal) -> Plan:
        """Run the request phases and the request's graph.

        Args:
            request: its body is whole, or empty where it is passed on unread.
            tasks: the request's nursery; graph branches live and die in it.
            journal: gets the plan before anything is waited for, and, whatever ends the planning,
                one entry per attempt that the graph has made by itself. `Plan.finish` must follow
                also where nothing is returned.

        Returns:
            An immediate answer, or the tail call, whose ledger entry is open until `Plan.finish`.

        Raises:
            RoutingFailed: an effect could not be applied.
        """
        ...

    def respond(self, plan: Plan, status: int, headers: Headers) -> BodyMode:
        """Run the response-header phase on `headers`, in place; return what the body needs.

        Raises:
            RoutingFailed: the effect could not be applied.
        """
        ...

    async def respond_whole(self, plan: Plan, answer: Answer) -> Answer:
        """Run the response-body phase on a whole answer, for mode WHOLE.

        Raises:
            RoutingFailed: the effect could not be applied.
        """
        ...
