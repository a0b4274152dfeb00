"""Who asks, and what they may do. Source: the reference's management API, authentication."""

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from ipaddress import ip_address

import msgspec

from vsr.admin.answer import Refusal
from vsr.headers import HeaderLine
from vsr.resources.management import ANY, Management

ANONYMOUS = "anonymous"
"""Whoever asks where no token is asked for."""
_BEARER = re.compile(rb"bearer +(\S+) *", re.IGNORECASE)
"""Source: RFC 9110, section 11.1: the scheme is of any case."""
_CHALLENGE: HeaderLine = (b"www-authenticate", b'Bearer realm="vllm-sr"')
_SAFE_METHODS = frozenset({b"GET", b"HEAD"})
_STRANGERS = frozenset({b"cross-site", b"same-site"})
"""What browsers say of requests that pages of other origins make. Source: Fetch Metadata."""


class Caller(msgspec.Struct, frozen=True):
    """Who asks."""

    principal: str
    """A role, or `anonymous`."""
    permissions: frozenset[str]

    def may(self, permission: str) -> bool:
        """Return whether they have a permission."""
        return ANY in self.permissions or permission in self.permissions

    @property
    def sees_secrets(self) -> bool:
        """Return whether secrets that stand in the document are shown to them."""
        return self.may("secret_view")


def caller_of(
    management: Management, environ: Mapping[str, str], lines: Sequence[HeaderLine]
) -> Caller:
    """Return who asks.

    Every token is compared in constant time and none is skipped, so that timing tells nothing.

    Raises:
        Refusal: no token is known, or the request has none of them.
    """
    if not management.asks_token:
        return Caller(ANONYMOUS, frozenset({ANY}))
    known = [(environ.get(each.variable, ""), each.role) for each in management.tokens]
    known = [(token, role) for token, role in known if token.strip()]
    if not known:
        message = "No token of the management API is set in the environment."
        raise Refusal(401, "MANAGEMENT_AUTH_NOT_CONFIGURED", message, lines=(_CHALLENGE,))
    match = _BEARER.fullmatch(next((v for name, v in lines if name == b"authorization"), b""))
    # Of equal length, so that the length of a token is not told either.
    given, found = _digest(match[1] if match else b""), ""
    for token, role in known:
        is_equal = hmac.compare_digest(given, _digest(token.strip().encode()))
        found = role if is_equal and not found else found
    if not found:
        message = "The management API asks for a bearer token."
        raise Refusal(401, "UNAUTHORIZED", message, lines=(_CHALLENGE,))
    return Caller(found, management.permissions(found))


def check_browser(method: bytes, lines: Sequence[HeaderLine], management: Management) -> None:
    """Refuse what a web page makes somebody's browser send.

    On loopback, without tokens, being there is all that it takes: a page must not get there through
    a form, nor by a name of its own that leads to this host.

    Raises:
        Refusal: the request comes from a page.
    """
    if management.asks_token:
        return
    fields = dict(lines)
    is_page = b"origin" in fields or fields.get(b"sec-fetch-site", b"").lower() in _STRANGERS
    if method not in _SAFE_METHODS and is_page:
        raise Refusal(403, "FORBIDDEN", "Web pages of other origins may change nothing here.")
    host = fields.get(b"host", b"").decode("latin-1")
    if not _is_own_name(host):
        raise Refusal(403, "FORBIDDEN", "Without tokens this API is asked at localhost only.")


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _is_own_name(host: str) -> bool:
    """Return whether `host` cannot be a name that a stranger made."""
    name = host.partition("]")[0].removeprefix("[") if "[" in host else host.partition(":")[0]
    if name.lower() in {"", "localhost"}:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
