"""One cluster at run time: who may call it now, where a call goes, what its end means."""

import random
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from math import inf

import attrs
import trio

from vsr.deadline import Deadline
from vsr.errors import (
    STOP_RETRYING,
    DeadlineExceeded,
    EgressRefused,
    NoHealthyEndpoint,
    UpstreamFailure,
    UpstreamOverflow,
)
from vsr.resources.cluster import Cluster
from vsr.resources.reliability import CallPolicy, LbPolicy
from vsr.routing.outcome import NOTHING_USED, Attempt, TransportFact
from vsr.routing.plan import Call
from vsr.routing.ports import Journal
from vsr.upstream.attempt import Limits, WireRequest, traced, try_host
from vsr.upstream.cluster_state import ClusterState
from vsr.upstream.mix import Fitting, Mix, NoShortcut
from vsr.upstream.outcomes import answer_of, failure_of, kind_of
from vsr.upstream.policy.balancer import note_latency
from vsr.upstream.policy.breaker import Breaker, BreakerLimit
from vsr.upstream.policy.host import Host
from vsr.upstream.policy.outcome import AttemptOutcome, FailureKind, TimeoutStage
from vsr.upstream.policy.outlier import observed_status
from vsr.upstream.policy.retry import RetryState
from vsr.upstream.pool import PooledConnection
from vsr.upstream.response import Response
from vsr.upstream.wire import Wire

_FIRST_FAILURE = 400
_FAILURE_LATENCY_S = 1.0
"""What a failed attempt counts as at least, where latencies choose: failing fast is no merit."""


@attrs.define(eq=False)
class RuntimeCluster:
    """Implements `routing.ports.UpstreamCluster`; every change is one synchronous step."""

    cluster: Cluster
    wire: Wire
    state: ClusterState
    rng: random.Random
    now: Callable[[], float] = attrs.field(default=trio.current_time, init=False)
    """Returns monotonic seconds; once it serves, without a look-up of the running loop."""
    mix: Mix | None = None
    """What differs between its endpoints; None: nothing, and `wire` is for all."""
    _ejects: bool = attrs.field(init=False)
    warmed: trio.Event = attrs.field(factory=trio.Event, init=False)
    """Set once every endpoint that is checked has been checked."""
    _measures: bool = attrs.field(init=False)
    _breaker: Breaker = attrs.field(init=False)
    """The gate's, for calls that need not wait."""
    _shortcut: Breaker | NoShortcut = attrs.field(init=False)
    """The same, where a call may be sent the short way."""
    _timeouts: dict[float | None, tuple[float | None, float | None]] = attrs.field(
        factory=dict, init=False
    )

    def __attrs_post_init__(self) -> None:
        self._measures = self.cluster.lb_policy is LbPolicy.P2C_EWMA
        self._breaker = self.state.gate.breaker
        self._shortcut = self._breaker if self.mix is None else NoShortcut()
        self._ejects = self.state.outliers is not None
        if self.state.is_warm:
            self.warmed.set()

    @property
    def replay_bytes(self) -> int:
        """Return up to which size a body is kept to be sent again."""
        return self.cluster.replay_bytes

    @property
    def needs_upkeep(self) -> bool:
        """Return whether something must run beside its calls."""
        return self.state.outliers is not None or self.cluster.health_check is not None

    def timeouts(self, call: Call, listener_s: float | None) -> tuple[float | None, float | None]:
        """Return a call's total and idle timeout under a listener's default; None is no limit."""
        policy = call.policy
        if policy is not None:
            return policy.total_limit_s(listener_s), policy.idle_limit_s(listener_s)
        found = self._timeouts.get(listener_s)
        if found is None:
            policy = self.cluster.calls
            found = self._timeouts[listener_s] = (
                policy.total_limit_s(listener_s),
                policy.idle_limit_s(listener_s),
            )
        return found

    def send(
        self,
        call: Call,
        *,
        now: float,
        deadline: Deadline,
        idle_s: float | None,
        journal: Journal,
    ) -> Coroutine[None, None, Response]:
        """Send `call` as its policy allows; see `routing.ports.UpstreamCluster`."""
        self.state.has_traffic = True
        policy = call.policy or self.cluster.calls
        request = self.wire.request(call)
        if policy.is_plain and self._shortcut.try_admit():
            # The ordinary call pays for nothing that it does not use, not even for calls of ours.
            host = self.state.rotation.pick(now) or self.choose((), now)
            host.active += 1
            endpoint = host.endpoint
            attempt = Attempt(self.cluster.name, endpoint.name, endpoint.address, now)
            journal.attempts.append(attempt)
            if journal.trace is not None:
                journal.trace.begin_call(self.cluster.name, now)
                request = traced(request, journal.trace, attempt)
            return try_host(request, self, host, attempt, Limits(deadline.at), idle_s=idle_s)
        if journal.trace is not None:
            journal.trace.begin_call(self.cluster.name, now)
        return _Sending(self, call, request, policy, deadline.at, idle_s, journal).run()

    def choose(self, tried: Sequence[Host], now: float) -> Host:
        """Return the host of the next attempt, which has its slot already.

        Raises:
            NoHealthyEndpoint: there is none; the slot is given back.
        """
        rotation = self.state.rotation
        host = rotation.pick_other(tried, now) if tried else rotation.pick(now)
        if host is None:
            self.state.stats.unplaced[FailureKind.NO_HEALTHY_UPSTREAM] += 1
            self.state.gate.leave()
            raise NoHealthyEndpoint
        return host

    def begin(self, host: Host, now: float, journal: Journal) -> Attempt:
        """Enter an attempt that is about to be made."""
        host.active += 1
        endpoint = host.endpoint
        attempt = Attempt(self.cluster.name, endpoint.name, endpoint.address, now)
        journal.attempts.append(attempt)
        return attempt

    # What follows is what an attempt tells: see `attempt.AttemptOwner`.

    def head_arrived(self, host: Host, attempt: Attempt, status: int) -> None:
        """Take in a response head, and say so in `attempt`."""
        now = attempt.head_at = self.now()
        attempt.fact, attempt.status = TransportFact.HEAD_RECEIVED, status
        seconds = now - attempt.started_at
        host.stats.answered(status, seconds)
        if self._measures:
            # From where the client had sent it all: a slow client does not make a slow endpoint.
            note_latency(host, seconds if attempt.asked_at is None else now - attempt.asked_at, now)
        if self._ejects:
            self._observe(host, status, now)

    def attempt_failed(self, host: Host, attempt: Attempt, pooled: PooledConnection | None) -> None:
        """Take in the end of an attempt that got no response head, and drop its connection."""
        if pooled is not None:
            host.pool.drop(pooled)
        elif attempt.error == EgressRefused.code:
            host.stats.egress_refusals += 1
        now = attempt.ended_at or attempt.started_at
        outcome = failure_of(attempt)
        if outcome.is_known_zero:
            attempt.usage = NOTHING_USED
        host.stats.failed(outcome.failure or FailureKind.RESET, now - attempt.started_at)
        if self._measures and outcome.failure is not FailureKind.CANCELLED:
            asked_at = attempt.started_at if attempt.asked_at is None else attempt.asked_at
            note_latency(host, max(now - asked_at, _FAILURE_LATENCY_S), now)
        status = observed_status(outcome)
        if status is not None:
            self._observe(host, status, now)
        self.attempt_ended(host)

    def body_failed(self, host: Host, attempt: Attempt) -> None:
        """Take in that a response broke off; `attempt_ended` follows."""
        outcome = failure_of(attempt)
        host.stats.broken[outcome.failure or FailureKind.RESET] += 1
        status = observed_status(outcome)
        if status is not None:
            self._observe(host, status, trio.current_time())

    def body_ended(self, host: Host, *, is_complete: bool) -> None:
        """Take in that nothing more is read of a response."""
        if is_complete:
            host.stats.complete += 1
        else:
            host.stats.closed += 1
        host.active -= 1
        ticket = self._breaker.release()
        if ticket is not None:
            self.state.gate.wake(ticket)

    def attempt_ended(self, host: Host) -> None:
        """Give an attempt's slot back."""
        host.active -= 1
        ticket = self._breaker.release()
        if ticket is not None:
            self.state.gate.wake(ticket)

    def _observe(self, host: Host, status: int, now: float) -> None:
        outliers = self.state.outliers
        if outliers is not None and outliers.record(host, status, now):
            self.state.rotation_changed()


def _start_per_try(scope: trio.CancelScope, limits: Limits, per_try_s: float, now: float) -> None:
    """Let an attempt's time begin, since all of its body is there."""
    scope.deadline = limits.per_try_at = now + per_try_s


@attrs.define(eq=False)
class _Sending:
    """One call on its way through its attempts."""

    cluster: RuntimeCluster
    call: Call
    request: WireRequest
    policy: CallPolicy
    total_at: float
    idle_s: float | None
    journal: Journal
    tried: list[Host] = attrs.field(factory=list, init=False)
    _fitting: Fitting | None = attrs.field(default=None, init=False)
    """What each endpoint is asked, where that differs; None: all are asked `request`."""
    _holds_retry_slot: bool = attrs.field(default=False, init=False)
    _has_retried: bool = attrs.field(default=False, init=False)
    """Whether an attempt was made, or refused by the breaker, behind another one."""

    def __attrs_post_init__(self) -> None:
        if self.cluster.mix is not None:
            self._fitting = Fitting(self.cluster.mix, self.call)

    async def run(self) -> Response:
        """Make attempts until one is final; see `routing.ports.UpstreamCluster.send`."""
        retries = self._retries()
        try:
            while True:
                response: Response | None = None
                failure: UpstreamFailure | None = None
                try:
                    response = await self._attempt()
                    outcome = answer_of(response.attempt, response.headers)
                except UpstreamFailure as error:
                    failure = error
                    outcome = self._failed(error)
                finally:
                    self._give_retry_slot_back()
                now = trio.current_time()
                wait_s = None
                if retries is not None and not self._has_begun_source():
                    wait_s = retries.next_wait(outcome, now=now, deadline_at=self.total_at)
                if wait_s is None or not self._may_retry(outcome, response):
                    return self._ended(response, failure)
                self._has_retried = True
                if response is not None:
                    response.close()
                # Without a wait as well: a call whose client has left is not tried again.
                await trio.sleep(0 if self._may_go_elsewhere(outcome) else wait_s)
        finally:
            self._give_retry_slot_back()

    def _has_begun_source(self) -> bool:
        """Return whether some of a body that is not kept is gone."""
        source = self.call.source
        return source is not None and source.is_begun

    def _retries(self) -> RetryState | None:
        """Return the call's retries; None if it has none, or its body is too large to be kept."""
        policy, cluster = self.policy.retry, self.cluster
        if policy is None or policy.count == 0:
            return None
        if len(self.request.body) > cluster.cluster.replay_bytes:
            return None
        return RetryState(policy, cluster.rng)

    async def _attempt(self) -> Response:
        """Make one attempt, from its slot to its response head.

        Raises:
            UpstreamFailure: no response head came, or the attempt was not even begun.
        """
        cluster, policy = self.cluster, self.policy
        try:
            await cluster.state.gate.enter()
        except UpstreamOverflow:
            cluster.state.note_overflow()
            raise
        now = trio.current_time()  # a slot may have been long in coming
        host = cluster.choose(self.tried, now)
        request = self.request
        if self._fitting is not None:
            host, request = self._fitted(self._fitting, host)
        self.tried.append(host)
        attempt = cluster.begin(host, now, self.journal)
        per_try_s = policy.per_try_s
        per_try_at = inf if per_try_s is None else now + per_try_s
        limits = Limits(self.total_at, per_try_at, policy.first_byte_s)
        if request.source is not None:
            limits.per_try_at = inf  # until the client has sent it
        if self.journal.trace is not None:
            request = traced(request, self.journal.trace, attempt)
        with trio.CancelScope(deadline=limits.per_try_at) as scope:
            if request.source is not None and per_try_s is not None:
                request.source.on_end(partial(_start_per_try, scope, limits, per_try_s))
            return await try_host(request, cluster, host, attempt, limits, idle_s=self.idle_s)
        raise DeadlineExceeded(TimeoutStage.PER_TRY)

    def _fitted(self, fitting: Fitting, chosen: Host) -> tuple[Host, WireRequest]:
        """Return whom the attempt goes to, and what is asked.

        Whatever fails here, the attempt's slot is given back.
        """
        cluster = self.cluster
        try:
            host = fitting.fit(chosen, cluster.state.hosts, self.tried, cluster.rng)
            request = fitting.request_for(host)
        except BaseException as error:
            if isinstance(error, NoHealthyEndpoint):
                cluster.state.stats.unplaced[FailureKind.NO_HEALTHY_UPSTREAM] += 1
            cluster.state.gate.leave()
            raise
        return host, request

    def _failed(self, error: UpstreamFailure) -> AttemptOutcome:
        """Return the outcome of an attempt that raised `error`."""
        attempts = self.journal.attempts
        if attempts and attempts[-1].error == error.code:
            return failure_of(attempts[-1])
        return AttemptOutcome(failure=kind_of(error))

    def _may_retry(self, outcome: AttemptOutcome, response: Response | None) -> bool:
        """Ask everybody who can forbid a further attempt, and take a retry slot.

        Whoever is asked may fail; the response is closed then.
        """
        state, spend = self.cluster.state, self.call.spend
        breaker = state.gate.breaker
        if not state.slots.try_acquire(running=breaker.active + breaker.waiting):
            state.stats.overflows[BreakerLimit.MAX_RETRIES] += 1
            return False
        self._holds_retry_slot = True
        try:
            if spend is not None and not spend.admit_retry(is_known_zero=outcome.is_known_zero):
                return False
        except BaseException:
            if response is not None:
                response.close()
            raise
        state.stats.retries[outcome.label] += 1
        return True

    def _may_go_elsewhere(self, outcome: AttemptOutcome) -> bool:
        """Return whether a retry need not wait.

        A wait spares an endpoint that has too much to do. After an attempt that surely did nothing
        it would only delay the call, and hold one of few retry slots, while another endpoint is
        free. Ours: Envoy waits.
        """
        hosts = self.cluster.state.hosts
        return outcome.is_known_zero and any(
            host.is_rotating and host not in self.tried for host in hosts
        )

    def _give_retry_slot_back(self) -> None:
        if self._holds_retry_slot:
            self._holds_retry_slot = False
            self.cluster.state.slots.release()

    def _ended(self, response: Response | None, failure: UpstreamFailure | None) -> Response:
        """Return the last response, or raise the last failure."""
        if response is not None:
            if self._fitting is not None:
                self._fitting.answered_by(self.tried[-1])
            if self._has_retried and response.status >= _FIRST_FAILURE:
                response.headers.set(*STOP_RETRYING)
            return response
        assert failure is not None  # noqa: S101  # one of the two
        raise failure.after(1 + self._has_retried)
