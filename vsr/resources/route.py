"""Resource `route`: a published model name and the program it runs."""

import msgspec

from vsr.resources.reliability import CallOverride


class Route(msgspec.Struct, frozen=True):
    """One virtual model name that clients may ask for."""

    model_name: str
    program: str
    """Name of the program (recipe)."""
    description: str = ""
    """Shown in the model list; empty shows `Entrypoint for the <program> routing recipe`."""
    is_builtin: bool = True
    """True for automatic names, False for authored entrypoints."""
    is_listed: bool = True
    """Whether `/v1/models` shows it; the older automatic names route but are not shown."""
    algorithm: str | None = None
    """Only decisions with this algorithm may match; None means all of the program."""
    calls: CallOverride | None = None
    """What it changes of its models' calls."""
