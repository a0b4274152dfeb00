"""Node type `loop`: run the same steps again and again, one round after the other."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar

import attrs
import msgspec
import trio

from vsr.deadline import NO_DEADLINE
from vsr.errors import GraphFailed
from vsr.graph.bind import SCOPE, SECONDS, kind_of
from vsr.graph.block import BROKEN, Block, Node, is_flow
from vsr.graph.context import NodeContext
from vsr.graph.env import Bound, Constant, Env, Known, Static, known_of, name_faults
from vsr.graph.kinds import Kind, item_of
from vsr.graph.late import Condition, Expression
from vsr.graph.suspend.record import Keeps
from vsr.graph.worst import Estimator, Paths, block_in
from vsr.graph.worst_call import is_unbounded, repeated
from vsr.registry import Extension

_GIVEN = Known(is_given=True)


def _word(bound: Mapping[str, Bound], field: str, default: str) -> str:
    found = bound.get(field)
    return found.value if isinstance(found, Constant) and isinstance(found.value, str) else default


def _inside(env: Env, bound: Mapping[str, Bound]) -> Env:
    """Return what a round sees: its item, its number, and the loop's state."""
    names = dict(LoopNode.later_names(env, bound))
    names[_word(bound, "index", "index")] = Static(int, zone=env.zone, known=_GIVEN)
    over = bound.get("over")
    if over is not None and not (isinstance(over, Constant) and over.value is None):
        item = item_of(kind_of(over)) or object
        known = known_of(over).item()
        names[_word(bound, "as_", "item")] = Static(item, zone=env.zone, known=known)
    return attrs.evolve(env.with_names(names), in_loop=True)


def _behind(env: Env, bound: Mapping[str, Bound]) -> Env:
    """Return what the end of a round sees."""
    block = bound.get("do")
    seen = _inside(env, bound)
    if isinstance(block, Constant) and isinstance(block.value, Block):
        return seen.with_names(block.value.names)
    return seen


@attrs.frozen
class LoopNode:
    """Runs its steps once per item, so many times, or until a condition holds."""

    keeps: ClassVar[Keeps] = "nothing"
    over: Sequence[object] | None = None
    times: int | None = None
    as_: str = "item"
    index: str = "index"
    """Name of the round's number, from 0."""
    max_items: int | None = None
    """The most rounds; needed where a result says how many there are. More of them fail."""
    state: Mapping[str, Expression] = attrs.field(factory=dict)
    """Variables that `set` changes, with what they are before the first round."""
    timeout: Annotated[float | None, SECONDS] = None
    """Of all calls of its rounds together: one that is under way by then fails, and so do those
    after it. Where a run goes on that had stopped in a round, it has no such limit."""
    do: Block = attrs.field(kw_only=True, metadata={SCOPE: _inside})
    until: Condition | None = attrs.field(default=None, metadata={SCOPE: _behind})
    """Asked behind every round."""
    yield_: Expression | None = attrs.field(default=None, metadata={SCOPE: _behind})
    """What a round adds to the step's value; None: the value of its last step."""

    def __attrs_post_init__(self) -> None:
        """Check that its end is known."""
        if self.over is not None and self.times is not None:
            raise ValueError("give over or times, not both")
        if self.over is None and self.times is None and self.max_items is None:
            raise ValueError("give over, times or max_items")

    @staticmethod
    def later_names(env: Env, bound: Mapping[str, Bound]) -> Mapping[str, Static]:
        """Return the variables that it declares, which later steps see, too."""
        state = bound.get("state")
        members = state.value if isinstance(state, Constant) else None
        names = members if isinstance(members, Mapping) else {}
        return {name: Static(object, zone=env.zone, is_variable=True) for name in names}

    @staticmethod
    def faults(env: Env, bound: Mapping[str, Bound]) -> Iterator[str]:
        """Yield what is wrong with what says how many rounds there are, and with its names."""
        own = (_word(bound, "as_", "item"), _word(bound, "index", "index"))
        yield from name_faults((*own, *LoopNode.later_names(env, bound)))
        if is_unbounded(bound, ("over", "times")):
            yield "a result says how many rounds there are: give the most in `max_items`"

    @staticmethod
    def worst_case(bound: Mapping[str, Bound], estimator: Estimator) -> Paths:
        """Return the worst case of the most rounds; the last one may end the graph."""
        count, gaps = repeated(bound, ("over", "times"), bound.get("max_items"))
        paths = estimator.block(block_in(bound, "do"))
        # Behind a `break` or the last round the graph goes on, wherever the round has ended.
        on = paths.whole().times(count)
        return Paths(attrs.evolve(on, gaps=on.gaps | gaps))

    @staticmethod
    def result_kind(bound: Mapping[str, Bound]) -> Kind:
        """Return the type of the step's value."""
        block, given = bound.get("do"), bound.get("yield_")
        kind: Kind = object
        if isinstance(given, Constant) and isinstance(given.value, Expression):
            kind = kind_of(given.value.bound)
        elif isinstance(block, Constant) and isinstance(block.value, Block):
            kind = block.value.kind
        return tuple[kind, ...]  # type: ignore[valid-type]  # known only now

    async def run(self, ctx: NodeContext) -> object:
        """Return what each whole round yields, in order.

        Raises:
            GraphFailed: there are more rounds than `max_items`.
        """
        items = self._items()
        ctx = self._timed(ctx)
        for name, initial in self.state.items():
            ctx.scope.names[name] = initial.value(ctx.scope)
        yielded: list[object] = []
        for index, item in enumerate(items):
            names: dict[str, object] = {self.index: index}
            if self.over is not None:
                names[self.as_] = item
            inner = ctx.inside(names, number=index)
            value = await self.do.run(inner)
            if value is BROKEN:
                break
            if is_flow(value):
                return value
            yielded.append(value if self.yield_ is None else self.yield_.value(inner.scope))
            if self.until is not None and self.until.holds(inner.scope, ctx.inputs):
                break
        return tuple(yielded)

    def _timed(self, ctx: NodeContext) -> NodeContext:
        waiting = ctx.run.waiting
        resumed = None if waiting is None else waiting.resumed
        if not self.timeout or (resumed is not None and resumed.path.startswith(f"{ctx.path}[")):
            return ctx
        deadline = NO_DEADLINE.after(trio.current_time(), self.timeout)
        run = ctx.run.narrowed(ctx.run.deadline.narrowed(deadline), ctx.run.budget)
        return msgspec.structs.replace(ctx, run=run)

    def _items(self) -> Sequence[object]:
        most = self.max_items
        if self.over is None and self.times is None:
            return range(most or 0)
        items = range(self.times or 0) if self.over is None else self.over
        if most is not None and len(items) > most:
            counted = "rounds" if self.over is None else "items"
            raise GraphFailed(f"a loop has {len(items)} {counted}, more than {most}")
        return items


LOOP = Extension[Node](name="loop", config=LoopNode)
