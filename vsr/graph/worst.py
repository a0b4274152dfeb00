"""The worst case of a compiled graph: what it may cost on its dearest way, before it runs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import attrs

from vsr.graph.bind import Fields
from vsr.graph.block import Block, CompiledStep, always_ends
from vsr.graph.budget import Limits
from vsr.graph.compiled import CompiledGraph
from vsr.graph.env import Bound, Constant, Deferred
from vsr.resources.reliability import CallPolicy
from vsr.routing.budget import Price

Quantity = Literal["calls", "attempts", "parallel", "output_tokens", "cost_usd", "time_s"]


@attrs.frozen(order=True)
class Gap:
    """Something that nobody can tell beforehand, so that the real worst case may be more."""

    of: Quantity
    why: str


@attrs.frozen
class Worst:
    """What may happen at most, as far as it is known; `gaps` tell what it leaves out."""

    calls: int = 0
    attempts: int = 0
    """Calls with the retries that their policies allow."""
    parallel: int = 0
    """Calls that are under way at once."""
    output_tokens: int = 0
    """Of all attempts."""
    cost_nano_usd: int = 0
    """Of these tokens; what prompts cost is never in it."""
    time_s: float = 0.0
    gaps: frozenset[Gap] = frozenset()

    def then(self, later: "Worst") -> "Worst":
        """Return the worst case of one after the other."""
        return Worst(
            self.calls + later.calls,
            self.attempts + later.attempts,
            max(self.parallel, later.parallel),
            self.output_tokens + later.output_tokens,
            self.cost_nano_usd + later.cost_nano_usd,
            self.time_s + later.time_s,
            self.gaps | later.gaps,
        )

    def either(self, other: "Worst") -> "Worst":
        """Return the worst case of one of the two; each quantity may come from another one."""
        return Worst(
            max(self.calls, other.calls),
            max(self.attempts, other.attempts),
            max(self.parallel, other.parallel),
            max(self.output_tokens, other.output_tokens),
            max(self.cost_nano_usd, other.cost_nano_usd),
            max(self.time_s, other.time_s),
            self.gaps | other.gaps,
        )

    def times(self, count: int) -> "Worst":
        """Return the worst case of doing it `count` times, one after the other."""
        if count < 1:
            return NOTHING
        return attrs.evolve(
            self,
            calls=self.calls * count,
            attempts=self.attempts * count,
            output_tokens=self.output_tokens * count,
            cost_nano_usd=self.cost_nano_usd * count,
            time_s=self.time_s * count,
        )

    def within(self, timeout_s: float | None) -> "Worst":
        """Return what is left of it under a timeout."""
        if not timeout_s:
            return self
        is_open = any(gap.of == "time_s" for gap in self.gaps)
        gaps = frozenset(gap for gap in self.gaps if gap.of != "time_s")
        time_s = timeout_s if is_open else min(self.time_s, timeout_s)
        return attrs.evolve(self, time_s=time_s, gaps=gaps)

    def capped(self, limits: Limits) -> "Worst":
        """Return what is left of it under the ceilings of a graph."""
        hops, tokens, cost = limits.max_hops, limits.max_tokens, limits.max_cost_nano_usd
        if limits.max_completion_tokens is not None:
            tokens = min(tokens or limits.max_completion_tokens, limits.max_completion_tokens)
        return attrs.evolve(
            self,
            calls=_least(self.calls, hops),
            attempts=_least(self.attempts, hops),
            parallel=_least(self.parallel, hops),
            output_tokens=_least(self.output_tokens, tokens),
            cost_nano_usd=_least(self.cost_nano_usd, cost),
        )


NOTHING = Worst()


@attrs.frozen
class Paths:
    """The dearest of a step's ways that go on behind it, and of those that end the graph there."""

    on: Worst | None = NOTHING
    """None: it never goes on."""
    out: Worst | None = None
    """None: it never ends the graph."""

    def whole(self) -> Worst:
        """Return the dearest way."""
        return _dearer(self.on, self.out) or NOTHING

    def then(self, later: "Paths") -> "Paths":
        """Return the ways through one and, where it goes on, the other."""
        if self.on is None:
            return self
        on = None if later.on is None else self.on.then(later.on)
        out = None if later.out is None else self.on.then(later.out)
        return Paths(on, _dearer(self.out, out))

    def either(self, other: "Paths") -> "Paths":
        """Return the ways through one of the two."""
        return Paths(_dearer(self.on, other.on), _dearer(self.out, other.out))


@attrs.frozen
class ModelBounds:
    """What is known of a model's calls in one decision."""

    price: Price | None = None
    max_output_tokens: int | None = None
    policy: CallPolicy = attrs.field(factory=CallPolicy)


@attrs.frozen
class Estimator:
    """Finds the worst case of steps; nodes are handed it for what lies inside of them.

    A node type tells its own by a static method `worst_case(bound, estimator) -> Paths`. One
    without it makes no calls of its own and runs each of its lists of steps once.
    """

    bounds_of: Callable[[str], ModelBounds | None]
    """Returns what is known of the model that is called so; None: nothing."""
    default_output_tokens: int | None = None
    """Longest answer of a model that says none; None: such an answer has no bound."""

    def graph(self, graph: CompiledGraph) -> Worst:
        """Return the worst case of a whole graph under its own limits."""
        worst = self.block(graph.block).whole()
        return worst.capped(graph.limits).within(graph.timeout_s)

    def block(self, block: Block) -> Paths:
        """Return the ways through a list of steps."""
        paths = Paths()
        for step in block.steps:
            paths = paths.then(self._step(step))
        return paths

    def _step(self, step: CompiledStep) -> Paths:
        own = getattr(step.node.cls, "worst_case", None)
        if own is not None:
            paths: Paths = own(step.node.bound, self)
        else:
            paths = Paths()
            for block in blocks_of(step.node):
                paths = paths.then(self.block(block))
        return Paths(None, paths.whole()) if always_ends(step) else paths


def blocks_of(fields: Fields) -> Iterator[Block]:
    """Yield the lists of steps in a node's fields."""
    for bound in fields.bound.values():
        yield from _blocks_of(bound)


def blocks_of_field(bound: Bound | None) -> Sequence[Block]:
    """Return the lists of steps in one field."""
    return list(_blocks_of(bound))


def _blocks_of(held: object) -> Iterator[Block]:
    if isinstance(held, Block):
        yield held
        return
    for part in _parts_of(held):
        yield from _blocks_of(part)


def _parts_of(held: object) -> Iterable[object]:
    match held:
        case Constant(value=value):
            return (value,)
        case Deferred(parts=parts):
            return parts.values()
        case tuple() | list():
            return held
        case Mapping():
            return held.values()
        case _ if attrs.has(type(held)) and not isinstance(held, CompiledGraph):
            return attrs.astuple(held, recurse=False)  # type: ignore[arg-type]  # as just asked
        case _:
            return ()


def block_in(bound: Mapping[str, Bound], name: str) -> Block:
    """Return the list of steps in one field; an empty one where there is none."""
    found = bound.get(name)
    value = found.value if isinstance(found, Constant) else None
    return value if isinstance(value, Block) else Block(())


def _dearer(left: Worst | None, right: Worst | None) -> Worst | None:
    if left is None or right is None:
        return right if left is None else left
    return left.either(right)


def _least(value: int, limit: int | None) -> int:
    return value if limit is None else min(value, limit)
