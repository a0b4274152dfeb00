"""`routing.graphs`: request graphs. Not in the canonical document."""

from collections.abc import Mapping
from typing import Literal

import attrs

from vsr.config.document.kinds import REQUIRED, NotNegative, Positive, PositiveDuration


@attrs.frozen(repr=False, unsafe_hash=False)
class GraphParam:
    """`routing.graphs.NAME.params.NAME`: a typed parameter."""

    type: Literal[
        "boolean",
        "duration",
        "enum",
        "integer",
        "list",
        "model",
        "model_refs",
        "models",
        "number",
        "record",
        "string",
    ] = attrs.field(default="string", metadata=REQUIRED)
    description: str | None = None
    required: bool | None = None
    default: object = None
    min: object = None
    max: object = None
    values: tuple[str, ...] = ()


@attrs.frozen(repr=False, unsafe_hash=False)
class GraphLimits:
    """`routing.graphs.NAME.limits`: ceilings of one run."""

    timeout: PositiveDuration | None = None
    max_hops: Positive | None = None
    max_tokens: Positive | None = None
    max_cost: NotNegative | None = None
    on_exhausted: Literal["fail", "skip"] = "skip"
    strict: bool = False


@attrs.frozen(repr=False, unsafe_hash=False)
class Graph:
    """`routing.graphs.NAME`: steps, or `file` alone, which names the file that holds them."""

    file: str | None = None
    name: str | None = None
    description: str | None = None
    params: Mapping[str, GraphParam] = attrs.field(factory=dict)
    limits: GraphLimits = attrs.field(factory=GraphLimits)
    steps: tuple[Mapping[str, object], ...] = ()
