"""Plugins and signals that only tests have."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import attrs
import msgspec

from vsr.codec.chat import ChatRequest
from vsr.decision.signals.signal import LearnedSignal, Signal, SignalMatch
from vsr.engine.plugins.plugin import Capability, Contribution, Plugin, Site, Stage
from vsr.engine.shipped import BUILTIN
from vsr.registry import Extension, Registry
from vsr.resources.program import Program
from vsr.routing.outcome import Outcome


@attrs.define(eq=False)
class Witness:
    """Resource of a plugin that is told how requests end."""

    failure: Exception | None = None
    """Raised whenever it is told something."""
    outcomes: list[Outcome] = attrs.field(factory=list, init=False)


class SecondWitness(Witness):
    """The same once more: of two resources of one class a decision has but the first."""


@attrs.frozen
class Shout:
    """Resource of a plugin that puts a whole answer's text into capitals."""

    failure: Exception | None = None
    """Raised in place of an answer."""


class WitnessPlugin:
    """Notes each outcome in its resource."""

    resource: ClassVar[type[object]] = Witness
    stage: ClassVar[Stage] = Stage.HEADERS
    capability: ClassVar[Capability] = Capability.TERMINAL_OBSERVER

    def __init__(self, config: Witness, site: Site) -> None:
        self._config, self._site = config, site

    @property
    def contribution(self) -> Contribution:
        """Return the observer."""
        return Contribution(on_end=self._note)

    def _note(self, outcome: Outcome) -> None:
        self._config.outcomes.append(outcome)
        if self._config.failure is not None:
            raise self._config.failure


class SecondWitnessPlugin(WitnessPlugin):
    """The same for the other resource."""

    resource: ClassVar[type[object]] = SecondWitness


class ShoutPlugin:
    """Needs the whole answer."""

    resource: ClassVar[type[object]] = Shout
    stage: ClassVar[Stage] = Stage.HEADERS
    capability: ClassVar[Capability] = Capability.BUFFER_REQUIRED

    def __init__(self, config: Shout, site: Site) -> None:
        self._failure, self._site = config.failure, site

    @property
    def contribution(self) -> Contribution:
        """Return the edit of the answer."""
        return Contribution(on_answer=self._shout)

    def _shout(self, body: bytes) -> bytes:
        if self._failure is not None:
            raise self._failure
        return body.replace(b"Hello you", b"HELLO YOU")


PLUGINS: Registry[Plugin] = Registry(
    "plugin",
    [
        *BUILTIN.plugins,
        Extension[Plugin](name="witness", config=WitnessPlugin),
        Extension[Plugin](name="second_witness", config=SecondWitnessPlugin),
        Extension[Plugin](name="shout", config=ShoutPlugin),
    ],
)
WITH_PLUGINS = msgspec.structs.replace(BUILTIN, plugins=PLUGINS)


class Topic:
    """A learned signal that asks under `<prefix>:<rule>` for each of its rules.

    A rule matches if its answer is a number of at least 0.5, which is then its confidence.
    """

    prefix: ClassVar[str]
    rules: ClassVar[Sequence[str]]
    skips: ClassVar[str] = "nothing"
    """Texts with this word in them need no model."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def asks(self, chat: ChatRequest) -> Mapping[str, bytes]:
        """Return the text for every rule."""
        text = chat.evaluation_text
        if self.skips in text:
            return {}
        return {f"{self.prefix}:{rule}": text.encode() for rule in self.rules}

    def judge(self, chat: ChatRequest, answers: Mapping[str, bytes]) -> Sequence[SignalMatch]:
        """Return the rules that were answered with enough, and those that were not answered."""
        if self.skips in chat.evaluation_text:
            return []
        scores = [(rule, answers.get(f"{self.prefix}:{rule}")) for rule in self.rules]
        return [
            SignalMatch(rule, None if score is None else float(score))
            for rule, score in scores
            if score is None or float(score) >= 0.5
        ]


class DomainTopic(Topic):
    """Asks for the domain of every text."""

    prefix: ClassVar[str] = "domain"
    rules: ClassVar[Sequence[str]] = ("math", "law")


class ToneTopic(Topic):
    """Asks for the tone of texts that do not greet."""

    prefix: ClassVar[str] = "tone"
    rules: ClassVar[Sequence[str]] = ("rude",)
    skips: ClassVar[str] = "hello"


LEARNED_SIGNALS: Registry[Signal | LearnedSignal] = Registry(
    "signal",
    [
        *BUILTIN.signals,
        Extension[Signal | LearnedSignal](name="domain", config=DomainTopic),
        Extension[Signal | LearnedSignal](name="tone", config=ToneTopic),
    ],
)
WITH_LEARNED_SIGNALS = msgspec.structs.replace(BUILTIN, signals=LEARNED_SIGNALS)
