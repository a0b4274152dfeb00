"""Addresses of backends; refusals stand in the golden documents."""

import pytest

from vsr.config.address import Address, bound_address, is_host, overlaps, parse_address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("host", Address("http", "host", 80)),
        ("host:8000", Address("http", "host", 8000)),
        ("10.0.0.1", Address("http", "10.0.0.1", 80)),
        ("[::1]", Address("http", "::1", 80)),
        ("[2001:db8::1]:8000", Address("http", "2001:db8::1", 8000)),
        ("host:8000/prefix", Address("http", "host", 8000, "/prefix")),
        ("host/a/b/", Address("http", "host", 80, "/a/b")),
        ("host/", Address("http", "host", 80)),
        ("http://host", Address("http", "host", 80)),
        ("https://api.example.com/v1", Address("https", "api.example.com", 443, "/v1")),
        ("HTTPS://Host.example:8443", Address("https", "Host.example", 8443)),
        ("svc_1.ns.svc.cluster.local.:80", Address("http", "svc_1.ns.svc.cluster.local.", 80)),
    ],
)
def test_address_is_split(text: str, expected: Address) -> None:
    """Bare hosts, hosts with ports and prefixes, and URLs."""
    assert parse_address(text) == expected


def test_bare_address_takes_the_given_scheme() -> None:
    """The scheme decides the default port; a URL's own scheme wins."""
    assert parse_address("host", scheme="https") == Address("https", "host", 443)
    assert parse_address("http://host", scheme="https") == Address("http", "host", 80)


@pytest.mark.parametrize(
    ("host", "valid"),
    [
        ("a" * 63 + ".b", True),
        ("a" * 64 + ".b", False),
        ("a." * 127 + "b", False),
        ("-a", False),
        ("a-", False),
        ("a..b", False),
        ("", False),
        (".", False),
        ("1.2.3", False),
        ("127.0.0x1", False),
        ("b\u00fccher", False),
        ("fe80::1%eth0", False),
        ("3com.net", True),
    ],
)
def test_host_is_an_ip_address_or_a_dns_name(host: str, *, valid: bool) -> None:
    """Names that resolvers could take for numbers are no names."""
    assert is_host(host) is valid


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.2", False),
        ("127.0.0.1", "0.0.0.0", True),
        ("localhost", "127.0.0.1", True),
        ("localhost", "0.0.0.0", True),
        ("router.example", "0.0.0.0", True),
        ("router.example", "10.0.0.1", False),
        ("::1", "0.0.0.0", False),
        ("::1", "0:0::1", True),
        ("::", "::1", True),
        ("::", "10.0.0.1", True),
        ("::", "0.0.0.0", True),
    ],
)
def test_addresses_overlap_as_those_of_sockets_do(one: str, other: str, *, expected: bool) -> None:
    """Whichever comes first; the one for all of IPv6 takes IPv4, too."""
    assert overlaps(one, other) is expected
    assert overlaps(other, one) is expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("LOCALHOST.", "127.0.0.1"),
        ("0::0", "::"),
        ("FE80::1", "fe80::1"),
        ("a.example", "a.example"),
    ],
)
def test_bound_address_has_one_spelling(host: str, expected: str) -> None:
    """So that another spelling is no other address."""
    assert bound_address(host) == expected
