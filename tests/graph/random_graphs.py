"""Random graphs as authors write them, and backends that do anything."""

import itertools
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

import attrs

from tests.fakes.caller import Said
from tests.fakes.graph import Step, source_of
from vsr.errors import UpstreamReset
from vsr.graph.budget import Limits
from vsr.resources.graph import GraphLimits, GraphSource, OnExhausted, ParamSpec, ParamType

T = TypeVar("T")
MODELS = ("alpha", "beta", "gamma")
MAX_DEPTH = 5
_NESTED = ("inner", "outer")
_CASES: tuple[dict[str, object], ...] = (
    {"equals": {"value": 1, "to": 1}},
    {"equals": {"value": 1, "to": 2}},
    {"not": {"any": [{"equals": {"value": "x", "to": "y"}}]}},
)


@attrs.frozen
class _Place:
    """Where a list of steps stands."""

    depth: int
    names: tuple[str, ...] = ()
    """Of steps that it sees."""
    variables: tuple[str, ...] = ()
    """That it may set."""
    in_loop: bool = False
    may_respond: bool = True
    graphs: tuple[str, ...] = _NESTED
    """That it may run."""


@attrs.define
class GraphMaker:
    """Makes graphs of all node types; the same random source makes the same ones."""

    random: Random
    _numbers: "itertools.count[int]" = attrs.field(factory=itertools.count)

    def sources(self) -> dict[str, GraphSource]:
        """Return a graph called `main`, and those that it runs."""
        model = {"model": ParamSpec(ParamType.MODEL)}
        made = {}
        for at, name in enumerate(_NESTED):
            limits = GraphLimits(self._maybe(3.0), self._maybe(2), on_exhausted=self._exhausted())
            steps = self._whole(_Place(MAX_DEPTH - 1, graphs=_NESTED[:at]))
            made[name] = source_of(steps, model, limits, name)
        limits = GraphLimits(on_exhausted=self._exhausted())
        made["main"] = source_of(self._whole(_Place(0)), {}, limits)
        return made

    def _whole(self, place: _Place) -> list[Step]:
        steps, _ = self._list(place, 4)
        return [*steps, {"type": "respond", "from": "done"}]

    def _exhausted(self) -> OnExhausted:
        return self.random.choice(list(OnExhausted))

    def _maybe(self, value: T) -> T | None:
        return value if self.random.random() < 0.3 else None

    def _list(self, place: _Place, most: int) -> tuple[list[Step], _Place]:
        steps: list[Step] = []
        for _ in range(self.random.randint(1, most)):
            name = f"s{next(self._numbers)}"
            step = {"id": name, "on_error": self._on_error(), **self._step(place)}
            if step["type"] == "parallel":
                step["on_error"] = self.random.choice(["fail", "skip", "skip", "fail_after_all"])
            steps.append(step)
            place = attrs.evolve(place, names=(*place.names, name))
        return steps, place

    def _on_error(self) -> str:
        return self.random.choice(["fail", "skip", "skip", "skip", "value", "value"])

    def _step(self, place: _Place) -> dict[str, Any]:
        deep: tuple[Callable[[_Place], dict[str, Any]], ...] = (
            self._parallel, self._parallel, self._loop, self._branch, self._subgraph,
        )  # fmt: skip
        flat = (
            self._call, self._call, self._transform, self._assess, self._aggregate, self._set,
            self._rate,
        )  # fmt: skip
        makers = flat + deep if place.depth < MAX_DEPTH else flat
        return self.random.choice(makers)(attrs.evolve(place, depth=place.depth + 1))

    def _call(self, place: _Place) -> dict[str, Any]:
        del place
        step: dict[str, Any] = {
            "type": "call",
            "model": self.random.choice(MODELS),
            "timeout": self._maybe("2s"),
        }
        if self.random.random() < 0.3:
            step["edits"] = [{"append": "$request.question"}, {"temperature": 0.5}]
        return step

    def _transform(self, place: _Place) -> dict[str, Any]:
        value = f"${self.random.choice(place.names)}" if place.names else "nothing"
        return {"type": "transform", "transformer": "shown", "value": value}

    def _aggregate(self, place: _Place) -> dict[str, Any]:
        values = [f"${name}" for name in place.names[-3:]]
        return {"type": "aggregate", "strategy": "told", "from": values}

    def _assess(self, place: _Place) -> dict[str, Any]:
        del place
        return {"type": "assess", "asks": ["a", {"b": 1}]}

    def _rate(self, place: _Place) -> dict[str, Any]:
        del place
        return {"type": "rate", "reply": None, "score": self.random.random(), "threshold": 0.5}

    def _set(self, place: _Place) -> dict[str, Any]:
        if not place.variables:
            return self._call(place)
        return {"type": "set", "values": {self.random.choice(place.variables): "again"}}

    def _parallel(self, place: _Place) -> dict[str, Any]:
        inside = attrs.evolve(place, variables=(), in_loop=False, may_respond=False)
        step: dict[str, Any] = {
            "type": "parallel",
            "max_concurrency": self._maybe(2),
            "first_k": self._maybe(self.random.randint(1, 2)),
            "stagger": self._maybe("700ms"),
            "timeout": self._maybe("3s"),
            "on_timeout": self.random.choice(["partial", "fail"]),
        }
        if self.random.random() < 0.2:
            step["success"] = {"succeeded": {}}
        if self.random.random() < 0.5:
            step["branches"] = [self._list(inside, 2)[0] for _ in range(self.random.randint(1, 3))]
        else:
            step |= {"times": self.random.randint(0, 3), "index": f"i{next(self._numbers)}"}
            step["do"] = self._list(inside, 2)[0]
        return step

    def _loop(self, place: _Place) -> dict[str, Any]:
        variable = f"v{next(self._numbers)}"
        inside = attrs.evolve(place, in_loop=True, variables=(*place.variables, variable))
        step: dict[str, Any] = {
            "type": "loop", "index": f"i{next(self._numbers)}", "state": {variable: "once"},
            "times": self.random.randint(0, 3), "do": self._list(inside, 2)[0],
        }  # fmt: skip
        if self.random.random() < 0.3:
            step["until"] = {"equals": {"value": f"${variable}", "to": "again"}}
            step["yield"] = f"${variable}"
        return step

    def _branch(self, place: _Place) -> dict[str, Any]:
        arms = []
        for case in self.random.sample(_CASES, 2):
            steps, _ = self._list(place, 2)
            arms.append({"when": case, "then": [*steps, *self._end(place)]})
        step: dict[str, Any] = {"type": "branch", "cases": arms}
        if self.random.random() < 0.5:
            step["else"] = self._list(place, 1)[0]
        else:
            arms[0]["then"] = self._list(place, 1)[0]  # an arm that comes to its end
        return step

    def _end(self, place: _Place) -> list[dict[str, Any]]:
        """Return what ends an arm, now and then."""
        ends: list[list[dict[str, Any]]] = [[], [], [{"type": "fail", "message": "no"}]]
        if place.in_loop:
            ends.append([{"type": "break"}])
        if place.may_respond:
            ends.append([{"type": "respond", "from": "early"}])
        return self.random.choice(ends)

    def _subgraph(self, place: _Place) -> dict[str, Any]:
        if not place.graphs:
            return self._call(place)
        name = self.random.choice(place.graphs)
        return {"type": "subgraph", "graph": name, "params": {"model": "alpha"}}


def seeded(seed: int | str) -> Random:
    """Return a source of numbers that only the seed decides on."""
    return Random(seed)  # noqa: S311  # no secrets


def random_said(seed: int, model: str, number: int) -> Said:
    """Return what a backend does with a call; no two calls take exactly as long."""
    random = seeded(f"{seed}/{model}/{number}")
    after_s = random.choice([0, 0, 1, 1, 2, 4]) + random.random() / 1000
    retries = [random.random() < 0.5 for _ in range(random.choice([0, 0, 0, 1, 2]))]
    usage = random.choice([(10, 20), (3, 4), (10, 1), None])
    kind = random.choice(["fine", "fine", "fine", "status", "error", "nonsense"])
    said = Said("fine", after_s, usage=usage, retries=retries)
    if kind == "error":
        return attrs.evolve(said, error=UpstreamReset())
    if kind == "status":
        return attrs.evolve(said, status=random.choice([429, 500]))
    return attrs.evolve(said, body=b"<html>") if kind == "nonsense" else said


def random_limits(random: Random) -> Limits:
    """Return ceilings, or none."""
    return Limits(
        random.choice([None, None, 1, 4, 9]),
        random.choice([None, None, 60, 200]),
        random.choice([None, None, 35]),
        random.choice([None, None, 70]),
        random.choice([None, None, 100_000]),
    )
