"""The flags of commands that ask a management API."""

import os
from typing import NamedTuple
from urllib.parse import urlsplit

import click

_DEFAULT_PORT = 8080
TOKEN_VARIABLE = "VSR_MGMT_TOKEN"  # noqa: S105  # the name of a variable
_CA_FILE = "vsr.admin_ca_file"


class Target(NamedTuple):  # no struct: every command of all loads this
    """Which API a command asks, and whom it trusts."""

    url: str
    ca_file: str | None = None
    """Of certificates that are trusted; None: those of the system."""


def read_api(ctx: click.Context, _param: click.Parameter, value: str | None) -> Target:
    """Return the API that a flag names; a callback of click.

    Raises:
        BadParameter: it is no URL of one.
    """
    url = value or _default_url()
    if not _is_url(url):
        raise click.BadParameter("write it like http://127.0.0.1:8080")
    return Target(url.rstrip("/"), ctx.meta.get(_CA_FILE))


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_bound = parts.port is None or parts.port > 0
    except ValueError:
        return False
    is_plain = parts.username is None and not parts.query and not parts.fragment
    return is_bound and is_plain and parts.scheme in {"http", "https"} and bool(parts.hostname)


def _read_ca_file(ctx: click.Context, _param: click.Parameter, value: str | None) -> None:
    ctx.meta[_CA_FILE] = value


TRUSTS = click.option(
    "--admin-ca-file",
    metavar="FILE",
    envvar="VSR_ADMIN_CA_FILE",
    type=click.Path(exists=True, dir_okay=False),
    callback=_read_ca_file,
    expose_value=False,
    is_eager=True,  # it is there when the other is read
    help="Certificates that are trusted where the URL is https.  [default: the system's]",
)
"""The flag that says whom a command trusts, beside `ASKS_API`."""
ASKS_API = click.option(
    "--admin-url",
    "api",
    metavar="URL",
    envvar="VSR_ADMIN_URL",
    callback=read_api,
    help=f"The management API.  [default: http://127.0.0.1:8080; token: {TOKEN_VARIABLE}]",
)
"""The flag that says which API a command asks; it gets a `Target` as `api`."""
OUTPUT = click.option(
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the output.",
)
AS_JSON = click.option("--json", "output", flag_value="json", help="Like --output json.")
"""The short form of it, below `OUTPUT`."""


def _default_url() -> str:
    offset = os.environ.get("VLLM_SR_PORT_OFFSET", "0")
    port = _DEFAULT_PORT + (int(offset) if offset.isascii() and offset.isdigit() else 0)
    return f"http://127.0.0.1:{port}"
