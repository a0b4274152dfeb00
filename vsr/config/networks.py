"""Networks of IP addresses as the resources compare them."""

from ipaddress import IPv4Network, IPv6Network

_MAPPED_BITS = 96
"""What stands before an IPv4 address that is mapped into IPv6. Source: RFC 4291, 2.5.5.2."""


def unmapped(network: IPv4Network | IPv6Network) -> IPv4Network | IPv6Network:
    """Return `network`; one of IPv4 addresses that are mapped into IPv6 as that of IPv4."""
    if isinstance(network, IPv6Network) and network.prefixlen >= _MAPPED_BITS:
        mapped = network.network_address.ipv4_mapped
        if mapped is not None:
            return IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))
    return network
