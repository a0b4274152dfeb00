"""Listeners for operators: they run beside those of clients, which are served without them too."""

import logging

import msgspec
import trio

from vsr.gateway.serve import BindFailed, Front, Server
from vsr.network.port import Network
from vsr.resources.listener import Listener
from vsr.workers.components import Components, OnFailure

_log = logging.getLogger("vsr")


class Words(msgspec.Struct, frozen=True):
    """How the log tells of one."""

    serves: str
    """`on port …` follows."""
    fails: str
    """Why follows."""


async def serve_beside(  # a listener, and who keeps it going
    network: Network,
    front: Front,
    listener: Listener,
    words: Words,
    tasks: trio.Nursery,
    components: Components,
) -> None:
    """Serve a listener that the Router can do without; returns once it serves.

    Without a free address that is said, and all there is to it. If it fails later it begins again.

    Args:
        network: of the process.
        front: answers.
        listener: its name is that of the component.
        words: for the log.
        tasks: it runs in there.
        components: keep it going.
    """
    name = listener.name
    try:
        bound = [await _bind(network, front, listener)]
    except BindFailed as error:
        _log.error("%s: %s", words.fails, error)  # no traceback helps
        components.degrade(name, type(error).__name__)
        return
    port = bound[0].ports[name]

    async def run(  # noqa: ASYNC128  # the server tells
        *, task_status: trio.TaskStatus[None]
    ) -> None:
        server = bound.pop() if bound else await _bind(network, front, listener)
        try:
            await server.run(task_status=task_status)
        finally:
            server.close()

    await tasks.start(components.run, name, OnFailure.RESTART, run)
    _log.info("%s on port %d", words.serves, port)


async def _bind(network: Network, front: Front, listener: Listener) -> Server:
    server = Server(network, front)
    await server.bind([listener])
    return server
