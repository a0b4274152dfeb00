"""`routing.graphs`: request graphs. Not in the canonical document."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from vsr.config.document.kinds import Duration, NotNegative, Positive, PositiveDuration
from vsr.config.document.objects import REQUIRED, DocumentObject


class GraphParam(DocumentObject, frozen=True):
    """`routing.graphs.NAME.params.NAME`: a typed parameter."""

    type: Annotated[
        Literal[
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
        ],
        REQUIRED,
    ] = "string"
    description: str | None = None
    required: bool | None = None
    default: object = None
    min: object = None
    max: object = None
    values: tuple[str, ...] = ()


class GraphLimits(DocumentObject, frozen=True):
    """`routing.graphs.NAME.limits`: ceilings of one run."""

    timeout: PositiveDuration | None = None
    max_hops: Positive | None = None
    max_tokens: Positive | None = None
    max_cost: NotNegative | None = None
    on_exhausted: Literal["fail", "respond_best", "skip"] = "skip"
    strict: bool = False


class GraphStream(DocumentObject, frozen=True):
    """`routing.graphs.NAME.stream` and `algorithm.stream`: comments before a stream's content."""

    progress: bool | None = None
    keep_alive_after: Duration | None = None


class Graph(DocumentObject, frozen=True):
    """`routing.graphs.NAME`: steps, or `file` alone, which names the file that holds them."""

    file: str | None = None
    name: str | None = None
    description: str | None = None
    params: Mapping[str, GraphParam] = msgspec.field(default_factory=dict)
    limits: GraphLimits = msgspec.field(default_factory=GraphLimits)
    stream: GraphStream | None = None
    steps: tuple[Mapping[str, object], ...] = ()
