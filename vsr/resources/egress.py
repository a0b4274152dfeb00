"""Resource `egress`: which addresses the Router may connect to."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import msgspec

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

MAX_PORT = 65_535
# What else an IPv6 address may stand for: hosts and gateways send such packets on to the IPv4
# address in its last 32 bits. Source: RFC 4291, 2.5.5.1 (compatible); RFC 6052, 2.1 (NAT64).
_CARRIERS = (IPv6Network("::/96"), IPv6Network("64:ff9b::/96"))


class EgressRule(msgspec.Struct, frozen=True):
    """Hosts and ports of one entry: exactly one of `network` and `name` says which hosts."""

    network: Network | None = None
    """Never one of IPv4 addresses that are mapped into IPv6: those count as IPv4."""
    name: str = ""
    """DNS name in lower case without a final dot; `*.` before it means every name below it."""
    first_port: int = 1
    last_port: int = MAX_PORT
    """Inclusive."""

    def has_port(self, port: int) -> bool:
        """Return whether the rule is about `port`."""
        return self.first_port <= port <= self.last_port

    def has_name(self, host: str) -> bool:
        """Return whether the rule is about the host name `host`, written as `name` is."""
        if self.name.startswith("*."):
            return host.endswith(self.name[1:]) and host != self.name[1:]
        return bool(self.name) and host == self.name

    def has_address(self, address: Address) -> bool:
        """Return whether the rule is about an address of its network."""
        return self.network is not None and address in self.network


class Egress(msgspec.Struct, frozen=True):
    """The rules of all connections to backends; what `deny` says goes before `allow`."""

    allow: tuple[EgressRule, ...] | None = None
    """None allows everything."""
    deny: tuple[EgressRule, ...] = ()

    def allows(self, host: str, port: int, address: str) -> bool:
        """Return whether a connection for `host` may go to `address`.

        Args:
            host: DNS name or IP literal that was configured.
            port: that is connected to.
            address: IP address that `host` resolved to, maybe with a zone. One that is IPv4 mapped
                into IPv6 is looked at as IPv4. One that cannot be read is not allowed.
        """
        found = address_of(address)
        if found is None:
            return False
        name = name_of(host)
        meant = (found, *_other_meanings(found))
        if any(_fits(rule, name, port, each) for rule in self.deny for each in meant):
            return False
        return self.allow is None or any(_fits(rule, name, port, found) for rule in self.allow)

    def may_allow(self, host: str, port: int) -> bool:
        """Return whether there is an address of `host` that a connection may go to.

        Args:
            host: DNS name or IP literal.
            port: that is connected to.
        """
        if address_of(host) is not None:
            return self.allows(host, port, host)
        name = name_of(host)
        if any(rule.has_port(port) and rule.has_name(name) for rule in self.deny):
            return False
        return self.allow is None or any(
            rule.has_port(port) and (rule.network is not None or rule.has_name(name))
            for rule in self.allow
        )


def address_of(text: str) -> Address | None:
    """Return the address that `text` writes, mapped IPv4 as IPv4; None if it is none."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


def name_of(host: str) -> str:
    """Return a host name as rules write it."""
    return host.lower().removesuffix(".")


def _fits(rule: EgressRule, name: str, port: int, address: Address) -> bool:
    return rule.has_port(port) and (rule.has_address(address) or rule.has_name(name))


def _other_meanings(address: Address) -> Iterator[Address]:
    """Return where packets to `address` may end up besides."""
    if address.is_unspecified:
        # Connecting there reaches this very host. Source: Linux, ip(7); RFC 1122, 3.2.1.3.
        yield from (IPv4Address("127.0.0.1"), IPv6Address("::1"))
    elif isinstance(address, IPv6Address):
        if any(address in network for network in _CARRIERS) and not address.is_loopback:
            yield IPv4Address(int(address) & 0xFFFF_FFFF)
        if address.sixtofour is not None:
            yield address.sixtofour
