"""Plugin `request_params`: which members a client may use, and how far."""

from collections.abc import Iterator
from math import isinf
from typing import ClassVar

import attrs

from vsr.codec.dialects import KNOWN_MEMBERS, OUTPUT_LIMITS
from vsr.codec.edits import Changes, Draft
from vsr.engine.plugins.plugin import Capability, Contribution, Plugin, Site, Stage
from vsr.errors import ConfigRejected, Problem
from vsr.registry import Extension
from vsr.resources.plugin import RequestParams

_INDISPENSABLE = frozenset({"model", "messages"})
_NULL = b"null"
_NUMBER_STARTS = b"-0123456789"


@attrs.frozen
class RequestParamsPlugin:
    """Blocks members, fills and caps the output limit, caps `n`, strips what is unknown.

    It judges what the client sent; members that the Router adds afterwards are not subject to it.

    Raises:
        ConfigRejected: a member is blocked without which there is no request.
    """

    resource: ClassVar[type[object]] = RequestParams
    stage: ClassVar[Stage] = Stage.PARAMS
    capability: ClassVar[Capability] = Capability.REQUEST_SAFE

    config: RequestParams = attrs.field()
    site: Site = attrs.field(repr=False)
    _blocked: frozenset[str] = attrs.field(init=False, repr=False)
    _known: frozenset[str] | None = attrs.field(init=False, repr=False)
    """None lets every member pass."""
    _default: Changes = attrs.field(init=False, repr=False)
    _caps: tuple[tuple[str, int], ...] = attrs.field(init=False, repr=False)

    @config.validator
    def _check(self, _attribute: object, config: RequestParams) -> None:
        problems = [
            Problem(
                f"request_params.blocked_params[{at}]",
                f"{name!r} cannot be blocked",
                "no request is complete without it",
                "take it out of the list",
            )
            for at, name in enumerate(config.blocked)
            if name in _INDISPENSABLE
        ]
        if problems:
            raise ConfigRejected(problems)

    @_blocked.default
    def _freeze_blocked(self) -> frozenset[str]:
        return frozenset(self.config.blocked)

    @_known.default
    def _gather_known(self) -> frozenset[str] | None:
        known = KNOWN_MEMBERS | self.site.dialect.own_members
        return known if self.config.strip_unknown else None

    @_default.default
    def _render_default(self) -> Changes:
        limit = self.config.default_max_tokens
        if limit == "auto":
            limit = self.site.output_limit_tokens
        return {} if limit is None else {self.site.dialect.output_limit: b"%d" % limit}

    @_caps.default
    def _list_caps(self) -> tuple[tuple[str, int], ...]:
        limits = {
            **dict.fromkeys(OUTPUT_LIMITS, self.config.max_tokens_limit),
            "n": self.config.max_n,
        }
        return tuple((name, limit) for name, limit in limits.items() if limit is not None)

    @property
    def contribution(self) -> Contribution:
        """Return the edit of the body."""
        return Contribution(body=self.edit)

    def edit(self, draft: Draft) -> Changes:
        """Return the changes for one body."""
        changes: dict[str, bytes | None] = dict.fromkeys(self._gone(draft))
        if self._default and all(_is_unset(name, changes, draft) for name in OUTPUT_LIMITS):
            changes |= self._default
        for name, limit in self._caps:
            value = changes[name] if name in changes else draft.raw(name)
            if value is not None and value[0] in _NUMBER_STARTS:
                number = float(value)
                if not (number.is_integer() or isinf(number)):
                    changes[name] = None
                elif number > limit:
                    changes[name] = b"%d" % limit
        return changes

    def _gone(self, draft: Draft) -> Iterator[str]:
        for name in draft.names():
            if name in self._blocked or (self._known is not None and name not in self._known):
                yield name


def _is_unset(name: str, changes: Changes, draft: Draft) -> bool:
    value = changes[name] if name in changes else draft.raw(name)
    return value is None or value == _NULL


REQUEST_PARAMS = Extension[Plugin](name="request_params", config=RequestParamsPlugin)
