"""The flag that says where the management API listens."""

import click
import pytest

from vsr.commands.admin_address import read_admin_address

CONTEXT, PARAMETER = click.Context(click.Command("x")), click.Option(["--x"])


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (None, None),
        ("", ("", 0)),
        ("0", ("", 0)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("[::1]:8080", ("::1", 8080)),
        ("localhost:65535", ("localhost", 65535)),
    ],
)
def test_address_is_read(text: str | None, address: tuple[str, int] | None) -> None:
    """Port 0 and nothing switch it off; without the flag the document says."""
    assert read_admin_address(CONTEXT, PARAMETER, text) == address


@pytest.mark.parametrize("text", ["8080", "127.0.0.1", "::1:80", "a:65536", "a:b", "http://a:1"])
def test_anything_else_is_refused(text: str) -> None:
    """With the form that is wanted."""
    with pytest.raises(click.BadParameter, match="write it like"):
        read_admin_address(CONTEXT, PARAMETER, text)
