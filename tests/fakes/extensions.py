"""Small aggregates, transformers and conditions, so that tests of graphs need no shipped ones."""

from collections.abc import Mapping, Sequence
from typing import Literal

import attrs

from vsr.codec.chat_reply import Reply
from vsr.errors import GraphFailed
from vsr.graph.aggregate.strategy import Aggregate
from vsr.graph.compile import Registries
from vsr.graph.conditions.condition import Condition
from vsr.graph.nodes.builtin import BUILTIN_NODES
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import BranchOutcome, Failure, Inputs
from vsr.registry import Extension, Registry


@attrs.frozen
class Told:
    """Tells all there is to an outcome: index, text or failure, rank."""

    def __call__(self, outcomes: Sequence[BranchOutcome[object]], inputs: Inputs, /) -> str:
        """Return one word for each, in order."""
        del inputs
        return " ".join(
            f"{each.index}:{_said(each)}:{'-' if each.rank is None else each.rank}"
            for each in outcomes
        )


@attrs.frozen
class First:
    """The first reply."""

    min_votes: int = attrs.field(default=1, validator=attrs.validators.ge(1))

    def __call__(self, outcomes: Sequence[BranchOutcome[object]], inputs: Inputs, /) -> Reply:
        """Return it; fails if there are fewer than asked for."""
        del inputs
        replies = [each.value for each in outcomes if isinstance(each.value, Reply)]
        if len(replies) < self.min_votes:
            raise GraphFailed("too few replies")
        return replies[0]


@attrs.frozen
class Text:
    """Joins texts."""

    parts: Sequence[str]
    between: str = ""
    case: Literal["keep", "upper"] = "keep"

    def __call__(self, inputs: Inputs, /) -> str:
        """Return them as one."""
        del inputs
        text = self.between.join(self.parts)
        return text.upper() if self.case == "upper" else text


@attrs.frozen
class Count:
    """A number more than another one."""

    value: int
    more: int = 1

    def __call__(self, inputs: Inputs, /) -> int:
        """Return the sum."""
        del inputs
        return self.value + self.more


@attrs.frozen
class Shown:
    """Any value as Python shows it."""

    value: object

    def __call__(self, inputs: Inputs, /) -> str:
        """Return the text."""
        del inputs
        return repr(self.value)


@attrs.frozen
class Record:
    """A mapping of values whose types nobody knows before they are there."""

    members: Mapping[str, object]

    def __call__(self, inputs: Inputs, /) -> Mapping[str, object]:
        """Return it."""
        del inputs
        return self.members


@attrs.frozen
class Equals:
    """Two values are the same."""

    value: object
    to: object = True

    def __call__(self, inputs: Inputs, /) -> bool:
        """Return whether they are."""
        del inputs
        return self.value == self.to


@attrs.frozen
class Succeeded:
    """There is a value, and it is no failure."""

    value: object

    def __call__(self, inputs: Inputs, /) -> bool:
        """Return whether there is."""
        del inputs
        return self.value is not None and not isinstance(self.value, Failure)


@attrs.frozen
class Says:
    """A reply has this text in it; as a predicate on what a branch came to."""

    value: Reply
    text: str = "good"

    def __call__(self, inputs: Inputs, /) -> bool:
        """Return whether it has."""
        del inputs
        return self.text in self.value.content


def _said(outcome: BranchOutcome[object]) -> str:
    if outcome.failure is not None:
        return f"<{outcome.failure.code}>"
    value = outcome.value
    return value.content if isinstance(value, Reply) else str(value)


REGISTRIES = Registries(
    Registry("node type", BUILTIN_NODES),
    Registry(
        "strategy", [Extension[Aggregate]("told", Told), Extension[Aggregate]("first", First)]
    ),
    Registry(
        "transformer",
        [
            Extension[Transformer]("text", Text),
            Extension[Transformer]("count", Count),
            Extension[Transformer]("shown", Shown),
            Extension[Transformer]("record", Record),
        ],
    ),
    Registry(
        "condition",
        [
            Extension[Condition]("equals", Equals),
            Extension[Condition]("succeeded", Succeeded),
            Extension[Condition]("says", Says),
        ],
    ),
)
