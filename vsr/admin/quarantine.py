"""Quarantine: endpoints that an operator takes out of rotation, and puts back, by name."""

from collections.abc import Awaitable, Callable

import attrs
import msgspec

from vsr.admin.answer import Refusal
from vsr.admin.views import QuarantineView
from vsr.resources.snapshot import Snapshot

Named = tuple[str, str]
"""An endpoint: names of its model and its own."""


class Quarantined(msgspec.Struct, frozen=True):
    """All endpoints that are out."""

    change: int
    """One more with each change: of two that are under way the higher one counts."""
    names: tuple[Named, ...] = ()


Spread = Callable[[Quarantined], Awaitable[tuple[int, ...]]]
"""Lets all that serve know; returns the workers that have not said that they do."""


class QuarantineChange(msgspec.Struct, frozen=True):
    """What has become of an endpoint."""

    model: str
    endpoint: str
    quarantined: bool
    left: int
    """Endpoints of the model that calls may go to as far as operators are concerned."""
    missing: tuple[int, ...] = ()
    """Workers that have not said that they heed it: they will when they can."""


@attrs.define(eq=False)
class Quarantine:
    """What is out, in the memory of the process.

    It is an operator's handle for the hour, and no second document: what is to stay out for longer
    belongs in the document, with its history.
    """

    served: Callable[[], Snapshot | None]
    """Returns the configuration that serves."""
    spread: Spread
    unix: Callable[[], float]
    """Now, in seconds since 1970."""
    _change: int = attrs.field(default=0, init=False)
    _since: dict[Named, float] = attrs.field(factory=dict, init=False)

    @property
    def entries(self) -> tuple[QuarantineView, ...]:
        """Return what is out, in the order in which it was taken out."""
        return tuple(
            QuarantineView(model, endpoint, since, endpoint in self._endpoints(model))
            for (model, endpoint), since in self._since.items()
        )

    async def take_out(
        self, model: str, endpoint: str, *, allow_empty: bool = False
    ) -> QuarantineChange:
        """Take an endpoint out of rotation everywhere; once more is as good.

        Args:
            model: of what serves.
            endpoint: of the model.
            allow_empty: whether it may be the last one of its model.

        Raises:
            Refusal: there is no such endpoint, or it is the last one.
        """
        self._check_known(model, endpoint)
        others = [each for each in self._left(model) if each != endpoint]
        if (model, endpoint) not in self._since and not others and not allow_empty:
            raise Refusal(
                409,
                "LAST_ENDPOINT",
                "It is the last endpoint of its model, which would answer 503 from then on;"
                " allow_empty=true takes it out all the same.",
            )
        self._since.setdefault((model, endpoint), self.unix())
        return await self._spread(model, endpoint)

    async def put_back(self, model: str, endpoint: str) -> QuarantineChange:
        """Let an endpoint rotate again, as far as its checks do; once more is as good.

        Raises:
            Refusal: there is no such endpoint, and none is out.
        """
        if (model, endpoint) not in self._since:
            self._check_known(model, endpoint)
        self._since.pop((model, endpoint), None)
        return await self._spread(model, endpoint)

    async def _spread(self, model: str, endpoint: str) -> QuarantineChange:
        self._change += 1
        # Before anybody else has a turn: it is this change that is told of.
        out, left = self._is_out(model, endpoint), len(self._left(model))
        missing = await self.spread(Quarantined(self._change, tuple(self._since)))
        return QuarantineChange(model, endpoint, out, left, missing)

    def _is_out(self, model: str, endpoint: str) -> bool:
        return (model, endpoint) in self._since

    def _check_known(self, model: str, endpoint: str) -> None:
        if endpoint not in self._endpoints(model):
            message = "What serves has no such endpoint; GET /api/v1/backends lists them."
            raise Refusal(404, "ENDPOINT_NOT_FOUND", message)

    def _left(self, model: str) -> list[str]:
        return [each for each in self._endpoints(model) if not self._is_out(model, each)]

    def _endpoints(self, model: str) -> list[str]:
        snapshot = self.served()
        clusters = () if snapshot is None else snapshot.clusters
        return [
            endpoint.name
            for cluster in clusters
            if cluster.name == model
            for endpoint in cluster.endpoints
        ]
