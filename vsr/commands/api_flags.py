"""The flags of commands that ask a management API."""

import os
from urllib.parse import urlsplit

import click

_DEFAULT_PORT = 8080
TOKEN_VARIABLE = "VSR_MGMT_TOKEN"  # noqa: S105  # the name of a variable


def read_api(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str:
    """Return the URL of the API that a flag names; a callback of click.

    Raises:
        BadParameter: it is no URL of one.
    """
    url = value or _default_url()
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
        raise click.BadParameter("write it like http://127.0.0.1:8080")
    return url.rstrip("/")


ASKS_API = click.option(
    "--admin-url",
    "api",
    metavar="URL",
    envvar="VSR_ADMIN_URL",
    callback=read_api,
    help=f"The management API.  [default: http://127.0.0.1:8080; token: {TOKEN_VARIABLE}]",
)
"""The flag that says which API a command asks; it gets the URL as `api`."""
OUTPUT = click.option(
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the output.",
)


def _default_url() -> str:
    offset = os.environ.get("VLLM_SR_PORT_OFFSET", "0")
    port = _DEFAULT_PORT + (int(offset) if offset.isascii() and offset.isdigit() else 0)
    return f"http://127.0.0.1:{port}"
