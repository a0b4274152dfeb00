"""What a plugin is: compiled for one decision and model, it says what it does to their requests."""

import logging
from collections.abc import Callable, Sequence
from enum import IntEnum, StrEnum
from typing import ClassVar, Protocol

import msgspec

from vsr.codec.dialects import Dialect
from vsr.codec.edits import BodyEdit, Draft
from vsr.routing.effect import HeaderEdit, ImmediateResponse
from vsr.routing.outcome import Outcome

_log = logging.getLogger("vsr.engine")


class Stage(IntEnum):
    """When a plugin runs; the order in the document has no influence.

    Source: the reference's order of execution, with the members of clients judged before the
    Router adds its own, which are no less allowed for being unknown to clients.
    """

    ANSWER = 1
    PARAMS = 2
    """Judges what the client asked for."""
    ROUTER = 3
    """The Router's own members: stream options, reasoning."""
    PROMPT = 4
    HEADERS = 5


class Capability(StrEnum):
    """What a plugin needs of the answer, hence whether a route can honour it."""

    REQUEST_SAFE = "request_safe"
    STREAM_EVENT_SAFE = "stream_event_safe"
    TERMINAL_OBSERVER = "terminal_observer"
    BUFFER_REQUIRED = "buffer_required"


AnswerEdit = Callable[[bytes], bytes]
"""From a whole answer of success, as a chat completion, to what the client gets instead."""
Observer = Callable[[Outcome], None]
"""Told how a routed request ended, once; it can change nothing any more."""
Answer = Callable[[Draft, int], ImmediateResponse]
"""From a request and the Unix seconds to the answer that goes out instead of a call."""


class Site(msgspec.Struct, frozen=True):
    """Where a plugin is compiled for."""

    recipe: str
    decision: str
    keystone: Callable[[bytes], tuple[HeaderEdit, ...]]
    """From a response path to the headers that say which schema and configuration answered."""
    dialect: Dialect = msgspec.field(default_factory=Dialect)
    """What the model's backend speaks."""
    output_limit_tokens: int | None = None
    """The most the model can write, if known."""


class Contribution(msgspec.Struct, frozen=True):
    """What a plugin does to a request; pure, and shared by all requests."""

    answer: Answer | None = None
    body: BodyEdit | None = None
    removes: frozenset[bytes] = frozenset()
    edits: tuple[HeaderEdit, ...] = ()
    on_answer: AnswerEdit | None = None
    """Only for a plugin of class `buffer_required`."""
    on_end: Observer | None = None


class Plugin(Protocol):
    """One plugin of one decision.

    An extension's config class is called with the plugin's resource and the `Site`, and returns
    this; whatever depends on those alone is worked out there.

    Raises:
        ConfigRejected: the resource asks for what cannot be done.
    """

    resource: ClassVar[type[object]]
    """The class of its resource, by which a decision's plugins find it."""
    stage: ClassVar[Stage]
    capability: ClassVar[Capability]

    @property
    def contribution(self) -> Contribution:
        """Return what it does."""
        ...


def tell_all(observers: Sequence[Observer], outcome: Outcome) -> None:
    """Tell every observer, also behind one that fails."""
    for observe in observers:
        try:
            observe(outcome)
        except Exception:  # noqa: BLE001  # the others are told all the same
            _log.exception("an observer failed")
