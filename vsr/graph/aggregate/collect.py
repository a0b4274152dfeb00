"""Aggregate strategies that keep every success: `collect` and its kin, and `concat`."""

from collections.abc import Sequence

import attrs

from vsr.codec.chat_reply import Reply
from vsr.graph.aggregate.strategy import Aggregate
from vsr.graph.aggregate.successes import find_replies, find_successes, wrong_value
from vsr.graph.reading import text_of
from vsr.graph.value import BranchOutcome, Inputs
from vsr.registry import Extension


@attrs.frozen
class Collect:
    """Keeps the replies of the branches that brought one, in declared order."""

    def __call__(
        self, outcomes: Sequence[BranchOutcome[object]], _inputs: Inputs, /
    ) -> tuple[Reply, ...]:
        """Return the replies, none if no branch succeeded.

        Raises:
            GraphFailed: a branch brought something else.
        """
        return tuple(reply for _, reply in find_replies(outcomes))


@attrs.frozen
class CollectTexts:
    """Keeps the texts of the branches that brought one, in declared order; of a reply its content.

    A blank text is a text.
    """

    def __call__(
        self, outcomes: Sequence[BranchOutcome[object]], _inputs: Inputs, /
    ) -> tuple[str, ...]:
        """Return the texts, none if no branch succeeded.

        Raises:
            GraphFailed: a branch brought something that has no text.
        """
        return tuple(_texts(outcomes))


@attrs.frozen
class CollectNumbers:
    """Keeps the numbers of the branches that brought one, in declared order."""

    def __call__(
        self, outcomes: Sequence[BranchOutcome[object]], _inputs: Inputs, /
    ) -> tuple[float, ...]:
        """Return the numbers, none if no branch succeeded.

        Raises:
            GraphFailed: a branch brought something else.
        """
        return tuple(_as_number(index, value) for index, value in find_successes(outcomes))


@attrs.frozen
class Concat:
    """Joins the texts of the branches that brought one, in declared order; of a reply its content.

    Blank texts are left out. The others stay as they are.
    """

    separator: str = "\n\n"

    def __call__(self, outcomes: Sequence[BranchOutcome[object]], _inputs: Inputs, /) -> str:
        """Return the joined text, empty if there is none.

        Raises:
            GraphFailed: a branch brought something that has no text.
        """
        return self.separator.join(text for text in _texts(outcomes) if text.strip())


def _texts(outcomes: Sequence[BranchOutcome[object]]) -> list[str]:
    return [_as_text(index, value) for index, value in find_successes(outcomes)]


def _as_text(index: int, value: object) -> str:
    text = text_of(value)
    if text is None:
        raise wrong_value(index, value, "a text")
    return text


def _as_number(index: int, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong_value(index, value, "a number")
    return float(value)


COLLECT = Extension[Aggregate](name="collect", config=Collect)
COLLECT_TEXTS = Extension[Aggregate](name="collect_texts", config=CollectTexts)
COLLECT_NUMBERS = Extension[Aggregate](name="collect_numbers", config=CollectNumbers)
CONCAT = Extension[Aggregate](name="concat", config=Concat)
