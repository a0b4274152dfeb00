"""What the routing core decided about one request, and on what grounds."""

import msgspec


class Evidence(msgspec.Struct):
    """Filled in phase by phase; members stay None where no such step took place."""

    recipe: str | None = None
    decision: str | None = None
    confidence: float | None = None
    model: str | None = None
    """Alias of the model that serves the request."""
    selection_method: str | None = None
    reasoning_mode: str | None = None
    """`on` or `off`."""
    signals: dict[str, list[str]] = {}
    """Signal type to the names of its rules that matched."""
