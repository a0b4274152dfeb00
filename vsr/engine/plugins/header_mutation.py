"""Plugin `header_mutation`: headers of the request to the backend."""

from typing import ClassVar

import attrs

from vsr.engine.plugins.plugin import Capability, Contribution, Plugin, Site, Stage
from vsr.errors import ConfigRejected, Problem, RoutingFailed
from vsr.registry import Extension
from vsr.resources.plugin import HeaderMutation
from vsr.routing.effect import HeaderEdit

_OF_THE_PROXY = (b"x-envoy-", b":")
_OF_THE_CONNECTION = frozenset(
    {
        b"connection",
        b"content-length",
        b"host",
        b"keep-alive",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)


@attrs.frozen
class HeaderMutationPlugin:
    """Sets and removes headers; of several values for one name the last counts.

    Raises:
        ConfigRejected: a name or value cannot be sent; every such one is listed.
    """

    resource: ClassVar[type[object]] = HeaderMutation
    stage: ClassVar[Stage] = Stage.HEADERS
    capability: ClassVar[Capability] = Capability.REQUEST_SAFE

    config: HeaderMutation
    site: Site = attrs.field(repr=False)
    contribution: Contribution = attrs.field(init=False, repr=False)

    @contribution.default
    def _work_out(self) -> Contribution:
        problems: list[Problem] = []
        edits: dict[bytes, HeaderEdit] = {}
        for authored, value in self.config.sets:
            name = _clean(authored)
            if not _is_ours(name):
                continue
            edits.pop(name, None)  # so that the place is that of the last one, too
            try:
                edits[name] = HeaderEdit(name, value)
            except RoutingFailed:
                what = f"the header {authored.decode()!r} cannot be sent"
                why = "its name must be a token and its value without control characters"
                problems.append(Problem("header_mutation", what, why, "correct it"))
        if problems:
            raise ConfigRejected(problems)
        removes = frozenset(filter(_is_ours, map(_clean, self.config.removals)))
        return Contribution(removes=removes, edits=tuple(edits.values()))


def ignored_names(config: HeaderMutation) -> list[str]:
    """Return the names that `config` mentions without effect, for a warning at load.

    They belong to the proxy (`x-envoy-*`, pseudo-headers) or to the connection.
    """
    names = (*(name for name, _ in config.sets), *config.removals)
    return [name.decode() for name in names if not _is_ours(_clean(name))]


def _is_ours(name: bytes) -> bool:
    return not name.startswith(_OF_THE_PROXY) and name not in _OF_THE_CONNECTION


def _clean(name: bytes) -> bytes:
    return name.strip().lower()


HEADER_MUTATION = Extension[Plugin](name="header_mutation", config=HeaderMutationPlugin)
