"""From what the request phases want to the call that leaves."""

from vsr.routing.effect import Effect, applied, apply_body, set_names
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
    body = apply_body(headers, request.body, second)
    is_rerouted = second.reroutes or first.reroutes
    # Without a cleared route cache the client's own header stands, as it would in Envoy.
    route_key = (headers if is_rerouted else request.headers).get(ROUTE_KEY)
    call = Call(request.method, target, headers, body, route_key)
    call.own_headers = set_names(first, second)
    return call
