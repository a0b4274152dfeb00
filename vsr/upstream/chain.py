"""One request's way from model to model: the call, and where it goes when it fails."""

from collections.abc import Callable, Sequence
from math import inf

import attrs
import trio

from vsr.deadline import Deadline
from vsr.errors import DeadlineExceeded, UpstreamFailure, UpstreamProtocolError, VsrError
from vsr.resources.reliability import FallbackTrigger
from vsr.routing.effect import ImmediateResponse
from vsr.routing.outcome import TransportFact
from vsr.routing.plan import Alternatives, Call
from vsr.routing.ports import Journal, Served
from vsr.upstream.candidates import CandidateBreakers
from vsr.upstream.cluster import RuntimeCluster
from vsr.upstream.outcomes import answer_of, kind_of
from vsr.upstream.policy.candidate_breaker import CandidateState, has_failed
from vsr.upstream.policy.fallback import Candidate, FailedCall, FallbackChain, Stop
from vsr.upstream.policy.fallback_class import classify
from vsr.upstream.policy.outcome import AttemptOutcome
from vsr.upstream.response import Response

_SUCCESS = range(200, 300)
_TOTAL = "total"
_REFUSAL_BYTES = 262_144
"""Longer answers are not looked at for refusals, nor are streams, which begin before they end."""


@attrs.define(eq=False)
class _Result:
    """How one call of the chain ended, behind its last retry."""

    call: Call
    cluster: RuntimeCluster
    total_at: float
    response: Response | None
    failure: UpstreamFailure | None
    outcome: AttemptOutcome
    is_refusal: bool = False
    ended_at: float = inf
    """When it was known how it ended."""

    @property
    def has_succeeded(self) -> bool:
        """Return whether a backend answered 2xx, and not with a refusal."""
        answered = self.response is not None and self.response.status in _SUCCESS
        return answered and not self.is_refusal

    def close(self) -> None:
        """Read no more of it."""
        if self.response is not None:
            self.response.close()


@attrs.define(eq=False)
class Chain:
    """Sends a call, and those that follow when it fails.

    The first failure is held, its body unread and its slot taken, until something better is there.

    Source: the reference, "Cross-model fallback"; the order of its steps is kept.
    """

    cluster_for: Callable[[bytes], RuntimeCluster]
    breakers: CandidateBreakers
    alternatives: Alternatives
    listener_s: float | None
    """Default of total and idle timeouts."""
    started_at: float
    """When the request's processing began."""
    journal: Journal

    async def run(self, call: Call) -> Served | ImmediateResponse:
        """Return the answer to pass on.

        Raises:
            UpstreamFailure: of the first call, if nothing was better.
        """
        first = await self._send(call, inf)
        if first.has_succeeded and first.response is not None:
            return Served(first.response, first.total_at)
        try:
            return await self._go_on(first)
        except UpstreamFailure:
            first.close()  # the failure is its own, as a rule: there was nothing better
            raise
        except BaseException:
            first.close()
            self.alternatives.abandon()
            raise

    async def _go_on(self, first: _Result) -> Served | ImmediateResponse:
        alternatives = self.alternatives
        chain = FallbackChain(
            alternatives.policy,
            first.call.model,
            alternatives.models,
            self.started_at,
            self._may_try,
        )
        failed = first
        while True:
            about = self._about(failed)
            step = chain.next_candidate(about, now=trio.current_time())
            stats = failed.cluster.state.stats
            if isinstance(step, Stop):
                stats.fallback_stops[step.reason] += 1
                return self._given_up(first, step, chain.path())
            # A call whose client has left goes on to nobody.
            await trio.lowlevel.checkpoint_if_cancelled()
            try:
                call = alternatives.prepare(step.model)
            except VsrError:
                chain.skip(step.model)
                continue
            stats.fallbacks[about.failure.name, step.model] += 1
            result = await self._send_candidate(call, step)
            if result.has_succeeded and result.response is not None:
                first.close()
                label = alternatives.commit(chain.path())
                return Served(result.response, result.total_at, label)
            result.close()
            failed = result

    async def _send_candidate(self, call: Call, step: Candidate) -> _Result:
        self._breaker(step.model).begin(trio.current_time())
        return await self._send(call, step.per_try_s)

    async def _send(self, call: Call, per_try_s: float) -> _Result:
        """Make one call with all its retries, under its own total timeout."""
        now = trio.current_time()
        cluster = self.cluster_for(call.route_key)
        total_s, idle_s = cluster.timeouts(call, self.listener_s)
        total_at = inf if total_s is None else now + total_s
        policy = call.policy or cluster.cluster.calls
        if per_try_s < (policy.per_try_s or inf):
            call.policy = attrs.evolve(policy, per_try_s=per_try_s)
        begun = len(self.journal.attempts)
        response: Response | None = None
        failure: UpstreamFailure | None = None
        try:
            with trio.CancelScope(deadline=total_at) as limit:
                response = await cluster.send(
                    call,
                    now=now,
                    deadline=Deadline(total_at),
                    idle_s=idle_s,
                    journal=self.journal,
                )
            if limit.cancelled_caught:
                failure = DeadlineExceeded(_TOTAL).after(len(self.journal.attempts) - begun)
        except UpstreamFailure as error:
            failure = error
        outcome = self._outcome(response, failure, begun)
        result = _Result(call, cluster, total_at, response, failure, outcome)
        if response is not None and self._may_refuse(response, outcome):
            await self._look_for_refusal(result, response)
        self._record(call.model, result.outcome)
        result.ended_at = trio.current_time()
        return result

    def _may_refuse(self, response: Response, outcome: AttemptOutcome) -> bool:
        """Return whether it matters if an answer refuses, and can be known before it is sent."""
        policy = self.alternatives.policy
        if FallbackTrigger.CONTENT_REFUSAL not in policy.triggers:
            return False
        if b"event-stream" in response.headers.get(b"content-type").lower():
            return False
        # A failure that goes on anyway is held as it is: its body may be long in coming.
        return not classify(policy, outcome).is_retryable

    async def _look_for_refusal(self, result: _Result, response: Response) -> None:
        """Note whether a whole answer refuses; one that breaks meanwhile has failed."""
        try:
            result.is_refusal = await self._refuses(response, result.total_at)
        except UpstreamFailure as error:
            response.close()
            result.response, result.failure = None, error
            result.outcome = _failed(error, response.attempt.fact)
        except BaseException:
            response.close()
            raise

    async def _refuses(self, response: Response, total_at: float) -> bool:
        with trio.CancelScope(deadline=total_at):
            body = await response.preview(_REFUSAL_BYTES)
            return len(body) <= _REFUSAL_BYTES and self.alternatives.is_refusal(body)
        raise DeadlineExceeded(_TOTAL)

    def _outcome(
        self, response: Response | None, failure: UpstreamFailure | None, begun: int
    ) -> AttemptOutcome:
        if response is not None:
            return answer_of(response.attempt, response.headers)
        assert failure is not None  # noqa: S101  # one of the two
        attempts = self.journal.attempts[begun:]
        return _failed(failure, attempts[-1].fact if attempts else TransportFact.NOT_CONNECTED)

    def _about(self, failed: _Result) -> FailedCall:
        policy = failed.call.policy or failed.cluster.cluster.calls
        return FailedCall(
            failure=classify(
                self.alternatives.policy, failed.outcome, is_refusal=failed.is_refusal
            ),
            is_known_zero=failed.outcome.is_known_zero,
            evidence=policy.evidence,
            is_committed=False,
            has_tool_result=self.alternatives.has_tool_result,
            is_replayable=len(failed.call.body) <= failed.cluster.cluster.replay_bytes,
            is_context_over=False,
            deadline_at=inf,
        )

    def _given_up(
        self, first: _Result, stop: Stop, path: Sequence[str]
    ) -> Served | ImmediateResponse:
        """Return the answer when nothing is left to try: the last resort, or the first failure."""
        if stop.last_resort is not None:
            first.close()
            return self.alternatives.last_resort(path)
        self.alternatives.give_back()
        if first.failure is not None:
            raise first.failure
        assert first.response is not None  # noqa: S101  # one of the two
        # The rest of its body has the time that was left of it when it was laid aside.
        held_s = trio.current_time() - first.ended_at
        return Served(first.response, first.total_at + held_s)

    def _may_try(self, model: str, now: float) -> bool:
        return self._breaker(model).may_try(now)

    def _record(self, model: str, outcome: AttemptOutcome) -> None:
        failed = has_failed(outcome, self.alternatives.policy.retryable_status_codes)
        if failed is not None:
            self._breaker(model).record(failed=failed, now=trio.current_time())

    def _breaker(self, model: str) -> CandidateState:
        return self.breakers.of(model, self.alternatives.policy.breaker)


def _failed(failure: UpstreamFailure, fact: TransportFact) -> AttemptOutcome:
    """Return the outcome of a call that ended with `failure`."""
    if isinstance(failure, UpstreamProtocolError):
        # Its local reply is a 502, which no kind of failure stands for.
        return AttemptOutcome(status=failure.status, fact=fact)
    return AttemptOutcome(failure=kind_of(failure), fact=fact)
