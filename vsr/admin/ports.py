"""What the management API asks of whatever serves: one process, or the workers of a supervisor."""

from typing import TYPE_CHECKING, Protocol

import msgspec

from vsr.admin.quarantine import Quarantine
from vsr.admin.views import BackendsView, ComponentView, WorkerView
from vsr.config.attempt import Attempt, LifecycleStatus, Reason
from vsr.config.history import Document, Record
from vsr.config.inspection import Inspect, Inspected
from vsr.config.lifecycle import Compiled
from vsr.config.origin import Origin
from vsr.resources.management import Management

if TYPE_CHECKING:
    from vsr.routing.request_views import RequestDetail, RequestList


class GenerationView(msgspec.Struct, frozen=True):
    """A version of the configuration that is alive."""

    version: int
    active: bool
    """Whether new requests get it."""
    leases: int
    """Requests that use it."""


class ServingView(msgspec.Struct, frozen=True):
    """What serves, at one moment."""

    ready: bool
    draining: bool
    workers: int
    uptime_s: float
    open_connections: int
    """Of clients."""
    listeners: dict[str, int]
    """Port by name."""
    generations: tuple[GenerationView, ...]
    processes: tuple[WorkerView, ...] = ()
    """Workers, one after the other."""
    components: tuple[ComponentView, ...] = ()
    missing: tuple[int, ...] = ()
    """Workers that did not answer: their connections, requests and components are not in here."""


class Serving(Protocol):
    """Whatever answers clients."""

    async def view(self) -> ServingView:
        """Return what serves."""
        ...

    async def backends(self) -> BackendsView:
        """Return the clusters of what serves, in the document's order; merged over workers."""
        ...

    @property
    def quarantine(self) -> Quarantine:
        """Return what keeps endpoints out of rotation."""
        ...

    async def metrics(self) -> bytes:
        """Return all metrics in Prometheus' text format 0.0.4."""
        ...

    async def requests(self, limit: int) -> "RequestList":
        """Return requests, the newest first; merged over workers.

        Args:
            limit: of those under way, and of those that have ended.
        """
        ...

    async def request(self, request_id: str, start_time: str) -> "RequestDetail | None":
        """Return the newest with an id; only one that began at `start_time` unless it is empty."""
        ...

    def drain(self) -> None:
        """Begin to drain, as a signal would; a second time does nothing."""
        ...


class Checked(msgspec.Struct, frozen=True):
    """Whether a document could be served here."""

    reasons: tuple[Reason, ...] = ()
    """Why not; empty: it could."""
    restarts: tuple[Reason, ...] = ()
    """What of it only a restart would bring."""
    reused: tuple[str, ...] = ()
    """Components that would serve on as they are."""
    compiled: Compiled | None = None
    """What it comes to, for `Configuration.deploy`; None: it is not served."""


class DocumentFailed(Exception):
    """The document's file cannot be used; `str` is safe to show."""


class DocumentChanged(Exception):
    """Somebody else has written the document's file meanwhile."""


class Configuration(Protocol):
    """The document that is served, its file, its history."""

    @property
    def status(self) -> LifecycleStatus:
        """Return where the configuration stands; a change in progress does not hold it up."""
        ...

    @property
    def management(self) -> Management:
        """Return the settings of this API in the configuration that serves."""
        ...

    async def models(self) -> bytes:
        """Return the list of models that clients are told, as JSON."""
        ...

    def standing(self, text: bytes) -> str:
        """Return `active`, `failed`, `pending` or `unknown`: what has become of a document."""
        ...

    async def read(self) -> bytes:
        """Return the document as it is persisted.

        Raises:
            DocumentFailed: it cannot be read.
        """
        ...

    async def inspect(self, question: Inspect) -> Inspected:
        """Return what becomes of a text; its file is filled in."""
        ...

    async def examine(self, question: Inspect) -> tuple[Inspected, Checked]:
        """Return the same, and whether the document could be served if it is valid."""
        ...

    async def check(self, document: Document) -> Checked:
        """Return whether a document could be served, building nothing."""
        ...

    async def records(self) -> list[Record]:
        """Return the history, newest first.

        Raises:
            DocumentFailed: it cannot be read.
        """
        ...

    async def recorded(self, record_id: str) -> Document | None:
        """Return a recorded document; None if there is none.

        Raises:
            DocumentFailed: it cannot be read.
        """
        ...

    async def keep(self, text: bytes) -> str:
        """Record a document that is about to be replaced, once; return the id of its record.

        Raises:
            DocumentFailed: it cannot be written.
        """
        ...

    async def deploy(
        self, document: Document, origin: Origin, replaced: bytes, checked: Checked
    ) -> Attempt | None:
        """Write a document in place of `replaced`, and wait for the activation that follows.

        Args:
            document: what is to be there.
            origin: of the change.
            replaced: what must be there now.
            checked: what a look at `document` has just come to.

        Returns:
            How it ended; None if it has not within 20 s.

        Raises:
            DocumentChanged: the file holds something else than `replaced`.
            DocumentFailed: it cannot be written; it is as it was.
        """
        ...
