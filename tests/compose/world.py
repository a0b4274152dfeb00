"""A Router in memory that takes configurations, its clients and its backend."""

from pathlib import Path

import attrs
import trio

from tests.demo.raw_client import Got, ask, chat_body
from tests.fakes.router import RunningRouter, as_snapshot, start_router
from tests.upstream.scenes import OK, PlayingBackend, start_backends
from vsr.compose.installation import LocalInstallation
from vsr.network.memory import MemoryNetwork

DOCUMENT = """
listeners: [{{name: main, address: 127.0.0.1, port: {port}}}{more}]
providers:
  models:
    - {{name: small, backend_refs: [{{endpoint: "{backend}"}}]}}
{rest}
"""


SLOW = (5.0, *OK)


@attrs.define(eq=False)
class World:
    """A Router, its installation, its backend."""

    running: RunningRouter
    installation: LocalInstallation
    backend: PlayingBackend
    version: int = 1

    def document(self, port: int = 8899, more: str = "", rest: str = "") -> str:
        """Return a document for its backend."""
        return DOCUMENT.format(port=port, more=more, rest=rest, backend=address_of(self.backend))

    async def serve(self, document: str) -> tuple[str, ...]:
        """Serve another document; return what serves on as it was."""
        snapshot = as_snapshot(document)
        assert self.installation.check(snapshot) == ()
        prepared = await self.installation.prepare(snapshot, self.version + 1)
        await prepared.commit()
        self.version += 1
        return prepared.reused

    async def ask(self, port: int = 8899, model: str = "small") -> Got:
        """Send one request to a port."""
        connection = await self.running.network.connect("router", port)
        got = await ask(connection, chat_body(model=model))
        connection.close()
        return got


def address_of(backend: PlayingBackend) -> str:
    """Return where the Router finds it."""
    return f"{backend.host}:{backend.port}"


def version_of(got: Got) -> bytes | None:
    """Return the version that an answer tells."""
    return got.line(b"x-vsr-config-version")


async def start_world(nursery: trio.Nursery) -> World:
    """Return one that serves version 1."""
    network = MemoryNetwork()
    [backend] = await start_backends(nursery, network, [[OK]])
    document = DOCUMENT.format(port=8899, more="", rest="", backend=address_of(backend))
    running = await start_router(nursery, network, document)
    return World(running, LocalInstallation(running.router, Path()), backend)


def with_setting(world: World, setting: str) -> str:
    """Return a document whose listener has one more setting."""
    return world.document().replace("port: 8899", f"port: 8899, {setting}")
