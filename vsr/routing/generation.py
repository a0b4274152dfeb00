"""A configuration that is built and warm, and the requests that still use it."""

from collections.abc import Callable
from typing import Protocol
from weakref import WeakSet

import attrs

from vsr.resources.listener import Listener
from vsr.resources.snapshot import Snapshot
from vsr.routing.engine import Engine
from vsr.routing.ports import Upstream


@attrs.define(eq=False)
class Generation:
    """One version of the configuration as it serves; a request uses exactly one, first to last.

    `on_retired` runs once, when the generation is retired: whatever runs for it beside its
    requests stops. `on_unused` runs once: when it is retired and its last lease was released.
    """

    version: int
    snapshot: Snapshot
    engine: Engine
    upstream: Upstream
    on_unused: Callable[[], None] | None = None
    on_retired: Callable[[], None] | None = None
    leases: int = attrs.field(default=0, init=False)
    is_retired: bool = attrs.field(default=False, init=False)

    def listener_for(self, bound: Listener) -> Listener | None:
        """Return what a listener of another version is in this one; None if it is gone.

        That is whatever is at its address now, so that nobody keeps rules by having come early;
        otherwise what has its name, wherever that is.
        """
        named = None
        for listener in self.snapshot.listeners:
            if (listener.address, listener.port) == (bound.address, bound.port):
                return listener
            if listener.name == bound.name:
                named = listener
        return named

    def lease(self) -> "Generation":
        """Pin this generation for one request; `release` must follow."""
        self.leases += 1
        return self

    def release(self) -> None:
        """Give one lease back."""
        self.leases -= 1
        if self.is_retired:
            self._tell_if_unused()

    def retire(self) -> None:
        """Take no further requests; those under way finish."""
        self.is_retired = True
        if self.on_retired is not None:
            tell, self.on_retired = self.on_retired, None
            tell()
        self._tell_if_unused()

    def _tell_if_unused(self) -> None:
        if self.is_retired and self.leases == 0 and self.on_unused is not None:
            tell, self.on_unused = self.on_unused, None
            tell()


class Active(Protocol):
    """Which generation new requests are pinned to."""

    @property
    def current(self) -> Generation | None:
        """Return it, asked for once per request; None until the first activation."""
        ...

    @property
    def retired(self) -> "Retired":
        """Return those that served before."""
        ...

    def activate(self, generation: Generation) -> None:
        """Serve `generation` from now on and retire the one before."""


@attrs.define
class Retired:
    """Generations that nothing but their requests may still hold."""

    _each: "WeakSet[Generation]" = attrs.field(factory=WeakSet, init=False)

    def retire(self, generation: Generation | None) -> None:
        """Let one end with its requests."""
        if generation is not None:
            generation.retire()
            self._each.add(generation)

    @property
    def used(self) -> list[Generation]:
        """Return what requests still use, the newest first."""
        used = [each for each in self._each if each.leases]
        return sorted(used, key=lambda each: each.version, reverse=True)


@attrs.define
class ActiveGeneration:
    """The `Active` of a process that is the whole installation."""

    current: Generation | None = None
    retired: Retired = attrs.field(factory=Retired, init=False)

    def activate(self, generation: Generation) -> None:
        """Serve `generation` from now on and retire the one before."""
        previous, self.current = self.current, generation
        self.retired.retire(previous)


def alive(active: Active) -> list[Generation]:
    """Return what serves now, then what requests still use, the newest first."""
    current = active.current
    return active.retired.used if current is None else [current, *active.retired.used]
