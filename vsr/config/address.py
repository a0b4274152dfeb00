"""Addresses of backends: from `endpoint` or `base_url` to host, port and base path."""

import ipaddress
import re

import msgspec

DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_PORT = 65_535
_MAX_HOST = 253
_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9a-fA-F]*")
# Visible ASCII that a request target may hold as it is; `?` and `#` end a path.
_PATH = re.compile(r"(?:/[!$&'()*+,;=:@%A-Za-z0-9._~-]*)*")


class Address(msgspec.Struct, frozen=True):
    """Where one backend is."""

    scheme: str
    host: str
    """IPv6 without brackets."""
    port: int
    base_path: str = ""
    """Without trailing slash."""

    @property
    def is_ip(self) -> bool:
        """Return whether the host is an IP literal."""
        return is_ip(self.host)


def parse_address(text: str, *, scheme: str = "http", has_server_name: bool = False) -> Address:
    """Return the parts of `host[:port][/prefix]`, or of a URL.

    Args:
        text: the address.
        scheme: if `text` has none.
        has_server_name: whether certificates are checked against another name than the host.

    Raises:
        ValueError: it is no such address; the text says why and quotes nothing.
    """
    if "://" in text:
        scheme, _, text = text.partition("://")
        scheme = scheme.lower()
    if scheme not in DEFAULT_PORTS:
        raise ValueError("the scheme must be http or https")
    authority, slash, path = text.partition("/")
    for mark, name in (("@", "credentials"), ("?", "a query"), ("#", "a fragment")):
        if mark in text:
            raise ValueError(f"an address can't hold {name}")
    base_path = (slash + path).rstrip("/")
    if not _PATH.fullmatch(base_path):
        raise ValueError("the path holds characters that need percent-encoding")
    host, port = _split_port(authority)
    _check_host(host)
    if scheme == "https" and not has_server_name and (is_ip(host) or host.endswith(".")):
        raise ValueError(
            "https needs a DNS name or tls.server_name: certificates are checked against it"
        )
    return Address(scheme, host, DEFAULT_PORTS[scheme] if port is None else port, base_path)


def is_ip(host: str) -> bool:
    """Return whether `host` is an IP literal without brackets and zone."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host


def is_host(host: str) -> bool:
    """Return whether `host` is an IP literal or a DNS name."""
    if is_ip(host):
        return True
    labels = host.removesuffix(".").split(".")
    # A name that ends in a number is a mistyped IPv4 address, and resolvers disagree about it.
    return (
        len(host) <= _MAX_HOST
        and all(_LABEL.fullmatch(label) for label in labels)
        and not _NUMBER.fullmatch(labels[-1])
    )


def bound_address(host: str) -> str:
    """Return a listener's address in one spelling: the same one is never bound twice.

    A name stays as it is, but for the one that is an address by definition, and is bound as IPv4.
    Source: RFC 6761 section 6.3.
    """
    if is_ip(host):
        return str(ipaddress.ip_address(host))
    return "127.0.0.1" if host.lower().removesuffix(".") == "localhost" else host


def overlaps(host: str, other: str) -> bool:
    """Return whether two listeners cannot have one port: `::` takes IPv4 clients, too.

    Of two names nothing is known.
    """
    pair = {bound_address(host), bound_address(other)}
    if len(pair) == 1 or "::" in pair:
        return True
    return "0.0.0.0" in pair and not any(":" in each for each in pair)  # noqa: S104  # compared


def _split_port(authority: str) -> tuple[str, int | None]:
    if authority.startswith("["):
        host, bracket, rest = authority[1:].partition("]")
        if not bracket or ":" not in host:
            raise ValueError("brackets go around an IPv6 address")
        if rest and not rest.startswith(":"):
            raise ValueError("only a port may follow the brackets")
        return host, _port(rest[1:]) if rest else None
    if authority.count(":") > 1:
        raise ValueError("an IPv6 address needs brackets")
    host, colon, port = authority.partition(":")
    return host, _port(port) if colon else None


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_PORT))):
        raise ValueError("the port must be a number from 1 to 65535")
    port = int(text)
    if not 1 <= port <= _MAX_PORT:
        raise ValueError("the port must be a number from 1 to 65535")
    return port


def _check_host(host: str) -> None:
    if not host:
        raise ValueError("the host is missing")
    if not is_host(host):
        raise ValueError("the host is neither an IP address nor a DNS name")
