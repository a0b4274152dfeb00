"""The metrics of a process: what renders them, and where they can be read."""

import logging
from collections.abc import Callable
from functools import partial

import trio

from vsr.compose.router import Router
from vsr.gateway.metrics_listener import MetricsFront
from vsr.gateway.serve import BindFailed, Server
from vsr.network.port import Network
from vsr.resources.listener import Listener
from vsr.workers.components import Components, OnFailure

_log = logging.getLogger("vsr")


def load_metrics(router: Router) -> Callable[[], bytes]:
    """Return what renders the metrics of what serves at the time; its library is loaded here."""
    # See `gateway.metrics_listener.MetricsFront`.
    from vsr.engine.execution_metrics import execution_metrics  # noqa: PLC0415
    from vsr.upstream.metrics import make_renderer  # noqa: PLC0415
    from vsr.upstream.view import clusters_of  # noqa: PLC0415

    graphs = partial(execution_metrics, router.parts.executions)
    return make_renderer(partial(clusters_of, router.active), graphs)


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
