"""A scenario: what the scripted world of a dry run does, and what is expected of the run."""

import math
import random
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import assert_never

import msgspec

from vsr.codec.chat_reply import TokenLogprob, ToolCall
from vsr.demo.faults import Fault
from vsr.routing.budget import Price
from vsr.routing.outcome import Usage


class Shape(StrEnum):
    """How a latency is distributed."""

    FIXED = "fixed"
    NORMAL = "normal"
    LOGNORMAL = "lognormal"
    UNIFORM = "uniform"
    EXPONENTIAL = "exponential"


class Latency(msgspec.Struct, frozen=True):
    """A time, or a distribution of times, in seconds."""

    shape: Shape
    first: float
    """The time itself, the mean, the median (lognormal) or the least value (uniform)."""
    second: float = 0.0
    """The standard deviation, sigma (lognormal) or the greatest value (uniform)."""
    seed: int | None = None
    """Of its own draws; None: the run's."""

    def draw(self, run_seed: int, place: str) -> float:
        """Return the time of one call, never negative.

        Args:
            run_seed: of the run.
            place: of the call; the same place always draws the same time.
        """
        if self.shape is Shape.FIXED:
            return self.first
        seed = f"{run_seed if self.seed is None else self.seed}/{place}"
        rng = random.Random(seed)  # noqa: S311  # a simulation
        return max(self._draw(rng), 0.0)

    def _draw(self, rng: random.Random) -> float:
        match self.shape:
            case Shape.FIXED:
                return self.first
            case Shape.NORMAL:
                return rng.gauss(self.first, self.second)
            case Shape.LOGNORMAL:
                return self.first * math.exp(rng.gauss(0.0, self.second))
            case Shape.UNIFORM:
                return rng.uniform(self.first, self.second)
            case Shape.EXPONENTIAL:
                return rng.expovariate(1 / self.first) if self.first else 0.0
        assert_never(self.shape)


class ReplyScript(msgspec.Struct, frozen=True):
    """What a model says."""

    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    logprobs: tuple[TokenLogprob, ...] | None = None
    """None: not said; made up where the request asks for them."""
    finish_reason: str | None = None
    """None: `tool_calls` where there are some, else `stop`."""


class FaultScript(msgspec.Struct, frozen=True):
    """What a model does in place of a prompt and whole answer."""

    kind: Fault | None = None
    """None: nothing; it takes away the fault that all calls of the model have."""
    status: int = 503
    retry_after_s: int | None = None
    """Told with a status of 429."""
    late_s: float = 30.0
    """From the head to the body where the first byte is slow."""
    after_events: int = 2
    """Events that a stream sends before it breaks off."""
    rate: float = 1.0
    """Share of the calls that meet it."""


class Turn(msgspec.Struct, frozen=True):
    """What a model does when it is called; None is not said."""

    latency: Latency | None = None
    chunk_interval_s: float | None = None
    """Between two events of a stream."""
    reply: ReplyScript | None = None
    usage: Usage | None = None
    no_usage: bool = False
    """Whether the backend does not tell what was used."""
    fault: FaultScript | None = None

    def over(self, base: "Turn") -> "Turn":
        """Return this turn, and what it does not say as `base` has it."""
        return Turn(
            self.latency or base.latency,
            base.chunk_interval_s if self.chunk_interval_s is None else self.chunk_interval_s,
            self.reply or base.reply,
            self.usage or base.usage,
            self.no_usage or (base.no_usage and self.usage is None),
            self.fault or base.fault,
        )


class ModelScript(msgspec.Struct, frozen=True):
    """What one model does."""

    every: Turn = Turn()
    """What holds for each call that says nothing else."""
    calls: tuple[Turn, ...] = ()
    """By the number of the request that reaches the model, retries counted."""
    price: Price | None = None
    """Of a model that no document has."""
    is_unreachable: bool = False

    def turn(self, number: int) -> Turn:
        """Return what the request with this number, from 0, meets."""
        own = self.calls[number] if number < len(self.calls) else Turn()
        return own.over(self.every)


class RuntimeScript(msgspec.Struct, frozen=True):
    """What the model runtime answers."""

    latency: Latency | None = None
    answers: Mapping[str, object] = msgspec.field(default_factory=dict)
    """By key of the bundle, or by topic, which is what stands before a key's last slash."""


class VerifierScript(msgspec.Struct, frozen=True):
    """What a service over HTTP answers that a step asks."""

    latency: Latency | None = None
    status: int = 200
    answer: object = None


class RequestScript(msgspec.Struct, frozen=True):
    """What the client asks."""

    body: Mapping[str, object] = msgspec.field(default_factory=dict)
    """Members of the chat completion."""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    is_assumed: bool = False


class Amounts(msgspec.Struct, frozen=True):
    """A range of numbers of calls; None is no bound."""

    least: int | None = None
    most: int | None = None

    def holds(self, number: int) -> bool:
        """Return whether `number` lies in it."""
        return (self.least is None or number >= self.least) and (
            self.most is None or number <= self.most
        )

    def __str__(self) -> str:
        if self.least == self.most:
            return str(self.least)
        if self.least is None:
            return f"at most {self.most}"
        return f"at least {self.least}" + ("" if self.most is None else f", at most {self.most}")


class TextTest(msgspec.Struct, frozen=True):
    """What a text must be like; every part that is not None holds."""

    equals: str | None = None
    contains: str | None = None
    matches: str | None = None
    """A regular expression, found anywhere."""


class Expectations(msgspec.Struct, frozen=True):
    """What must be true of a run; what is not said may be anything."""

    status: int | None = None
    result: TextTest | None = None
    """Of the answer's text."""
    calls: Amounts | None = None
    calls_of: Mapping[str, Amounts] = msgspec.field(default_factory=dict)
    """By model."""
    attempts: Amounts | None = None
    order: tuple[str, ...] = ()
    """Models, or steps, in the order of their calls' starts; others may come between."""
    never_called: tuple[str, ...] = ()
    max_cost: float | None = None
    max_tokens: int | None = None
    latency_s: float | None = None
    """At most, from the request to the end of the answer."""
    cancelled: tuple[str, ...] = ()
    """Models or steps of which some call was cancelled."""
    cancelled_within_s: float | None = None
    """From the reason of a cancellation to the closed connection at the backend, at most."""


class Scenario(msgspec.Struct, frozen=True):
    """The whole scripted world of one dry run."""

    graph: str | None = None
    """Name or file; None: the file beside the scenario that has its name."""
    config: Path | None = None
    """The document."""
    description: str = ""
    seed: int = 0
    params: Mapping[str, object] = msgspec.field(default_factory=dict)
    request: RequestScript | None = None
    models: Mapping[str, ModelScript] = msgspec.field(default_factory=dict)
    runtime: RuntimeScript = RuntimeScript()
    verifiers: Mapping[str, VerifierScript] = msgspec.field(default_factory=dict)
    """By URL."""
    client_leaves_s: float | None = None
    """Since the request."""
    expect: Expectations | None = None
