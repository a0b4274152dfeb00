"""Entries of `global.router.egress`, from text to rules."""

import re
from ipaddress import IPv4Network, IPv6Network, ip_network

from vsr.config.address import is_host
from vsr.config.document.root import Document
from vsr.config.networks import unmapped
from vsr.resources.egress import MAX_PORT, Egress, EgressRule, address_of, name_of

_PORTS = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


def egress_of(document: Document) -> Egress | None:
    """Return the policy of a document whose entries were found valid; None if it has none."""
    policy = document.global_.router.egress
    if policy is None:
        return None
    return Egress(
        allow=None if policy.allow is None else tuple(map(parse_rule, policy.allow)),
        deny=tuple(map(parse_rule, policy.deny)),
    )


def parse_rule(text: str) -> EgressRule:
    """Return the rule of one entry: `HOST[:PORT[-PORT]]`.

    The host is an IP address or network, a DNS name, or `*.` before one. An IPv6 address or network
    that a port follows stands in brackets.

    Raises:
        ValueError: it is none; the text says why and quotes nothing.
    """
    host, ports = _split(text)
    first, last = (1, MAX_PORT) if ports is None else _port_range(ports)
    if "/" in host or address_of(host) is not None:
        return EgressRule(network=_network(host), first_port=first, last_port=last)
    if not is_host(host.removeprefix("*.")) or address_of(host.removeprefix("*.")) is not None:
        raise ValueError("it is neither an address, nor a network, nor a DNS name")
    return EgressRule(name=name_of(host), first_port=first, last_port=last)


def _split(text: str) -> tuple[str, str | None]:
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or ":" not in host or not (not rest or rest.startswith(":")):
            raise ValueError("brackets go around an IPv6 address or network, before the port")
        return host, rest[1:] if rest else None
    if text.count(":") > 1:
        return text, None
    host, colon, ports = text.partition(":")
    return host, ports if colon else None


def _port_range(text: str) -> tuple[int, int]:
    found = _PORTS.fullmatch(text)
    first = int(found[1]) if found else 0
    last = int(found[2] or found[1]) if found else 0
    if not 1 <= first <= last <= MAX_PORT:
        raise ValueError("the port must be a number from 1 to 65535, or two with a hyphen")
    return first, last


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        ip_network(text, strict=False)
    except ValueError:
        raise ValueError("it is no network") from None
    try:
        return unmapped(ip_network(text))
    except ValueError:
        # More than its author may think: a slip must not open a network.
        raise ValueError("it has bits set behind its prefix") from None
