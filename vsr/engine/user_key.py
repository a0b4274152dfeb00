"""A user's own key for the provider that serves the request."""

from vsr.engine.endpoints import Protocol
from vsr.engine.target import Target
from vsr.errors import ProviderKeyMissing
from vsr.headers import Headers
from vsr.resources.cluster import UserKeys
from vsr.routing.effect import Effect, HeaderEdit
from vsr.routing.request import CREDENTIALS


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
