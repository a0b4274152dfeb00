"""What differs between the endpoints of one cluster: how they are called and connected to."""

import random
from collections.abc import Iterable, Sequence

import attrs
import msgspec

from vsr.errors import NoHealthyEndpoint, VsrError
from vsr.resources.cluster import Cluster
from vsr.resources.profile import views
from vsr.resources.snapshot import Snapshot
from vsr.routing.plan import Call
from vsr.upstream.attempt import WireRequest
from vsr.upstream.policy.host import Host
from vsr.upstream.wire import Wire


class Mix(msgspec.Struct, frozen=True, eq=False):
    """The rules of a cluster whose endpoints differ; one whose endpoints are alike has none."""

    wires: tuple[Wire, ...]
    """By profile."""

    @classmethod
    def of(cls, cluster: Cluster, snapshot: Snapshot) -> "Mix":
        """Return the rules of `cluster`, which is one of the snapshot's."""
        return cls(tuple(Wire.of(view, snapshot) for view in views(cluster)))


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
        in rotation, else from all that are not quarantined.

        Raises:
            NoHealthyEndpoint: there is none: the call is made for those that are quarantined.
        """
        if self._request(host) is not None:
            return host
        allowed = (each for each in hosts if not each.is_quarantined)
        possible = [each for each in allowed if self._request(each) is not None]
        if not possible:
            raise NoHealthyEndpoint
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
