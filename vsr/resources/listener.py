"""Resource `listener`: one client-facing socket and what it accepts."""

from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address

import attrs
import msgspec

Network = IPv4Network | IPv6Network


class ListenerTls(msgspec.Struct, frozen=True):
    """Certificate and key of a TLS listener, PEM files."""

    cert_file: str
    """As authored; a relative path is relative to the document's folder."""
    key_file: str


class Identity(msgspec.Struct, frozen=True):
    """Whose identity headers a listener keeps: what an authenticator in front of it says."""

    header_names: frozenset[bytes] = frozenset()
    """Lower-case names besides `x-authz-*` that say who calls."""
    is_trusted: bool = False
    """Whether any peer is believed."""
    networks: tuple[Network, ...] = ()
    """Of the peers that are believed; empty means every peer."""

    def trusts(self, peer: str) -> bool:
        """Return whether what `peer` says of the caller is kept.

        Args:
            peer: IP address of the TCP peer; an IPv4 address may come as IPv6, and is looked at
                without its mapping. An address that cannot be read is not trusted.
        """
        if not self.is_trusted or not self.networks:
            return self.is_trusted
        try:
            address = ip_address(peer)
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self.networks)


@attrs.frozen
class Listener:
    """One listener of the document, normalised."""

    name: str
    address: str
    port: int
    timeout_s: float
    """Idle and head-read limit of client connections, and the default of every upstream call's
    total and idle timeout; 0 disables the latter two (connections then use 300 s)."""
    api_keys: tuple[bytes, ...] = attrs.field(default=(), repr=False)
    """Accepted client keys; empty means that no key is asked for."""
    max_body_bytes: int = 524_288_000
    """Limit of a request body. Source: the reference's listener limit, 500 MiB."""
    max_connections: int = 50_000
    """Open client connections; further ones wait in the accept queue. Source: as above."""
    tls: ListenerTls | None = None
    """None means clear text."""
    identity: Identity = attrs.field(factory=Identity)

    @property
    def connection_idle_s(self) -> float:
        """Return the idle limit of client connections."""
        return self.timeout_s or 300.0

    @property
    def call_timeout_s(self) -> float | None:
        """Return the default total and idle timeout of upstream calls; None means no limit."""
        return self.timeout_s or None
