"""How much a prompt template may do, and what of a value it may write."""

import msgspec

MAX_OUTPUT_CHARACTERS = 1 << 22
MAX_WORK = 200_000
"""Expressions of one run, with one more for every 64 characters handled."""

_CHARACTERS_PER_WORK = 64
_INT64 = 1 << 63


class PromptFault(Exception):
    """What a template may not do; the message shows no data."""


class Meter(msgspec.Struct):
    """Counts the work of one run."""

    work: int = 0

    def spend(self, work: int) -> None:
        """Count `work` expressions.

        Raises:
            PromptFault: it is too much.
        """
        self.work += work
        if self.work > MAX_WORK:
            raise PromptFault(f"it takes more than {MAX_WORK} steps")

    def spend_text(self, characters: int) -> None:
        """Count a text of this length, before it is made.

        Raises:
            PromptFault: it is too long, or the work is too much.
        """
        if characters > MAX_OUTPUT_CHARACTERS:
            raise PromptFault(f"a text becomes longer than {MAX_OUTPUT_CHARACTERS} characters")
        self.spend(1 + characters // _CHARACTERS_PER_WORK)


def as_text(value: object) -> str:
    """Return a text, number or truth value as it is written.

    Raises:
        PromptFault: it is something else, of which a prompt has to say what it wants.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return str(value)
    if value is None:
        raise PromptFault("a value that is nothing cannot be written; use the filter 'default'")
    raise PromptFault("only texts and numbers can be written; use the filter 'tojson'")


def as_number(value: object) -> int | float:
    """Return a number that is no larger than 64 bits.

    Raises:
        PromptFault: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise PromptFault("only numbers can be calculated with")
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise PromptFault("a number becomes too large")
    return value
