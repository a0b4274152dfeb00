"""A user's own key for the provider that serves the request."""

from contextlib import suppress

from vsr.codec.chat import ChatRequest
from vsr.engine.endpoints import Endpoint, Protocol
from vsr.engine.request_phase import Outgoing, dispatch
from vsr.engine.target import Target
from vsr.errors import ProviderKeyMissing, VsrError
from vsr.headers import Headers
from vsr.resources.cluster import UserKeys
from vsr.routing.effect import Effect, HeaderEdit
from vsr.routing.request import CREDENTIALS, Request


def dispatch_for(
    endpoint: Endpoint, request: Request, chat: ChatRequest, target: Target
) -> Outgoing:
    """Turn the client's request into what the target's backend is asked, with the user's key.

    A target with variants is asked as the first of them that can be.

    Raises:
        ProviderKeyMissing: a key is needed, and nobody has one.
        InvalidRequest: see `request_phase.dispatch`.
    """
    try:
        keys = target.user_keys
        if keys is None:
            return dispatch(endpoint, request, chat, target)
        key = find_key(target, keys, request.headers)
        outgoing = dispatch(endpoint, request, chat, target)
    except VsrError:
        found = _for_another(endpoint, request, chat, target)
        if found is None:
            raise
        return found
    if key is not None:
        outgoing.effect = with_key(outgoing.effect, key)
    return outgoing


def _for_another(
    endpoint: Endpoint, request: Request, chat: ChatRequest, target: Target
) -> Outgoing | None:
    """Return what the first other kind of the target's backends is asked that can be asked."""
    for profile, variant in enumerate(target.variants[1:], 1):
        with suppress(VsrError):
            outgoing = dispatch_for(endpoint, request, chat, variant)
            outgoing.profile = profile
            return outgoing
    return None


def find_key(target: Target, keys: UserKeys, headers: Headers) -> HeaderEdit | None:
    """Return the line by which the user's own key gets to the backend; None if there is no key.

    Args:
        target: serves the request.
        keys: how it comes by them.
        headers: of the client's request.

    Raises:
        ProviderKeyMissing: one is needed.
    """
    if key := _first(keys, headers):
        return HeaderEdit(keys.header, keys.prefix + key)
    if keys.is_required:
        raise ProviderKeyMissing(target.alias if target.protocol is Protocol.ANTHROPIC else None)
    return None


def with_key(effect: Effect, line: HeaderEdit) -> Effect:
    """Return `effect` with `line` in place of the cluster's credential.

    No credential of the client's may travel with it: it would reach a provider that it is not for.
    """
    return Effect(
        effect.removes | CREDENTIALS,
        (line, *(edit for edit in effect.edits if edit.name != line.name)),
        effect.body,
        effect.clear_route_cache,
        last=effect.last,
    )


def _first(keys: UserKeys, headers: Headers) -> bytes:
    """Return the first key that is not empty."""
    fields = headers.first_values()
    return next((key for name in keys.asked if (key := fields.get(name))), b"")
