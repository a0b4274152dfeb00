"""Which addresses the rules of egress let a connection go to."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsr.config.egress import parse_rule
from vsr.resources.egress import Egress


def egress(allow: str | None = None, deny: str = "") -> Egress:
    """Return the policy of entries between blanks."""
    return Egress(
        None if allow is None else tuple(map(parse_rule, allow.split())),
        tuple(map(parse_rule, deny.split())),
    )


@pytest.mark.parametrize(
    ("allow", "deny", "host", "port", "address", "wanted"),
    [
        (None, "", "a.test", 80, "10.0.0.1", True),
        ("", "", "a.test", 80, "10.0.0.1", False),
        ("10.0.0.0/8", "", "a.test", 80, "10.255.0.1", True),
        ("10.0.0.0/8", "", "a.test", 80, "11.0.0.1", False),
        ("10.0.0.1", "", "10.0.0.1", 80, "10.0.0.1", True),
        ("10.0.0.1", "", "10.0.0.2", 80, "10.0.0.2", False),
        ("10.0.0.0/8:443", "", "a.test", 443, "10.0.0.1", True),
        ("10.0.0.0/8:443", "", "a.test", 444, "10.0.0.1", False),
        ("10.0.0.0/8:8000-8007", "", "a.test", 8000, "10.0.0.1", True),
        ("10.0.0.0/8:8000-8007", "", "a.test", 8007, "10.0.0.1", True),
        ("10.0.0.0/8:8000-8007", "", "a.test", 8008, "10.0.0.1", False),
        ("a.test", "", "a.test", 80, "11.0.0.1", True),
        ("a.test", "", "A.Test.", 80, "11.0.0.1", True),
        ("A.TEST", "", "a.test", 80, "11.0.0.1", True),
        ("a.test", "", "b.a.test", 80, "11.0.0.1", False),
        ("a.test:443", "", "a.test", 80, "11.0.0.1", False),
        ("*.test", "", "a.test", 80, "11.0.0.1", True),
        ("*.test", "", "b.a.test", 80, "11.0.0.1", True),
        ("*.test", "", "test", 80, "11.0.0.1", False),
        ("*.test", "", "atest", 80, "11.0.0.1", False),
        ("*.test", "", ".test", 80, "11.0.0.1", False),
        ("b.test 10.0.0.0/8", "", "a.test", 80, "10.0.0.1", True),
        (None, "10.0.0.0/8", "a.test", 80, "10.0.0.1", False),
        (None, "10.0.0.0/8:22", "a.test", 80, "10.0.0.1", True),
        ("a.test", "10.0.0.0/8", "a.test", 80, "10.0.0.1", False),
        ("10.0.0.0/8", "a.test", "a.test", 80, "10.0.0.1", False),
        ("10.0.0.0/8", "*.test", "a.test", 80, "10.0.0.1", False),
        ("fd00::/8", "", "a.test", 80, "fd00::1", True),
        ("[fd00::/8]:443", "", "a.test", 443, "fd00::1", True),
        ("[fd00::/8]:443", "", "a.test", 80, "fd00::1", False),
        ("0.0.0.0/0", "", "a.test", 80, "fd00::1", False),
        ("::/0", "", "a.test", 80, "10.0.0.1", False),
        (None, "fe80::/10", "a.test", 80, "fe80::1%eth0", False),
        (None, "10.0.0.0/8", "a.test", 80, "no address", False),
        (None, "", "a.test", 80, "no address", False),
    ],
)
def test_address_is_allowed_by_network_or_name(
    allow: str | None, deny: str, host: str, port: int, address: str, *, wanted: bool
) -> None:
    """What denies goes before what allows; a port narrows either; what can't be read is refused."""
    assert egress(allow, deny).allows(host, port, address) is wanted


@pytest.mark.parametrize("form", ["::ffff:{}", "::{}", "64:ff9b::{}"])
@given(denied=st.ip_addresses(v=4))
def test_ipv4_address_is_denied_in_every_form_that_leads_to_it(
    form: str, denied: IPv4Address
) -> None:
    """Mapped into IPv6, as hosts use it, and as gateways translate it."""
    policy = egress(deny=str(denied))

    assert not policy.allows("a.test", 80, str(denied))
    if denied.is_unspecified or (form == "::{}" and int(denied) == 1):
        return  # `::` and `::1` have a meaning of their own
    assert not policy.allows("a.test", 80, form.format(denied))


def test_ipv4_address_is_denied_as_6to4() -> None:
    """2002: and the address in hexadecimal digits."""
    assert not egress(deny="169.254.169.254").allows("a.test", 80, "2002:a9fe:a9fe::1")
    assert egress(deny="169.254.169.254").allows("a.test", 80, "2002:a9fe:a9fd::1")


@given(st.ip_addresses(v=4))
def test_mapped_address_is_allowed_as_what_it_is(address: IPv4Address) -> None:
    """By an IPv4 network, and not by one of IPv6, however large."""
    mapped = f"::ffff:{address}"

    assert egress("0.0.0.0/0").allows("a.test", 80, mapped)
    assert not egress("::/0").allows("a.test", 80, mapped)


@pytest.mark.parametrize(("unspecified", "loopback"), [("0.0.0.0", "127.0.0.0/8"), ("::", "::1")])
def test_unspecified_address_is_denied_with_loopback(unspecified: str, loopback: str) -> None:
    """Connecting there reaches this host."""
    assert not egress(deny=loopback).allows("a.test", 80, unspecified)
    assert egress().allows("a.test", 80, unspecified)


@given(st.ip_addresses(), st.ip_addresses(), st.integers(0, 32))
def test_network_of_an_address_decides_alone(
    address: IPv4Address | IPv6Address, other: IPv4Address | IPv6Address, prefix: int
) -> None:
    """Allowing it and denying it are each other's contrary, where an address means one thing."""
    network = ip_network((other, prefix), strict=False)
    entry = str(network)
    is_plain = True
    if isinstance(address, IPv6Address):
        is_plain = address not in IPv6Network("::/96") and address not in IPv6Network(
            "64:ff9b::/96"
        )
        is_plain &= address.sixtofour is None and address.ipv4_mapped is None
    if not is_plain or address.is_unspecified:
        return

    allowed = egress(entry).allows("a.test", 80, str(address))

    assert allowed == (address in network)
    assert egress(deny=entry).allows("a.test", 80, str(address)) is not allowed


@pytest.mark.parametrize(
    ("allow", "deny", "host", "port", "wanted"),
    [
        (None, "", "a.test", 80, True),
        (None, "a.test", "a.test", 80, False),
        (None, "a.test:22", "a.test", 80, True),
        ("a.test", "", "a.test", 80, True),
        ("b.test", "", "a.test", 80, False),
        ("10.0.0.0/8", "", "a.test", 80, True),
        ("10.0.0.0/8:443", "", "a.test", 80, False),
        ("", "", "a.test", 80, False),
        ("10.0.0.0/8", "", "10.1.1.1", 80, True),
        ("10.0.0.0/8", "", "::ffff:10.1.1.1", 80, True),
        ("10.0.0.0/8", "10.1.0.0/16", "10.1.1.1", 80, False),
        ("10.0.0.0/8", "", "11.1.1.1", 80, False),
        ("*.1", "", "11.1.1.1", 80, False),
    ],
)
def test_load_refuses_what_no_look_up_can_make_allowed(
    allow: str | None, deny: str, host: str, port: int, *, wanted: bool
) -> None:
    """A name may turn out to be in a network; an address is what it is."""
    if allow == "*.1":
        with pytest.raises(ValueError, match="neither"):
            parse_rule(allow)
        return

    assert egress(allow, deny).may_allow(host, port) is wanted


@pytest.mark.parametrize(
    "entry",
    [
        "",
        " ",
        "*",
        "*.",
        "a.*",
        "*.*.test",
        "*a.test",
        "a b",
        "http://a.test",
        "a.test/path",
        "10.0.0.1/8",
        "fd00::1/8",
        "10.0.0.0/33",
        "10.0.0",
        "0x7f000001",
        "a.test:",
        "a.test:0",
        "a.test:65536",
        "a.test:x",
        "a.test:9-8",
        "a.test:1-2-3",
        "a.test:-1",
        "[10.0.0.1]:80",
        "[fd00::1",
        "[fd00::1]80",
        "fe80::1%eth0/64",
    ],
)
def test_entry_that_may_mean_something_else_is_refused(entry: str) -> None:
    """A slip must not open more than was meant."""
    with pytest.raises(ValueError, match=r"it|brackets|port"):
        parse_rule(entry)


@given(st.ip_addresses(), st.integers(1, 65_535))
def test_any_address_is_an_entry(address: IPv4Address | IPv6Address, port: int) -> None:
    """With and without a port; it allows itself, and nothing beside it."""
    shown = str(address)
    with_port = f"[{shown}]:{port}" if address.version == 6 else f"{shown}:{port}"
    other = str(type(address)(int(address) ^ 1))

    for entry in (shown, with_port):
        assert egress(entry).allows("a.test", port, shown)
        assert not egress(entry).allows("a.test", port, other)
    assert not egress(with_port).allows("a.test", port % 65_535 + 1, shown)
