"""The management API with fakes behind it, on a socket of this host."""

import attrs
import msgspec
import trio

from tests.fakes.configuration import TEXT, Desk, record
from vsr.config.history import Document
from vsr.config.inspection import Inspected
from vsr.gateway.answering import AnsweringFront
from vsr.gateway.serve import Server
from vsr.network.epoll import EpollNetwork
from vsr.resources.listener import Listener

DOCUMENT = b'{"routing": {}, "recipes": [{"name": "cheap", "routing": {"decisions": []}}]}'
RECORD = "20260103-000000"


@attrs.define(eq=False)
class ServedApi:
    """A desk that anybody can reach."""

    desk: Desk
    port: int = 0
    _stopped: trio.Event = attrs.field(factory=trio.Event)

    @property
    def url(self) -> str:
        """Return where."""
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        """Let `run` end."""
        self._stopped.set()

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Serve it until stopped."""
        configuration = self.desk.configuration
        configuration.inspected = Inspected(b"", json=msgspec.Raw(DOCUMENT))
        configuration.history = {RECORD: (record(3, RECORD), Document(TEXT))}
        network = EpollNetwork()
        async with trio.open_nursery() as tasks:
            await tasks.start(network.run)
            server = Server(network, AnsweringFront(lambda: self.desk.app.answer))
            await server.bind([Listener("management", "127.0.0.1", 0, 60.0)])
            self.port = server.ports["management"]
            await tasks.start(server.run)
            task_status.started()
            await self._stopped.wait()
            await server.drain(0)
            tasks.cancel_scope.cancel()
