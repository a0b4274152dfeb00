"""Resource `graph`: an authored request graph, and how a decision runs one."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

import attrs
import msgspec

from vsr.resources.stream_comments import NO_COMMENTS, StreamComments

Place = tuple[str | int, ...]
"""Keys and indices from the root of a document."""


CANDIDATES = "models"
"""Name of the parameter that is a decision's candidates, where the decision does not give it."""


class ParamType(StrEnum):
    """What a parameter of a graph takes."""

    MODEL = "model"
    """An alias."""
    MODELS = "models"
    """A list of aliases."""
    MODEL_REFS = "model_refs"
    """A list of candidates: aliases, or mappings with the keys of `modelRefs`."""
    INTEGER = "integer"
    NUMBER = "number"
    STRING = "string"
    BOOLEAN = "boolean"
    DURATION = "duration"
    ENUM = "enum"
    RECORD = "record"
    """A mapping."""
    LIST = "list"


LISTS = frozenset({ParamType.MODELS, ParamType.MODEL_REFS, ParamType.LIST})
"""Types whose values are lists."""


class ParamSpec(msgspec.Struct, frozen=True):
    """One parameter of a graph."""

    type: ParamType
    required: bool = True
    """Whether it must be given; one that is not and has no default is None."""
    default: object = None
    """As authored, like a value that is given; None: there is none."""
    min: float | None = None
    """Least value: of a duration in seconds, of a string its characters, of a list its items."""
    max: float | None = None
    values: tuple[str, ...] = ()
    """What an enum may be."""
    description: str = ""


class OnExhausted(StrEnum):
    """What becomes of the run when a reservation is refused; the step that asked fails."""

    FAIL = "fail"
    """The graph fails."""
    SKIP = "skip"
    """Other branches run on."""
    RESPOND_BEST = "respond_best"
    """They do, and a graph that fails for it answers with the best reply that there is."""


class GraphLimits(msgspec.Struct, frozen=True):
    """Ceilings of one run of a graph; None means no ceiling of its own."""

    timeout_s: float | None = None
    max_hops: int | None = None
    """Attempts of calls, retries and fallbacks included."""
    max_tokens: int | None = None
    max_cost: float | None = None
    """In the currency of the models' prices."""
    on_exhausted: OnExhausted = OnExhausted.SKIP
    strict: bool = False
    """Whether a worst case above the ceilings refuses the graph, and prompts are bounded by their
    bytes, not estimated."""


@attrs.frozen
class GraphSource:
    """A graph as authored; its steps are compiled with the registries of node types."""

    name: str
    """Within its recipe."""
    params: Mapping[str, ParamSpec] = attrs.field(factory=dict, hash=False)
    limits: GraphLimits = attrs.field(factory=GraphLimits)
    steps: tuple[Mapping[str, object], ...] = attrs.field(default=(), hash=False)
    """Plain values; each has a `type`."""
    description: str = ""
    authored: Mapping[str, object] = attrs.field(factory=dict, repr=False, hash=False)
    """The whole mapping as plain values: `params`, `limits`, `steps` and what else was written."""
    file: str = ""
    """Where it stands."""
    path: Place = ()
    """Of it in that file; empty where it has a file of its own."""
    lines: Mapping[Place, int] = attrs.field(factory=dict, repr=False, hash=False)
    """By the path of every value within the graph, its line, 1-based."""
    stream: StreamComments = NO_COMMENTS
    """While a client waits for its stream."""

    def line(self, path: Sequence[str | int] = ()) -> int:
        """Return the line of `path` within the graph, or of its nearest ancestor that exists.

        0 where nothing is known.
        """
        place = tuple(path)
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines.get(place, 0)


@attrs.frozen
class Written:
    """Where a part of a document was written."""

    file: str = ""
    path: Place = ()
    """Of it in that file."""
    lines: Mapping[Place, int] = attrs.field(factory=dict, repr=False, hash=False)
    """By the path of every value within the part, its line, 1-based."""


class CallBudget(msgspec.Struct, frozen=True):
    """What one request may spend in its graph; None means no ceiling."""

    max_prompt_tokens: int | None = None
    max_completion_tokens: int | None = None
    max_total_tokens: int | None = None
    max_cost: float | None = None
    """In the currency of the models' prices."""
    max_wall_time_s: float | None = None
    """Takes the place of the graph's own timeout."""
    on_exhausted: OnExhausted | None = None
    """Takes the place of what the graph's own limits say."""


@attrs.frozen
class GraphCall:
    """A decision's answer by a graph."""

    graph: str
    """Of the same recipe, or `builtin/NAME`."""
    params: Mapping[str, object] = attrs.field(factory=dict, hash=False)
    """By name: plain values as authored, and `resources.program.ModelRef`s."""
    budget: CallBudget = attrs.field(factory=CallBudget)
    written: Written = attrs.field(factory=Written, eq=False, repr=False)
    """Where the decision's algorithm stands."""
    stream: StreamComments = NO_COMMENTS
    """Counts over the graph's own."""
