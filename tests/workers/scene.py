"""A supervisor with real workers that serve nothing real."""

import socket
from collections.abc import Sequence
from pathlib import Path

import attrs
import trio

from tests.fakes.workers import FakeSpawn, Plans
from vsr.network.listening import bound_socket
from vsr.resources.listener import Listener
from vsr.resources.snapshot import Snapshot
from vsr.workers.sockets import ListeningSockets
from vsr.workers.supervisor import Supervisor

LISTENER = Listener("public", "127.0.0.1", 1, 30.0)
OTHER = Listener("other", "127.0.0.1", 2, 30.0)
FIRST = Snapshot("first", listeners=(LISTENER,))
NEXT = Snapshot("next", listeners=(LISTENER,))


def bind_any(
    address: str, port: int, beside: Sequence[socket.socket], *, was_ours: bool
) -> socket.socket:
    """Bind where there is room: ports of the documents are made up."""
    del beside, was_ours
    if port > 1000:
        raise OSError(98, "in use")
    return bound_socket(address, 0)


@attrs.define
class Scene:
    """A supervisor that runs."""

    supervisor: Supervisor
    spawn: FakeSpawn

    @property
    def admits(self) -> list[int]:
        """Return the versions that requests get which come now, worker by worker."""
        return [each.admits for each in self.spawn.servings]

    @property
    def histories(self) -> list[list[tuple[str, int]]]:
        """Return what the workers did."""
        return [each.history for each in self.spawn.servings]


async def start(nursery: trio.Nursery, plans: Plans | None = None, size: int = 2) -> Scene:
    """Start a supervisor with workers that serve version 1."""
    spawn = FakeSpawn(nursery, plans or Plans())
    supervisor = Supervisor.open(size, FIRST, 1, Path(), spawn, ListeningSockets(bind_any))
    await nursery.start(supervisor.run)
    return Scene(supervisor, spawn)


async def stop(scene: Scene) -> None:
    """End everything."""
    scene.supervisor.force_end()
    await scene.supervisor.drain()
    scene.supervisor.word.close()
