"""What request graphs cost: CPU per node, and what planning a plain request takes.

`python -m bench.graphs [--times 7]` prints medians. Backends answer at once and in this process, so
all that is measured is ours.
"""

import argparse
import time
from collections.abc import Awaitable, Callable, Mapping
from statistics import median

import attrs
import trio

from bench.traffic import chat_reply, chat_request
from vsr.codec.chat_body import ChatBody, read_body
from vsr.config.report import Report
from vsr.config.source import check_bytes
from vsr.deadline import Deadline
from vsr.engine.extensions import Surroundings
from vsr.engine.pipeline import compile_engine
from vsr.engine.shipped import BUILTIN
from vsr.graph.budget import Budget
from vsr.graph.compile import Registries
from vsr.graph.compiled import CompiledGraph
from vsr.graph.conditions.condition import Condition
from vsr.graph.env import Path
from vsr.graph.executor import execute
from vsr.graph.graph import GraphCompiler
from vsr.graph.ledger import Ledger
from vsr.graph.run import GraphRun
from vsr.graph.transform.transformer import Transformer
from vsr.graph.value import Inputs, ModelRef
from vsr.headers import Headers
from vsr.registry import Extension, Registry
from vsr.resources.graph import GraphCall, GraphSource
from vsr.resources.reliability import CallOverride
from vsr.routing.outcome import Cause
from vsr.routing.plan import Call, Hop
from vsr.routing.ports import CallAnswer, Journal
from vsr.routing.request import Request
from vsr.slices import at_once

_ROUNDS = 1_000
_CALLS = 100
_PLANS = 2_000
_MUST_US = 200
_DOCUMENT = """
listeners: [{name: http, address: 127.0.0.1, port: 8899}]
providers:
  defaults: {model: small}
  models: [{name: small, backend_refs: [{endpoint: "127.0.0.1:8000"}]}]
routing:
  signals: {keywords: [{name: code, operator: OR, keywords: [refactor]}]}
  decisions:
    - {name: code, modelRefs: [{model: small}],
       rules: {operator: OR, conditions: [{type: keyword, name: code}]}}
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.graphs", description=__doc__)
    parser.add_argument("--times", type=int, default=7)
    times = parser.parse_args().times
    print(f"CPU, medians of {times}")
    loop, parallel = _compiled(_LOOP), _compiled(_PARALLEL)
    for name, graph, nodes in (
        (f"loop of {_ROUNDS:,}, transform and branch", loop, 2 * _ROUNDS),
        (f"parallel of {_CALLS}, call", parallel, _CALLS),
    ):
        cpu_us = median(trio.run(_cpu_us, _runner(graph)) for _ in range(times)) / nodes
        print(f"{name:40} {cpu_us:7.1f} us per node  (must: under {_MUST_US})")
    cpu_us = median(trio.run(_cpu_us, _planner()) for _ in range(times)) / _PLANS
    print(f"{'plan of a plain request':40} {cpu_us:7.1f} us")


async def _cpu_us(work: Callable[[], Awaitable[None]]) -> float:
    await work()  # not counted
    begun_at = time.process_time()
    await work()
    return (time.process_time() - begun_at) * 1e6


@attrs.frozen
class _Count:
    """One more."""

    value: int

    def __call__(self, inputs: Inputs, /) -> int:
        """Return it."""
        del inputs
        return self.value + 1


@attrs.frozen
class _AtLeast:
    """A number is not less than another one."""

    value: int
    least: int

    def __call__(self, inputs: Inputs, /) -> bool:
        """Return whether it is."""
        del inputs
        return self.value >= self.least


_REGISTRIES = Registries(
    BUILTIN.nodes,
    BUILTIN.aggregates,
    Registry("transformer", [Extension[Transformer]("count", _Count)]),
    Registry("condition", [Extension[Condition]("at_least", _AtLeast)]),
)
_DONE: Mapping[str, object] = {"type": "respond", "from": "done"}
_NEVER = {"at_least": {"value": "$next", "least": _ROUNDS + 1}}
_LOOP: tuple[Mapping[str, object], ...] = (
    {
        "type": "loop",
        "times": _ROUNDS,
        "do": [
            {"id": "next", "type": "transform", "transformer": "count", "value": "$index"},
            {"type": "branch", "cases": [{"when": _NEVER, "then": [_DONE]}]},
        ],
    },
    _DONE,
)
_PARALLEL: tuple[Mapping[str, object], ...] = (
    {"type": "parallel", "times": _CALLS, "do": [{"type": "call", "model": "small"}]},
    _DONE,
)


def _compiled(steps: tuple[Mapping[str, object], ...]) -> CompiledGraph:
    problems: list[str] = []
    source = GraphSource("bench", steps=steps)
    compiler = GraphCompiler(
        _REGISTRIES, {"bench": source}.get, lambda ref: ModelRef(ref.model, ref.called_name)
    )

    def complain(path: Path, what: str, why: str, mend: str) -> None:
        problems.append(f"{path}: {what} {why} {mend}")

    graph = compiler.compile(GraphCall("bench"), (), complain)
    if graph is None or problems:
        raise ValueError(problems)
    return graph


class _Tasks:
    """A request that goes on."""

    cause: Cause | None = None

    def start_soon(self, task: Callable[[], Awaitable[object]], /) -> None:
        """Refuse: graphs start no tasks of the request's."""
        raise AssertionError(task)

    def end_at(self, at: float, /) -> None:
        """Do nothing: only the run's own deadline counts here."""


class _Prompt:
    """A short one."""

    token_count = 10


class _Hops:
    """Every model is there."""

    def open(
        self, model: str, body: ChatBody, *, reliability: CallOverride | None, is_bounded: bool
    ) -> Hop:
        """Return the call."""
        del reliability, is_bounded
        data = body.with_member("model", model).encode()
        call = Call(b"POST", b"/v1/chat/completions", Headers(), data, model.encode())
        return Hop(call, lambda _, answer: answer)


@attrs.frozen
class _Caller:
    """Backends that answer at once."""

    answer: CallAnswer

    async def call(
        self, call: Call, deadline: Deadline, *, limit_bytes: int, journal: Journal
    ) -> CallAnswer:
        """Answer."""
        del call, deadline, limit_bytes, journal
        await trio.lowlevel.checkpoint()
        return self.answer


def _runner(graph: CompiledGraph) -> Callable[[], Awaitable[None]]:
    caller = _Caller(CallAnswer(200, Headers(), chat_reply()))
    inputs = Inputs(read_body(chat_request()))

    async def work() -> None:
        run = GraphRun(
            tasks=_Tasks(),
            deadline=Deadline(),
            budget=Budget(),
            ledger=Ledger(),
            prompt=_Prompt(),
            hops=_Hops(),
            caller=caller,
            inputs=inputs,
        )
        await execute(graph, run)

    return work


def _planner() -> Callable[[], Awaitable[None]]:
    snapshot = check_bytes(_DOCUMENT.encode(), {}, Report("benchmark")).snapshot
    surroundings = Surroundings(time.monotonic, time.time)
    engine = at_once(compile_engine(snapshot, 1, extensions=BUILTIN, surroundings=surroundings))
    body = chat_request()
    lines = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    tasks = _Tasks()

    async def work() -> None:
        for _ in range(_PLANS):
            request = Request(
                b"POST",
                b"/v1/chat/completions",
                b"localhost",
                b"http",
                Headers(list(lines)),
                body,
                "bench",
            )
            await engine.plan(request, tasks, Journal())

    return work


if __name__ == "__main__":
    main()
