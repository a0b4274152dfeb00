"""Endpoints that an operator has taken out of rotation, whatever configuration serves."""

from collections.abc import Iterable
from typing import Protocol
from weakref import WeakSet

import attrs

from vsr.upstream.cluster_state import ClusterState

Named = tuple[str, str]
"""An endpoint: names of its model and its own."""


class Heeding(Protocol):
    """The clusters of one configuration."""

    def state_of(self, model: str) -> ClusterState | None:
        """Return the state of a cluster; None if there is none of that name."""
        ...


@attrs.define(eq=False)
class Quarantine:
    """Keeps `Host.is_quarantined` of every configuration that is built, warm or served.

    An endpoint is known by its names, so that it stays out when its document changes. No call that
    is under way is touched: whoever is in rotation matters to the next attempt only.
    """

    names: frozenset[Named] = attrs.field(default=frozenset(), init=False)
    _change: int = attrs.field(default=0, init=False)
    _heeding: "WeakSet[Heeding]" = attrs.field(factory=WeakSet, init=False)

    def replace(self, names: Iterable[Named], change: int) -> None:
        """Quarantine these endpoints and no others.

        Args:
            names: of endpoints; those that are not served are quarantined once they are.
            change: number of the change; one that comes behind a newer one is passed over.
        """
        if change <= self._change:
            return
        before, self.names, self._change = self.names, frozenset(names), change
        for each in self._heeding:
            self._apply(each, before ^ self.names)

    def join(self, clusters: Heeding) -> None:
        """Let a configuration heed it, for as long as it is there."""
        self._heeding.add(clusters)
        self._apply(clusters, self.names)

    def _apply(self, clusters: Heeding, changed: Iterable[Named]) -> None:
        for model in {model for model, _ in changed}:
            state = clusters.state_of(model)
            if state is None:
                continue
            for host in state.hosts:
                host.is_quarantined = (model, host.endpoint.name) in self.names
            state.rotation_changed()
