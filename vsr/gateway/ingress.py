"""From the client's head to the header list that routing sees."""

import random
from itertools import count
from operator import itemgetter

import attrs

from vsr.headers import Headers, LineFilter
from vsr.http.framing import HOP_BY_HOP, RequestHead
from vsr.resources.listener import Identity

_PROXY_CONTROL = frozenset(
    b"x-envoy-" + name
    for name in (
        b"internal",
        b"retriable-status-codes",
        b"retriable-header-names",
        b"retry-on",
        b"retry-grpc-on",
        b"max-retries",
        b"upstream-alt-stat-name",
        b"upstream-rq-timeout-ms",
        b"upstream-rq-per-try-timeout-ms",
        b"upstream-rq-timeout-alt-response",
        b"upstream-stream-duration-ms",
        b"expected-rq-timeout-ms",
        b"force-trace",
        b"ip-tags",
        b"original-url",
        b"hedge-on-per-try-timeout",
    )
)
"""Control headers that Envoy strips from requests that are not internal."""
_INTERNAL = frozenset(
    {
        b"x-vsr-internal-auth",
        b"x-vsr-looper-request",
        b"x-vsr-looper-secret",
        b"x-vsr-looper-iteration",
        b"x-vsr-looper-decision",
        b"x-vsr-fusion-depth",
        b"x-vsr-selected-recipe",
    }
)
_STRIPPED = HOP_BY_HOP | _PROXY_CONTROL | _INTERNAL | {b"host"}
_IDENTITY = b"x-authz-"
CLIENT_KEYS = frozenset({b"authorization", b"api-key"})
"""Where a client's own key for this listener stands."""
ANTHROPIC_CLIENT_KEYS = CLIENT_KEYS | {b"x-api-key"}
"""The same for a client of the Messages API."""

_ADDED_BYTES = 100
"""What both added lines take at most."""
_ID_PREFIX = b"%08x-%04x-8%03x-%04x-" % (
    random.getrandbits(32),
    random.getrandbits(16),
    random.getrandbits(12),
    0x8000 | random.getrandbits(14),
)
_id_counter = count(random.getrandbits(40))
_by_name = itemgetter(0)


@attrs.define(eq=False)
class IngressRules:
    """Which fields of a client's head are dropped on one listener."""

    identity: Identity
    _filters: dict[bool, LineFilter] = attrs.field(factory=dict, init=False)
    """Of requests that nominate no further fields for this hop, by whether the peer is trusted."""

    def filter_for(self, head: RequestHead, removed: frozenset[bytes], peer: str) -> LineFilter:
        """Return the filter of one request; see `ingress_headers`."""
        identity = self.identity
        is_trusted = identity.is_trusted and identity.trusts(peer)
        if removed or head.dropped is not HOP_BY_HOP:
            return self._filter(removed | head.dropped, is_trusted=is_trusted)
        found = self._filters.get(is_trusted)
        if found is None:
            found = self._filters[is_trusted] = self._filter(HOP_BY_HOP, is_trusted=is_trusted)
        return found

    def _filter(self, further: frozenset[bytes], *, is_trusted: bool) -> LineFilter:
        if is_trusted:
            return LineFilter(_STRIPPED | further)
        return LineFilter(_STRIPPED | further | self.identity.header_names, _IDENTITY)


ANYWHERE = IngressRules(Identity())
"""Of a listener that trusts nobody."""


def ingress_headers(
    head: RequestHead,
    scheme: bytes,
    rules: IngressRules = ANYWHERE,
    *,
    removed: frozenset[bytes] = frozenset(),
    peer: str = "",
) -> tuple[Headers, bytes]:
    """Return the header list of a request, sorted by name, and its id.

    Internal and proxy-control fields are gone, whoever sent them, and identity fields unless the
    listener trusts the peer. `x-forwarded-proto` and `x-request-id` are added when absent.

    Args:
        head: of the request.
        scheme: `http` or `https`.
        rules: of the listener, kept from request to request.
        removed: further names to drop.
        peer: IP address of the TCP peer.

    Source: the reference's ingress rules.
    """
    stays, memo = rules.filter_for(head, removed, peer), head.memo
    if memo is None or memo.chosen_by is not stays:
        kept = stays.kept(head.lines)
        kept.sort(key=_by_name)
        values = dict(reversed(kept))
        if memo is not None:
            memo.chosen_by, memo.chosen, memo.values = stays, kept.copy(), values.copy()
    else:
        kept, values = memo.chosen.copy(), memo.values.copy()
    fields, size_bytes = head.fields, head.size_bytes
    if b"x-forwarded-proto" not in fields:
        kept.append((b"x-forwarded-proto", scheme))
        values[b"x-forwarded-proto"] = scheme
    request_id = fields.get(b"x-request-id")
    if request_id is None:
        request_id = values[b"x-request-id"] = _new_request_id()
        kept.append((b"x-request-id", request_id))
    most_bytes = None if size_bytes is None else size_bytes + _ADDED_BYTES
    return Headers(kept, values, most_bytes), request_id


def _new_request_id() -> bytes:
    """Return an id of a UUID's form, unique but easily guessed: an identifier, not a secret.

    Random bits of the process and a count, in a UUID of version 8: making one by `uuid.uuid4`
    costs as much as reading a request's head. Source: RFC 9562 section 5.8.
    """
    return b"%b%012x" % (_ID_PREFIX, next(_id_counter))
