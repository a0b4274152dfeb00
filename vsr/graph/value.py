"""Values that the steps of a graph pass on."""

from typing import Generic, TypeVar

import attrs
import msgspec

from vsr.codec.chat_body import ChatBody
from vsr.routing.outcome import Cause

T = TypeVar("T")


class Failure(msgspec.Struct, frozen=True, gc=False):
    """Why a step has no value; it stands in its place where the step says `on_error: value`."""

    message: str
    """Safe to show: no address, credential or upstream body."""
    code: str
    """Of the error: see `vsr.errors`."""
    cause: Cause | None = None
    """Why it was ended before its time, where it was."""


class BranchOutcome(msgspec.Struct, Generic[T], frozen=True):
    """How one branch of a `parallel` step ended: with a value or with a failure."""

    index: int
    """Of the branch, in declared order, from 0."""
    value: T | None = None
    """Of its last step; None where it failed, was cancelled or never began."""
    failure: Failure | None = None
    rank: int | None = None
    """How many branches had ended before; None where it was cancelled or never began."""

    @property
    def is_lost(self) -> bool:
        """Return whether it was cancelled or left out: neither a success nor a failure."""
        return self.rank is None


class ModelRef(msgspec.Struct, frozen=True):
    """A model as a parameter of a graph: what is called, and what is known of it."""

    model: str
    """Alias in the configuration."""
    called_name: str
    """The adapter if there is one, else the model."""
    weight: float = 0.0
    use_reasoning: bool | None = None
    """None where nobody says."""
    reasoning_effort: str | None = None
    reasoning_family: str | None = None
    """Name of the model's reasoning family."""
    param_size: str | None = None
    """As written, like `7b`."""
    prompt_per_1m: float | None = None
    """Price of a million prompt tokens; None where the model has no price."""
    completion_per_1m: float | None = None
    quality_score: float | None = None
    is_known: bool = True
    """Whether the configuration says more of it than how to call it."""


class Prompt(msgspec.Struct, frozen=True):
    """A message for a call, and where it goes in the client's conversation."""

    text: str
    place: str = "append"
    """`append`: behind the last message; `replace_last`: in its place; `fresh`: the only one."""


@attrs.frozen
class Inputs:
    """What a pure extension may know of the request besides its own fields."""

    request: ChatBody
    """The client's request as a chat completion, before any step has edited it."""
    seed: int = 0
    """Of the run."""
    is_resumed: bool = False
    """Whether the run goes on with answers of the client's tools."""
    signals: tuple[bool, ...] = ()
    """Of each rule tree in the graph's conditions, whether it holds for the request that began the
    run; see `graph.signal_trees`."""
