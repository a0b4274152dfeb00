"""The metrics listener of a process."""

import logging

import trio

from vsr.gateway.metrics_listener import MetricsFront
from vsr.gateway.serve import BindFailed, Server
from vsr.network.port import Network
from vsr.resources.listener import Listener
from vsr.workers.components import Components, OnFailure

_log = logging.getLogger("vsr")


async def serve_metrics(
    network: Network,
    front: MetricsFront,
    listener: Listener,
    tasks: trio.Nursery,
    components: Components,
) -> None:
    """Let operators read the metrics; without a free address the Router serves all the same."""
    server = Server(network, front)
    try:
        await server.bind([listener])
    except BindFailed as error:
        _log.error("metrics cannot be read: %s", error)  # no traceback helps
        components.degrade("metrics", type(error).__name__)
        return
    await tasks.start(components.run, "metrics", OnFailure.DEGRADE, server.run)
    _log.info("metrics can be read on port %d", server.ports[listener.name])
