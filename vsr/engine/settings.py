"""What all sessions of one configuration share, worked out once."""

import attrs

from vsr.engine.entrypoint import Entrypoints
from vsr.engine.extensions import Surroundings
from vsr.engine.target import DIAGNOSTIC_HEADERS, Keystone
from vsr.graph.run import PlainTail
from vsr.routing.effect import Effect, HeaderEdit, ImmediateResponse

JSON = HeaderEdit(b"content-type", b"application/json")


@attrs.frozen
class Settings:
    """What all sessions of one configuration share."""

    entrypoints: Entrypoints
    plain: PlainTail
    """The graph of every plain request: one call, handed out."""
    model_list: Effect
    """Answers with the list of models."""
    unrouted: Effect
    """Marks an answer that has no target, or is neither success nor failure."""
    unrouted_stream: Effect
    """The same for an event stream."""
    refusal_edits: tuple[HeaderEdit, ...]
    """Fields of an error that the core answers with."""
    surroundings: Surroundings
    may_bypass: bool = False
    """Whether a header of the client takes its request past all routing."""
    may_wait: bool = attrs.field(init=False)
    """Whether deciding may have to wait for the model runtime."""

    @may_wait.default
    def _look_for_waits(self) -> bool:
        return self.entrypoints.is_learned


def compile_settings(
    keystone: Keystone,
    entrypoints: Entrypoints,
    plain: PlainTail,
    model_list: bytes,
    surroundings: Surroundings,
    *,
    may_bypass: bool,
) -> Settings:
    """Work out once what every session of a configuration answers alike."""
    listing = ImmediateResponse(200, (JSON, keystone.version_edit), model_list)
    upstream = keystone.edits(b"upstream")
    return Settings(
        entrypoints=entrypoints,
        plain=plain,
        model_list=Effect(immediate=listing),
        unrouted=Effect(DIAGNOSTIC_HEADERS, upstream),
        unrouted_stream=Effect(DIAGNOSTIC_HEADERS, upstream, stream_response=True),
        refusal_edits=(JSON, *keystone.edits(b"error")),
        surroundings=surroundings,
        may_bypass=may_bypass,
    )
