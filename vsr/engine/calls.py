"""From what the request phases want to the call that leaves."""

from vsr.routing.effect import Effect, applied, changed_body, names_set, value_set
from vsr.routing.plan import Call
from vsr.routing.request import Request

ROUTE_KEY = b"x-selected-model"


def call_of(request: Request, first: Effect, second: Effect) -> Call:
    """Return `request` as a backend gets it.

    Args:
        request: the client's.
        first: of the request-header phase.
        second: of the request-body phase.

    Raises:
        RoutingFailed: an effect cannot be applied.
    """
    headers, target = applied(request.headers, request.target, first, second)
    body = changed_body(headers, request.body, second)
    if second.reroutes or first.reroutes:
        route_key = value_set(second, ROUTE_KEY)
        if route_key is None:
            route_key = headers.get(ROUTE_KEY)
    else:
        # Without a cleared route cache the client's own header stands, as it would in Envoy.
        route_key = request.headers.get(ROUTE_KEY)
    return Call(request.method, target, headers, body, route_key, own_headers=names_set(second))
