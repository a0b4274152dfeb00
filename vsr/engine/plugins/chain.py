"""All that one decision does to the requests for one of its models."""

from collections.abc import Iterable, Sequence

import msgspec

from vsr.codec.edits import BodyEdit, Changes, Draft
from vsr.codec.envelope import Envelope
from vsr.engine.plugins.plugin import (
    Answer,
    AnswerEdit,
    Contribution,
    Observer,
    Plugin,
    Site,
    Stage,
)
from vsr.errors import ConfigRejected, Problem
from vsr.registry import Registry
from vsr.routing.effect import HeaderEdit

_STREAM, _STREAM_OPTIONS = "stream", "stream_options"


class PluginChain(msgspec.Struct, frozen=True):
    """The plugins of a decision, in the order in which they run; pure."""

    answer: Answer | None = None
    """Answers instead of a backend."""
    params: tuple[BodyEdit, ...] = ()
    """Judge what the client sent."""
    body: tuple[BodyEdit, ...] = ()
    """Add what the Router and the author want."""
    removes: frozenset[bytes] = frozenset()
    """Headers of the request to the backend that go, before any is set."""
    edits: tuple[HeaderEdit, ...] = ()
    answer_edits: tuple[AnswerEdit, ...] = ()
    """Change a whole answer; where there are any, no answer can be streamed."""
    observers: tuple[Observer, ...] = ()

    def draft(self, envelope: Envelope, changes: Changes) -> Draft:
        """Return the request's body with every edit merged, not spliced yet.

        Args:
            envelope: the client's request.
            changes: the Router's own, such as the backend's model name and the wish for usage; no
                plugin takes them back.

        Raises:
            InvalidRequest: what an edit changes is not well-formed.
        """
        draft = Draft(envelope)
        for edit in self.params:
            draft.merge(edit(draft))
        draft.merge(changes)
        if _STREAM_OPTIONS in changes and _STREAM not in draft:
            draft.merge({_STREAM_OPTIONS: None})  # it was blocked, and they go with it
        for edit in self.body:
            draft.merge(edit(draft))
        return draft


def compile_chain(
    resources: Iterable[object],
    site: Site,
    plugins: Registry[Plugin],
    router: Sequence[BodyEdit] = (),
) -> PluginChain:
    """Build the chain of one decision and model.

    Args:
        resources: the decision's plugins, in any order; of two of one type the first counts.
        site: the decision and model.
        plugins: the types there are.
        router: the Router's own edits of the body, such as reasoning, in their order.

    Raises:
        ConfigRejected: a plugin is unknown, or asks for what cannot be done.
    """
    by_resource = {extension.config.resource: extension for extension in plugins}
    first: dict[type[object], object] = {}
    for resource in resources:
        first.setdefault(type(resource), resource)
    built: list[Plugin] = []
    for kind, resource in first.items():
        if kind not in by_resource:
            what = f"there is no plugin for {kind.__name__}"
            raise ConfigRejected([Problem("plugins", what, mend="leave it out")])
        built.append(by_resource[kind].config(resource, site))
    parts = [(plugin.stage, plugin.contribution) for plugin in built]
    parts += [(Stage.ROUTER, Contribution(body=edit)) for edit in router]
    parts.sort(key=lambda part: part[0])
    bodies = [(stage, it.body) for stage, it in parts if it.body is not None]
    return PluginChain(
        answer=next((it.answer for _, it in parts if it.answer is not None), None),
        params=tuple(edit for stage, edit in bodies if stage <= Stage.PARAMS),
        body=tuple(edit for stage, edit in bodies if stage > Stage.PARAMS),
        removes=frozenset().union(*(it.removes for _, it in parts)),
        edits=tuple(edit for _, it in parts for edit in it.edits),
        answer_edits=tuple(it.on_answer for _, it in parts if it.on_answer is not None),
        observers=tuple(it.on_end for _, it in parts if it.on_end is not None),
    )
