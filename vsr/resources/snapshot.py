"""A compiled configuration: every resource of one document, immutable."""

import msgspec

from vsr.resources.cluster import Cluster
from vsr.resources.egress import Egress
from vsr.resources.listener import Listener
from vsr.resources.looper import LooperSettings
from vsr.resources.management import Management
from vsr.resources.program import Program
from vsr.resources.route import Route
from vsr.resources.tracing import Tracing


class Settings(msgspec.Struct, frozen=True):
    """Process-wide settings that no other resource owns."""

    default_model: str | None = None
    """Alias that serves an automatic request when no decision matched."""
    list_configured_models: bool = False
    """Whether `/v1/models` also lists the aliases of `providers.models`."""
    default_reasoning_effort: str | None = None
    """Effort when reasoning is on and the candidate names none."""
    key_headers: frozenset[bytes] = frozenset()
    """Request headers that may hold users' provider keys; they never travel on."""
    may_skip_processing: bool = False
    """Whether a client's header may take its request past the Router's work."""
    looper: LooperSettings = msgspec.field(default_factory=LooperSettings)
    egress: Egress | None = None
    """Which addresses services that are no models may be at; None: any."""


class Snapshot(msgspec.Struct, frozen=True):
    """All resources of one document, in authored order.

    The first cluster serves the default route.
    """

    hash: str
    """SHA-256 of the document's bytes, lower-case hex; graphs in files of their own count."""
    listeners: tuple[Listener, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    programs: tuple[Program, ...] = ()
    routes: tuple[Route, ...] = ()
    settings: Settings = Settings()
    tracing: Tracing | None = None
    """None: requests are not traced."""
    management: Management = Management()

    @property
    def has_graphs(self) -> bool:
        """Return whether a decision is answered by a graph."""
        decisions = (each for program in self.programs for each in program.decisions)
        return any(decision.algorithm.graph is not None for decision in decisions)
