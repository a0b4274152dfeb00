"""What holds of whole calls: at every step of any task, whenever nothing moves, and at the end."""

from collections import Counter
from itertools import pairwise
from math import inf

import attrs

from tests.upstream.call_guest import Guest
from tests.upstream.call_scenarios import LISTENER_S, MODELS
from tests.upstream.call_world import Seen, World
from vsr.resources.reliability import CallPolicy, RetryEvidence, RetryPolicy
from vsr.routing.outcome import NOTHING_USED, Attempt, TransportFact
from vsr.upstream.cluster_state import ClusterState
from vsr.upstream.pool import Pool

_AT_ONCE_S = 1e-6
"""Sums of times differ by rounding."""
_NEVER_REPEATED = {"cancelled", "no_healthy_endpoint", "upstream_overflow"}


def broken_limit(state: ClusterState) -> str:
    """Return which limit of a cluster does not hold at this very step; empty if all do."""
    breaker, limits, slots = state.gate.breaker, state.gate.breaker.limits, state.slots
    if not 0 <= breaker.active <= min(limits.max_connections, limits.max_requests):
        return f"{breaker.active} attempts run"
    if breaker.waiting > limits.max_pending:
        return f"{breaker.waiting} attempts wait"
    if slots.budget is None and slots.taken > slots.limit:
        return f"{slots.taken} retries"
    if any(host.active < 0 for host in state.hosts):
        return "an endpoint has fewer attempts than none"
    if state.outliers is not None:
        out = sum(host.is_ejected for host in state.hosts)
        if 100 * out > state.outliers.settings.max_ejection_percent * len(state.hosts):
            return f"{out} of {len(state.hosts)} endpoints are ejected"
    return ""


def check_still(world: World) -> None:
    """Check what holds while nothing moves: everything taken is somebody's."""
    for state in world.states:
        _check_state(world, state)
    _check_connections(world)
    for guest in world.guests:
        _check_one_at_a_time(guest)


def check_end(world: World) -> None:
    """Check what holds once all are gone, and the story of each."""
    for state in world.states:
        breaker = state.gate.breaker
        assert (breaker.active, breaker.waiting, state.slots.taken) == (0, 0, 0)
        assert not state.gate._waiters
        assert [host.active for host in state.hosts] == [0] * len(state.hosts)
    assert sum(pool.in_use for pool in world.pools) == 0
    assert [each.leases for each in world.generations] == [0] * len(world.generations)
    for guest in world.guests:
        check_story(world, guest)
    _check_counts(world)


def check_story(world: World, guest: Guest) -> None:
    """Check what became of one client's call, from beginning to end."""
    for attempt in guest.journal.attempts:
        _check_attempt(attempt)
    _check_order(guest)
    for number, (model, began_at) in enumerate(guest.calls):
        _Part(guest, number, model, began_at).check()
    _check_bytes(world, guest)
    _check_ending(guest)
    _check_answer(world, guest)


def _current(guest: Guest) -> tuple[ClusterState, list[Attempt]]:
    """Return where the call of a guest is now that waits for an answer."""
    model, _ = guest.calls[-1]
    return guest.state_of(model), guest.attempts_of(model)


def _is_retrying(attempts: list[Attempt]) -> bool:
    """Return whether a call that has no answer yet is between a failure and the next outcome."""
    if not attempts:
        return False
    last = attempts[-1]
    if last.ended_at is not None:
        return True
    return len(attempts) > 1 and last.head_at is None


def _check_state(world: World, state: ClusterState) -> None:
    breaker = state.gate.breaker
    open_attempts = [
        attempt
        for guest in world.guests
        for attempt in guest.journal.attempts
        if attempt.ended_at is None and guest.state_of(attempt.cluster) is state
    ]
    assert breaker.active == len(open_attempts), "a slot is nobody's"
    by_endpoint = Counter(attempt.endpoint for attempt in open_attempts)
    for host in state.hosts:
        assert host.active == by_endpoint[host.endpoint.name]
    calls = [_current(guest) for guest in world.guests if guest.is_under_way and guest.calls]
    mine = [attempts for each, attempts in calls if each is state]
    retrying = [attempts for attempts in mine if _is_retrying(attempts)]
    assert state.slots.taken == len(retrying), "a retry slot is nobody's"
    first = sum(not attempts for attempts in mine)
    again = sum(attempts[-1].ended_at is not None for attempts in retrying)
    assert first <= breaker.waiting <= first + again
    assert not breaker.waiting or breaker.active >= breaker.limits.max_connections
    assert set(state.gate._waiters) == set(breaker._waiting)


def _check_connections(world: World) -> None:
    network = world.network
    network.dialled = [each for each in network.dialled if not each.is_closed]
    held = sum(pool.in_use + pool.idle for pool in world.pools)
    assert len(network.dialled) == held, "a connection is nobody's"
    open_attempts = [
        attempt
        for guest in world.guests
        for attempt in guest.journal.attempts
        if attempt.ended_at is None
    ]
    connected = sum(attempt.head_at is not None for attempt in open_attempts)
    assert connected <= sum(pool.in_use for pool in world.pools) <= len(open_attempts)
    wanted = {
        end.host_port
        for generation in world.generations
        if generation.on_unused is not None
        for cluster in generation.snapshot.clusters
        for end in cluster.endpoints
    }
    pools = [pool for pool in world.pools if isinstance(pool, Pool)]
    idle = {key for pool in pools for key, siblings in pool._idle.items() if siblings}
    assert idle <= wanted, "connections are kept that nobody wants"


def _check_one_at_a_time(guest: Guest) -> None:
    """Only the first call's answer is held while another model is asked."""
    open_attempts = [each for each in guest.journal.attempts if each.ended_at is None]
    assert len(open_attempts) <= (1 if guest.ask.chain is None else 2)
    for held in open_attempts[:-1]:
        assert held.cluster == guest.model
        assert held.head_at is not None
    if guest.answered_at is not None:
        assert len(open_attempts) <= 1


def _check_attempt(attempt: Attempt) -> None:
    """Check that an attempt has exactly one end, and says so in one way."""
    assert attempt.ended_at is not None
    assert (attempt.status is None) == (attempt.head_at is None)
    assert attempt.started_at <= attempt.ended_at
    assert attempt.head_at is None or attempt.started_at <= attempt.head_at <= attempt.ended_at
    assert attempt.status is not None or attempt.error
    assert (attempt.error == "deadline_exceeded") == bool(attempt.stage)
    has_head = attempt.fact >= TransportFact.HEAD_RECEIVED
    assert has_head or attempt.status is None
    assert (attempt.usage is NOTHING_USED) == attempt.is_known_zero, "unknown is not nothing"


def _check_order(guest: Guest) -> None:
    """Attempts follow each other, and those of one call stand together."""
    attempts = guest.journal.attempts
    order = [model for model, _ in guest.calls]
    places = [order.index(attempt.cluster) for attempt in attempts]
    assert places == sorted(places)
    assert len(order) == len(set(order)), "a model was called twice"
    for before, after in pairwise(attempts):
        assert before.started_at <= after.started_at


@attrs.frozen
class _Part:
    """One call of a chain, or the only one."""

    guest: Guest
    number: int
    model: str
    began_at: float

    @property
    def policy(self) -> CallPolicy:
        """Return what its attempts go by."""
        cluster = self.guest.clusters.cluster_for(self.model.encode()).cluster
        return self.guest.ask.policy or cluster.calls

    @property
    def total_at(self) -> float:
        """Return by when it must have an answer."""
        return self.began_at + (self.policy.total_limit_s(LISTENER_S) or inf)

    def check(self) -> None:
        """Check its attempts."""
        attempts = self.guest.attempts_of(self.model)
        policy = self.policy
        most = 1 + (policy.retry.count if policy.retry is not None else 0)
        assert len(attempts) <= most
        for attempt in attempts:
            assert self.began_at <= attempt.started_at < self.total_at, "too late to begin"
            self._check_limits(attempt)
        for before, after in pairwise(attempts):
            assert policy.retry is not None
            _check_repeated(policy.retry, before)
            assert before.ended_at is not None
            assert before.ended_at <= after.started_at
        waits = sum(
            after.started_at - (before.ended_at or 0) for before, after in pairwise(attempts)
        )
        assert waits <= self.total_at - self.began_at
        if self.number:
            self._check_fallback()

    def _check_limits(self, attempt: Attempt) -> None:
        """An attempt without a head ends with its limits, and with nothing but them."""
        guest, policy = self.guest, self.policy
        cluster = guest.clusters.cluster_for(self.model.encode()).cluster
        until = attempt.ended_at if attempt.head_at is None else attempt.head_at
        assert until is not None
        per_try_s = policy.per_try_s or inf
        if self.number and guest.ask.chain is not None:
            per_try_s = min(per_try_s, guest.ask.chain.per_attempt_timeout_s)
        assert until <= attempt.started_at + per_try_s + _AT_ONCE_S
        assert until <= self.total_at + _AT_ONCE_S
        if attempt.error == "upstream_connect_failure" or attempt.fact < TransportFact.CONNECTED:
            assert until <= attempt.started_at + cluster.connect_timeout_s + _AT_ONCE_S
        if policy.first_byte_s is not None and not guest.ask.is_large:
            longest_s = cluster.connect_timeout_s + policy.first_byte_s
            assert until <= attempt.started_at + longest_s + _AT_ONCE_S
        if attempt.stage == "total":
            assert attempt.ended_at is not None
            assert attempt.ended_at >= self.total_at - _AT_ONCE_S
        if attempt.status is None and attempt.stage == "per_try":
            assert until >= attempt.started_at + per_try_s - _AT_ONCE_S or self.number

    def _check_fallback(self) -> None:
        """A further model is asked only as far as the chain goes."""
        guest, chain = self.guest, self.guest.ask.chain
        assert chain is not None
        assert chain.enabled
        assert not guest.ask.has_tool_result
        assert self.number < chain.max_attempts
        assert self.began_at < guest.started_at + chain.total_timeout_s + _AT_ONCE_S
        before, _ = guest.calls[self.number - 1]
        cluster = guest.clusters.cluster_for(before.encode()).cluster
        policy = guest.ask.policy or cluster.calls
        attempts = guest.attempts_of(before)
        if policy.evidence is RetryEvidence.KNOWN_ZERO and attempts:
            assert attempts[-1].is_known_zero or attempts[-1].ended_at is None


def _check_repeated(policy: RetryPolicy, attempt: Attempt) -> None:
    """Check that an attempt was one of those that may be made again."""
    assert attempt.error not in _NEVER_REPEATED
    assert attempt.stage not in {"total", "idle"}
    status = attempt.status
    if policy.evidence is RetryEvidence.KNOWN_ZERO:
        assert attempt.is_known_zero
    if status is not None and status not in policy.status_codes:
        assert status >= 400
    assert attempt.fact < TransportFact.BODY_RECEIVED or status != 200 or 200 in policy.status_codes


def _check_bytes(world: World, guest: Guest) -> None:
    """Check that what backends saw are the attempts, and none of those known to be nothing."""
    left = list(guest.journal.attempts)
    for seen in world.seen:
        if seen.call != guest.number:
            continue
        found = next((each for each in left if _is_of(seen, each)), None)
        assert found is not None, "a backend was called for no attempt"
        left.remove(found)


def _is_of(seen: Seen, attempt: Attempt) -> bool:
    place = attempt.cluster, attempt.endpoint
    if attempt.is_known_zero or place != (seen.model, f"b{seen.backend}"):
        return False
    return attempt.started_at <= seen.at <= (inf if attempt.ended_at is None else attempt.ended_at)


def _check_ending(guest: Guest) -> None:
    """Check that a chain told of exactly one end, the right one, and spent what it might."""
    calls, endings = len(guest.calls), guest.endings
    assert len(guest.journal.attempts) <= calls + guest.granted
    if guest.ask.chain is None or guest.answered_at is None:
        assert endings in ([], ["abandoned"])
        assert not endings or guest.has_left
        assert calls <= 1 or endings, "models were called and nothing was settled"
        return
    if guest.is_last_resort:
        assert endings == ["last resort"]
    elif guest.response is None:
        assert endings == ["given back"]
    elif guest.response.attempt.cluster != guest.model:
        assert endings == ["committed"]
        assert guest.response.attempt.cluster == guest.calls[-1][0]
    else:
        is_success = guest.response.status in range(200, 300) and calls == 1
        assert endings == [] if is_success and not endings else endings == ["given back"]


def _check_answer(world: World, guest: Guest) -> None:
    """Check that an answer is its own, whole if it seems so, and in time."""
    if guest.attempts_at_departure is not None:
        assert guest.attempts_at_departure == len(guest.journal.attempts), "begun for nobody"
    if guest.answered_at is None:
        assert guest.has_left
        return
    if guest.response is None:
        _check_failure(guest)
        return
    attempt = guest.response.attempt
    assert guest.attempts_at_answer == len(guest.journal.attempts), "repeated after an answer"
    assert guest.answered_at <= guest.total_at + _AT_ONCE_S
    assert guest.ended_at is not None
    assert guest.ended_at <= guest.total_at + _AT_ONCE_S
    if guest.has_whole_body and not guest.failure and not guest.has_left:
        mine = (guest.number, attempt.cluster)
        [*_, play] = [seen.play for seen in world.seen if (seen.call, seen.model) == mine]
        assert play.body is not None, "an answer that is not whole seems to be"
        assert guest.body == play.body.replace(b"@@@@", b"%04d" % guest.number)


def _check_failure(guest: Guest) -> None:
    """Check that a failure is told in time, and that it is not the end of a mere wait."""
    assert guest.failure is not None or guest.is_last_resort
    attempts = guest.journal.attempts
    state = guest.state_of(guest.calls[-1][0])
    may_queue = state.gate.breaker.limits.max_connections < len(MODELS) * 100
    if guest.ask.chain is None and guest.failure is not None and not may_queue:
        assert attempts, "no attempt although nothing was in the way"
        if guest.failure.code == "deadline_exceeded":
            assert attempts[-1].error == guest.failure.code, "an end in the middle of a back-off"


def _check_counts(world: World) -> None:
    """Check that every attempt was counted once, with one end."""
    made: Counter[tuple[ClusterState, str]] = Counter()
    answered: Counter[tuple[ClusterState, str]] = Counter()
    for guest in world.guests:
        for attempt in guest.journal.attempts:
            key = guest.state_of(attempt.cluster), attempt.endpoint
            made[key] += 1
            answered[key] += attempt.status is not None
    for state in world.states:
        for host in state.hosts:
            key, stats = (state, host.endpoint.name), host.stats
            assert sum(stats.answers) == answered[key]
            assert sum(stats.failures.values()) == made[key] - answered[key]
            ends = stats.complete + stats.closed + sum(stats.broken.values())
            assert ends == answered[key], "an answer has not one end"
