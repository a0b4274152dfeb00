"""What a call looks like when it leaves for a cluster."""

import msgspec

from vsr.http.framing import HOP_BY_HOP
from vsr.resources.cluster import Cluster
from vsr.resources.snapshot import Snapshot
from vsr.routing.plan import Call
from vsr.routing.request import CREDENTIALS, USER_KEY_HEADERS
from vsr.upstream.attempt import WireRequest

_DROPPED = (
    HOP_BY_HOP
    | USER_KEY_HEADERS
    | {
        b"trailer",
        b"expect",
        b"host",
        b"content-length",
        b"x-vsr-looper-request",
        b"x-vsr-looper-secret",
        b"x-vsr-looper-decision",
        b"x-vsr-looper-iteration",
        b"x-authz-user-id",
        b"x-authz-user-groups",
        b"x-authz-team-id",
        b"x-authz-tenant-id",
    }
)
"""What never reaches a backend as the client sent it.

Source: the reference's upstream layer, which lets team and tenant pass; who calls is no backend's
business, so here they don't.
"""

_ROUTE_KEY = b"x-selected-model"
"""The core sets it on every call that it routes."""


class Wire(msgspec.Struct, frozen=True):
    """The header and path rules of one cluster."""

    cluster: Cluster
    key: bytes
    """The route key that names it; a call with another one came here by default."""
    dropped: frozenset[bytes]
    """What never reaches its backends unless the core set it."""
    replaced: frozenset[bytes]
    """The same for a call that nobody routed, and the names that the cluster sets itself."""

    @classmethod
    def of(cls, cluster: Cluster, snapshot: Snapshot) -> "Wire":
        """Return the rules of `cluster`, which is one of the snapshot's.

        A backend that we authenticate to gets no credential but ours: a client's key for one
        provider must not reach another.
        """
        identity = (listener.identity.header_names for listener in snapshot.listeners)
        dropped = _DROPPED.union(snapshot.settings.key_headers, *identity)
        own = {name for name, _ in cluster.route_headers}
        if cluster.credential is not None:
            dropped |= CREDENTIALS
            own.add(cluster.credential[0])
        return cls(cluster, cluster.name.encode(), dropped, dropped | own)

    def request(self, call: Call) -> WireRequest:
        """Return `call` as this cluster's backends get it.

        The core has given a call that it routed the cluster's headers, and what the decision adds
        to them. One that is only passed on gets the headers here, but no credential.
        """
        cluster, headers, target = self.cluster, call.headers, call.target
        lines = headers.lines
        if cluster.base_path and call.route_key != self.key:
            target = _with_base_path(target, cluster.base_path.encode())
        if _ROUTE_KEY not in call.own_headers:
            lines = [line for line in lines if line[0] not in self.replaced]
            lines += cluster.route_headers
        elif not headers.has_none_of(self.dropped):
            own = call.own_headers
            lines = [
                line
                for line in lines
                if line[0] not in self.dropped or (line[0] in own and line[0] in CREDENTIALS)
            ]
        return WireRequest(call.method, target, lines, call.body, call.source)


def _with_base_path(target: bytes, base_path: bytes) -> bytes:
    """Return `target` with its `/v1` segment replaced; `/v1beta` and the rest stay.

    Source: the reference's default route.
    """
    if target == b"/v1" or target.startswith((b"/v1/", b"/v1?")):
        return base_path + target[3:]
    return target
