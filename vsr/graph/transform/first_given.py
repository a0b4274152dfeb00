"""Transformer `first_given`: the first of several texts that is there, such as a default model."""

import attrs

from vsr.errors import GraphFailed
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs
from vsr.registry import Extension


@attrs.frozen
class FirstGiven:
    """Passes over what is null or blank."""

    texts: tuple[str | None, ...]

    def __call__(self, _inputs: Inputs, /) -> str:
        """Return the text as it is.

        Raises:
            GraphFailed: there is none.
        """
        for text in self.texts:
            if text is not None and text.strip():
                return text
        raise GraphFailed("none of the texts is given")


FIRST_GIVEN = Extension[Transformer](name="first_given", config=FirstGiven)
