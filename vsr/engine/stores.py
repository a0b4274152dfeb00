"""Where one process keeps the runs that wait for their clients' tools."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import attrs

from vsr.resources.looper import StateStore

if TYPE_CHECKING:
    from vsr.graph.suspend.store import SuspendStore
    from vsr.graph.suspend.tool_ids import DrawBytes


@attrs.define(eq=False)
class Stores:
    """The stores of one process: a reload that leaves the settings as they are keeps its store."""

    _open: "Callable[[StateStore], SuspendStore]"
    _opened: "dict[StateStore, SuspendStore]" = attrs.field(factory=dict, init=False)

    def store(self, settings: StateStore) -> "SuspendStore":
        """Return the store of these settings."""
        if settings not in self._opened:
            self._opened[settings] = self._open(settings)
        return self._opened[settings]


def open_memory(settings: StateStore) -> "SuspendStore":
    """Return a store that lives as long as the process."""
    # Loaded with the first graph, as its stores are of no use before.
    from vsr.graph.suspend import settings as stores  # noqa: PLC0415

    return stores.open_memory(settings)


def open_configured(
    environ: Mapping[str, str], draw: "DrawBytes", settings: StateStore
) -> "SuspendStore":
    """Return the store that `settings` ask for, see `graph.suspend.settings.open_store`."""
    from vsr.graph.suspend import settings as stores  # noqa: PLC0415  # as above

    return stores.open_store(environ, draw, settings)
