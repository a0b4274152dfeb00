"""The metrics of a process: what renders them, and where they can be read."""

from collections.abc import Callable
from functools import partial

import trio

from vsr.compose.beside import Words, serve_beside
from vsr.compose.router import Router
from vsr.gateway.metrics_listener import MetricsFront
from vsr.network.port import Network
from vsr.resources.listener import Listener
from vsr.workers.components import Components

_WORDS = Words("metrics can be read", "metrics cannot be read")


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
    await serve_beside(network, front, listener, _WORDS, tasks, components)
