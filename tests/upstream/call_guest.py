"""A client of the upstream layer, which does with its call what the gateway does."""

from collections.abc import Sequence
from math import inf

import attrs
import trio

from tests.upstream.call_scenarios import LARGE_BYTES, LISTENER_S, MODELS, REFUSAL, Ask, Reading
from vsr.deadline import Deadline
from vsr.errors import BudgetExhausted, DeadlineExceeded, UpstreamFailure
from vsr.headers import Headers
from vsr.resources.reliability import FallbackPolicy
from vsr.routing.effect import ImmediateResponse
from vsr.routing.outcome import Attempt
from vsr.routing.plan import Call, Label
from vsr.routing.ports import Journal, UpstreamResponse
from vsr.upstream.cluster_state import ClusterState
from vsr.upstream.clusters import Clusters

PAUSE_S = 0.2
"""Of one that reads slowly."""


@attrs.define(eq=False)
class Guest:
    """One client, its call and what became of it; it is its own budget and its alternatives."""

    number: int
    ask: Ask
    clusters: Clusters
    started_at: float
    life: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    journal: Journal = attrs.field(init=False)
    steps: int = attrs.field(default=0, init=False)
    """Of any task since it came."""
    calls: list[tuple[str, float]] = attrs.field(factory=list, init=False)
    """Models that were called and when each call began."""
    endings: list[str] = attrs.field(factory=list, init=False)
    """How the chain told of its end."""
    granted: int = attrs.field(default=0, init=False)
    """Further attempts that something may be spent on."""
    asked: int = attrs.field(default=0, init=False)
    total_at: float = attrs.field(default=inf, init=False)
    """End of the call that serves."""
    answered_at: float | None = attrs.field(default=None, init=False)
    """When there was an answer, or none any more, unless it had left before."""
    response: UpstreamResponse | None = attrs.field(default=None, init=False)
    attempts_at_answer: int = attrs.field(default=0, init=False)
    failure: UpstreamFailure | None = attrs.field(default=None, init=False)
    is_last_resort: bool = attrs.field(default=False, init=False)
    body: bytes = attrs.field(default=b"", init=False)
    has_whole_body: bool = attrs.field(default=False, init=False)
    ended_at: float | None = attrs.field(default=None, init=False)
    attempts_at_departure: int | None = attrs.field(default=None, init=False)
    """How many there were when it left before its time, if it did."""

    def __attrs_post_init__(self) -> None:
        self.journal = Journal([])

    @property
    def model(self) -> str:
        """Return the model that it asks for."""
        return MODELS[self.ask.model]

    @property
    def is_under_way(self) -> bool:
        """Return whether it waits for an answer."""
        return self.answered_at is None and self.ended_at is None

    @property
    def has_left(self) -> bool:
        """Return whether it went before it was served."""
        return self.life.cancelled_caught

    def state_of(self, model: str) -> ClusterState:
        """Return what is known of a model where it is served."""
        return self.clusters.cluster_for(model.encode()).state

    def attempts_of(self, model: str) -> list[Attempt]:
        """Return the attempts of its call to a model."""
        return [each for each in self.journal.attempts if each.cluster == model]

    def leave(self) -> None:
        """Go before it is served."""
        if self.attempts_at_departure is None:
            self.attempts_at_departure = len(self.journal.attempts)
            self.life.cancel()

    def call(self, model: str) -> Call:
        """Return its request as a call to a model."""
        self.calls.append((model, trio.current_time()))
        body = b"x" * LARGE_BYTES if self.ask.is_large else b"{}"
        headers = Headers([(b"x-call", b"%04d %b" % (self.number, model.encode()))])
        call = Call(b"POST", b"/v1/chat/completions", headers, body, model.encode(), model)
        call.spend, call.policy = self, self.ask.policy
        return call

    # What follows is the budget: see `routing.budget.Spend`.

    def admit_retry(self, *, is_known_zero: bool) -> bool:
        """Refuse the further attempt whose turn it is."""
        assert is_known_zero == self.journal.attempts[-1].is_known_zero
        self.asked += 1
        if self.asked - 1 == self.ask.refused_at:
            return False
        self.granted += 1
        return True

    # And the other models: see `routing.plan.Alternatives`.

    @property
    def policy(self) -> FallbackPolicy:
        """Return when and how far it goes on."""
        assert self.ask.chain is not None
        return self.ask.chain

    @property
    def models(self) -> Sequence[str]:
        """Return all models."""
        return MODELS

    @property
    def has_tool_result(self) -> bool:
        """Return whether it hands over what a tool did."""
        return self.ask.has_tool_result

    def is_refusal(self, body: bytes) -> bool:
        """Return whether an answer refuses."""
        return REFUSAL in body

    def prepare(self, model: str) -> Call:
        """Return the request as a call to another model."""
        if model in self.ask.unpreparable:
            raise BudgetExhausted
        return self.call(model)

    def last_resort(self, path: Sequence[str]) -> ImmediateResponse:
        """Note it."""
        del path
        self.endings.append("last resort")
        return ImmediateResponse(200)

    def give_back(self) -> None:
        """Note it."""
        self.endings.append("given back")

    def abandon(self) -> None:
        """Note it."""
        self.endings.append("abandoned")

    def commit(self, path: Sequence[str]) -> Label:
        """Note it."""
        assert list(path) == [model for model, _ in self.calls]
        self.endings.append("committed")
        return Label(model=path[-1])

    # And what the gateway does with a call.

    async def come(self) -> None:
        """Send the call and read the answer; whatever happens, `ended_at` is set."""
        try:
            with self.life:
                await trio.lowlevel.checkpoint()
                await (self._call() if self.ask.chain is None else self._call_along())
        except UpstreamFailure as failure:
            self._note_end(failure)
        finally:
            self.ended_at = trio.current_time()

    async def _call(self) -> None:
        call, now = self.call(self.model), trio.current_time()
        cluster = self.clusters.cluster_for(call.route_key)
        total_s, idle_s = cluster.timeouts(call, LISTENER_S)
        self.total_at = inf if total_s is None else now + total_s
        with trio.CancelScope(deadline=self.total_at) as work:
            response = await cluster.send(
                call, now=now, deadline=Deadline(self.total_at), idle_s=idle_s, journal=self.journal
            )
            await self._read_and_close(response)
        if work.cancelled_caught:
            self._note_end(DeadlineExceeded())

    async def _call_along(self) -> None:
        served = await self.clusters.send_along(
            self.call(self.model),
            self,
            listener_s=LISTENER_S,
            started_at=self.started_at,
            journal=self.journal,
        )
        if isinstance(served, ImmediateResponse):
            self.is_last_resort = True
            self.answered_at = trio.current_time()
            return
        self.total_at = served.total_at
        with trio.CancelScope(deadline=served.total_at) as work:
            await self._read_and_close(served.response)
        if work.cancelled_caught:
            self._note_end(DeadlineExceeded())

    def _note_end(self, failure: UpstreamFailure) -> None:
        self.failure = failure
        if self.answered_at is None:
            self.answered_at = trio.current_time()

    async def _read_and_close(self, response: UpstreamResponse) -> None:
        self.response, self.answered_at = response, trio.current_time()
        self.attempts_at_answer = len(self.journal.attempts)
        try:
            await self._read(response)
        finally:
            response.close()

    async def _read(self, response: UpstreamResponse) -> None:
        reading, pieces = self.ask.reading, [response.take()]
        if reading in {Reading.RELAYED, Reading.RELAYED_IN_PART}:

            def take(data: bytes) -> bool:
                pieces.append(data)
                return reading is Reading.RELAYED

            await response.relay(take)
        elif reading in {Reading.WHOLE, Reading.SLOWLY}:
            while piece := await response.receive():
                pieces.append(piece)
                await trio.sleep(PAUSE_S if reading is Reading.SLOWLY else 0)
        elif reading is Reading.ONE_PIECE:
            pieces.append(await response.receive())
        else:
            response.close()  # as the gateway does, where it answers in the backend's place
        self.body = b"".join(pieces)
        self.has_whole_body = response.is_complete
