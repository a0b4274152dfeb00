"""What differs between the endpoints of one cluster: how they are called and connected to."""

import random
from collections.abc import Iterable, Mapping, Sequence

import attrs

from vsr.errors import VsrError
from vsr.resources.cluster import Cluster, Endpoint
from vsr.resources.profile import views
from vsr.resources.snapshot import Snapshot
from vsr.routing.outcome import Attempt
from vsr.routing.plan import Call
from vsr.upstream.attempt import WireRequest
from vsr.upstream.dialer import SecurityDomain
from vsr.upstream.policy.host import Host
from vsr.upstream.pool import Pool, PooledConnection
from vsr.upstream.response import AttemptOwner
from vsr.upstream.wire import Wire


def domains_of(cluster: Cluster) -> Mapping[Endpoint, SecurityDomain]:
    """Return what connections to each endpoint of `cluster` belong to."""
    return {each: SecurityDomain.of_endpoint(cluster, each) for each in cluster.endpoints}


def is_mixed(cluster: Cluster) -> bool:
    """Return whether endpoints of `cluster` differ in more than address and weight."""
    return bool(cluster.profiles) or len(set(domains_of(cluster).values())) > 1


def wanted_domains(cluster: Cluster) -> Sequence[SecurityDomain]:
    """Return what connections of `cluster` belong to, the one of its first endpoint first."""
    if is_mixed(cluster):
        return tuple(dict.fromkeys(domains_of(cluster).values()))
    return (SecurityDomain.of(cluster),)


@attrs.frozen(eq=False)
class Mix:
    """The rules of a cluster whose endpoints differ; one whose endpoints are alike has none."""

    wires: tuple[Wire, ...]
    """By profile."""
    pools: Mapping[Endpoint, Pool]

    @classmethod
    def of(cls, cluster: Cluster, snapshot: Snapshot, pools: Mapping[Endpoint, Pool]) -> "Mix":
        """Return the rules of `cluster`, which is one of the snapshot's."""
        return cls(tuple(Wire.of(view, snapshot) for view in views(cluster)), pools)


class NoShortcut:
    """In place of a breaker: no call of a mixed cluster goes the short way."""

    def try_admit(self) -> bool:
        """Admit nobody."""
        return False


@attrs.define(eq=False)
class Fitting:
    """One call of a mixed cluster, as each of the endpoints that it goes to is asked.

    What an endpoint is asked is made when it is chosen, once per profile, and only of what the
    client said and that profile says.
    """

    mix: Mix
    call: Call
    _made: dict[int, WireRequest | None] = attrs.field(factory=dict, init=False)
    """By profile; None where the request can't be said."""

    def fit(
        self, host: Host, hosts: Sequence[Host], tried: Iterable[Host], rng: random.Random
    ) -> Host:
        """Return `host`, the balancer's choice, or if it can't be asked this, one that can.

        That one is drawn by weight from the hosts in rotation that were not tried, else from all
        in rotation, else from all. There is one: the call is made for somebody.
        """
        if self._request(host) is not None:
            return host
        possible = [each for each in hosts if self._request(each) is not None]
        rotating = [each for each in possible if each.is_rotating]
        fresh = [each for each in rotating if each not in tried]
        among = fresh or rotating or possible
        return rng.choices(among, [each.endpoint.weight for each in among])[0]

    def request_for(self, host: Host) -> WireRequest:
        """Return what `host` is asked, which `fit` has returned."""
        request = self._request(host)
        if request is None:
            raise ValueError("the endpoint can't be asked this")
        return request

    def answered_by(self, host: Host) -> None:
        """Take note of whose answer is that of the call."""
        renditions = self.call.renditions
        if renditions is not None:
            renditions.answered_by(host.endpoint.profile)

    def _request(self, host: Host) -> WireRequest | None:
        profile = host.endpoint.profile
        if profile not in self._made:
            self._made[profile] = self._make(profile)
        return self._made[profile]

    def _make(self, profile: int) -> WireRequest | None:
        call, renditions = self.call, self.call.renditions
        if renditions is not None and renditions.profile != profile:
            try:
                call = renditions.call_for(profile)
            except VsrError:
                return None
        return self.mix.wires[profile].request(call)


@attrs.frozen(eq=False)
class PooledOwner:
    """A mixed cluster as owner of attempts whose connections are of one pool."""

    cluster: AttemptOwner
    pool: Pool

    def head_arrived(self, host: Host, attempt: Attempt, status: int) -> None:
        """Tell the cluster."""
        self.cluster.head_arrived(host, attempt, status)

    def attempt_failed(self, host: Host, attempt: Attempt, pooled: PooledConnection | None) -> None:
        """Drop the connection and tell the cluster."""
        if pooled is not None:
            self.pool.drop(pooled)
        self.cluster.attempt_failed(host, attempt, None)

    def body_failed(self, host: Host, attempt: Attempt) -> None:
        """Tell the cluster."""
        self.cluster.body_failed(host, attempt)

    def body_ended(self, host: Host, *, is_complete: bool) -> None:
        """Tell the cluster."""
        self.cluster.body_ended(host, is_complete=is_complete)

    def attempt_ended(self, host: Host) -> None:
        """Tell the cluster."""
        self.cluster.attempt_ended(host)
