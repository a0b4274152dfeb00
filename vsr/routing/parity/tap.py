"""Listens in on the sessions of an engine that drives them itself."""

import copy

import attrs

from vsr.headers import Headers
from vsr.routing.effect import Effect
from vsr.routing.engine import Engine
from vsr.routing.evidence import Evidence
from vsr.routing.execution import Execution
from vsr.routing.parity.record import Phase, Record
from vsr.routing.ports import Tasks
from vsr.routing.request import Request
from vsr.routing.session import Session


class TappedSession:
    """A session that notes the effect of every phase; all else is the session's own."""

    def __init__(self, session: Session, request: Request, record: Record) -> None:
        self._session = session
        self._request = request
        self._record = record

    def __getattr__(self, name: str) -> object:
        return getattr(self._session, name)

    def request_headers(self) -> Effect:
        """Note what the session answers."""
        return self._record.note(Phase.REQUEST_HEADERS, self._session.request_headers())

    async def request_body(self) -> Effect:
        """Note what the session answers."""
        effect = await self._session.request_body()
        return self._record.note(Phase.REQUEST_BODY, effect, self._request.body)

    def decide(self) -> Effect:
        """Note what the session answers."""
        return self._record.note(Phase.REQUEST_BODY, self._session.decide(), self._request.body)

    def response_headers(self, status: int, headers: Headers) -> Effect:
        """Note what the session answers."""
        effect = self._session.response_headers(status, headers)
        return self._record.note(Phase.RESPONSE_HEADERS, effect)

    async def response_body(self, data: bytes, *, is_last: bool) -> Effect:
        """Note what the session answers."""
        effect = await self._session.response_body(data, is_last=is_last)
        return self._record.note(Phase.RESPONSE_BODY, effect, data)

    @property
    def wants_response_body(self) -> bool:
        """Return what the session says."""
        return self._session.wants_response_body

    def evidence(self) -> Evidence:
        """Return the session's."""
        return self._session.evidence()

    @property
    def execution(self) -> Execution | None:
        """Return the session's."""
        return self._session.execution

    def close(self) -> None:
        """Close the session."""
        self._session.close()


@attrs.define
class Tap:
    """An engine like the one given, whose sessions write into `record`."""

    engine: Engine
    record: Record
    session: TappedSession | None = attrs.field(default=None, init=False)
    """The one that was opened, if any."""

    def __attrs_post_init__(self) -> None:
        original = self.engine

        def open_tapped(request: Request, tasks: Tasks) -> TappedSession:
            self.session = TappedSession(original.open(request, tasks), request, self.record)
            return self.session

        # Engines open their sessions by their own `open`; a copy with another one leaves the
        # engine, and every other user of it, as it was.
        self.engine = copy.copy(original)
        vars(self.engine)["open"] = open_tapped
