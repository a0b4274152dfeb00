"""Transformer `failure_text`: the message of a failure that has another one behind it."""

import attrs

from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Failure, Inputs
from vsr.registry import Extension


@attrs.frozen
class FailureText:
    """Joins a message and its cause as `text: cause`; without a cause it is the message alone.

    Source: the reference's errors, such as `all models failed: …` of a cascade.
    """

    text: str
    cause: Failure | str | None = None

    def __call__(self, _inputs: Inputs, /) -> str:
        """Return the message."""
        cause = self.cause.message if isinstance(self.cause, Failure) else self.cause
        return f"{self.text}: {cause}" if cause else self.text


FAILURE_TEXT = Extension[Transformer](name="failure_text", config=FailureText)
