"""Resource `management`: where operators reach the Router, and what each of them may do."""

from ipaddress import ip_address

import msgspec

from vsr.resources.listener import ListenerTls

ANY = "*"
"""Every permission there is."""
_READS = """
    health.read ready.read docs.read metrics.read classify.invoke config.read replay.read data.read
    cache.read compression.read requests.read"""
_OPERATES = """
    config.write learning.ingest replay.detail data.write cache.invalidate compression.preview
    backend.quarantine"""
_ADMINISTERS = "secret_view cache.manage compression.manage process.drain"

ROLES: tuple[tuple[str, frozenset[str]], ...] = (
    ("viewer", frozenset(_READS.split())),
    ("operator", frozenset(f"{_READS} {_OPERATES}".split())),
    ("admin", frozenset({ANY})),
)
"""Roles that are there without being written. Source: the reference, management API."""
PERMISSIONS = frozenset(f"{_READS} {_OPERATES} {_ADMINISTERS}".split())
"""All words; `backend.quarantine`, `process.drain` and `requests.read` are our addition."""


class Token(msgspec.Struct, frozen=True):
    """A token that opens the management API."""

    variable: str
    """Of the environment that holds it; the token itself is nowhere in the configuration."""
    role: str


class Management(msgspec.Struct, frozen=True):
    """The management API. Defaults are the reference's."""

    address: str = "127.0.0.1"
    port: int = 8080
    is_remote: bool = False
    """Whether others than this host may reach it."""
    asks_token: bool = False
    """Whether a request needs a token; else whoever reaches it may do anything."""
    tokens: tuple[Token, ...] = ()
    roles: tuple[tuple[str, frozenset[str]], ...] = ROLES
    tls: ListenerTls | None = None
    """None: clear text."""

    def permissions(self, role: str) -> frozenset[str]:
        """Return what a role may do; nothing if there is no such role."""
        return dict(self.roles).get(role, frozenset())


def is_loopback(address: str) -> bool:
    """Return whether only this host reaches what is bound to `address`."""
    if address == "localhost":
        return True
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False
