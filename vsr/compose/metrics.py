"""Loading what renders the metrics of a Router."""

from collections.abc import Callable
from functools import partial

from vsr.compose.router import Router


def load_metrics(router: Router) -> Callable[[], bytes]:
    """Return what renders the metrics of what serves at the time; its library is loaded here."""
    # See `gateway.metrics_listener.MetricsFront`.
    from vsr.engine.execution_metrics import execution_metrics  # noqa: PLC0415
    from vsr.upstream.metrics import make_renderer  # noqa: PLC0415
    from vsr.upstream.view import clusters_of  # noqa: PLC0415

    graphs = partial(execution_metrics, router.parts.executions)
    return make_renderer(partial(clusters_of, router.active), graphs)
