"""The flag that says where the management API listens."""

import re

import click

_FORM = re.compile(r"(?:\[([^\]]+)\]|([^:\[\]]+)):([0-9]{1,5})")
_MAX_PORT = 65_535


def read_admin_address(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> tuple[str, int] | None:
    """Return host and port of `HOST:PORT`; port 0 of an empty text, None without the flag.

    Raises:
        BadParameter: it is neither.
    """
    if value is None:
        return None
    if not value.strip() or value.strip() == "0":
        return "", 0
    match = _FORM.fullmatch(value.strip())
    if match is None or int(match[3]) > _MAX_PORT:
        raise click.BadParameter("write it like 127.0.0.1:8080 or [::1]:8080")
    return match[1] or match[2], int(match[3])
