"""What a transformer provides."""

from typing import Protocol

from vsr.graph.value import Inputs


class Transformer(Protocol):
    """Pure: its fields are its configuration, with every reference replaced by its value."""

    def __call__(self, inputs: Inputs, /) -> object:
        """Return the step's value; the annotation of what is returned is the step's type.

        Raises:
            GraphFailed: there is no value; the message is shown to the client.
        """
        ...
