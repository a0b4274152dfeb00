"""Where the plugins under test are compiled for."""

from vsr.codec.edits import Draft
from vsr.codec.envelope import open_envelope
from vsr.engine.plugins.builtin import BUILTIN_PLUGINS
from vsr.engine.plugins.plugin import Plugin, Site
from vsr.registry import Registry
from vsr.routing.effect import HeaderEdit

PLUGINS: Registry[Plugin] = Registry("plugin", BUILTIN_PLUGINS)


def keystone(path: bytes) -> tuple[HeaderEdit, ...]:
    """Return the headers that say which schema, path and configuration answered."""
    return (
        HeaderEdit(b"x-vsr-schema-version", b"2"),
        HeaderEdit(b"x-vsr-response-path", path),
        HeaderEdit(b"x-vsr-config-version", b"7"),
    )


SITE = Site(recipe="default", decision="guard", keystone=keystone)


def edited(plugin: Plugin, body: bytes) -> bytes:
    """Return the body after the plugin's edit."""
    draft = Draft(open_envelope(body))
    edit = plugin.contribution.body
    if edit is not None:
        draft.merge(edit(draft))
    return draft.body() or body
