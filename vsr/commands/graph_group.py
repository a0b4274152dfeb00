"""The group of the commands on graphs: each is imported when it is asked for."""

from importlib import import_module

import click

_COMMANDS = {
    "dry-run": ("graph_dry_run", "dry_run"),
    "list": ("graph_list", "list_graphs"),
    "render": ("graph_render", "render"),
    "run": ("graph_run", "run"),
    "show": ("graph_show", "show"),
    "test": ("graph_test", "test"),
    "validate": ("graph_validate", "validate"),
}
"""Name of a command, its module in this package, its name there."""


class GraphGroup(click.Group):
    """Imports its commands late, so that starting the Router does not pay for them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        del ctx
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; None if there is none of that name."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        found = getattr(import_module(f"vsr.commands.{module}"), name)
        return found if isinstance(found, click.Command) else None
