"""What a graph needs of the request that runs it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import attrs
import msgspec
import trio

from tests.fakes.caller import FakeCaller, Said, Script
from tests.fakes.extensions import REGISTRIES
from vsr.codec.chat_body import ChatBody, read_body
from vsr.deadline import Deadline
from vsr.graph.block import Answer, Suspension
from vsr.graph.budget import Budget
from vsr.graph.compiled import CompiledGraph
from vsr.graph.env import Path
from vsr.graph.executor import execute
from vsr.graph.graph import GraphCompiler
from vsr.graph.ledger import Ledger
from vsr.graph.run import GraphRun, TailCall
from vsr.graph.value import Inputs, ModelRef
from vsr.headers import Headers
from vsr.resources.graph import CallBudget, GraphCall, GraphLimits, GraphSource, ParamSpec
from vsr.resources.program import ModelRef as Candidate
from vsr.resources.reliability import CallOverride, CallPolicy
from vsr.routing.budget import Price
from vsr.routing.outcome import Cause
from vsr.routing.plan import Call, Hop

Step = Mapping[str, object]

PROMPT_TOKENS = 10
OUTPUT_TOKENS = 20
BOUND = PROMPT_TOKENS + OUTPUT_TOKENS
"""Tokens of every attempt that `FakeHops` makes, at most."""
QUESTION = b'{"model":"auto","messages":[{"role":"user","content":"What is it?"}]}'


class FakeTasks:
    """A request that goes on and starts no tasks."""

    cause: Cause | None = None

    def start_soon(self, task: Callable[[], Awaitable[object]], /) -> None:
        """Refuse: no node of these tests may start a task."""
        raise AssertionError(task)

    def end_at(self, at: float, /) -> None:
        """Take no note: nothing else ends these requests."""


@attrs.define
class FakePrompt:
    """A request of so many tokens; notes how often it was measured."""

    tokens: int = PROMPT_TOKENS
    measured: int = 0

    @property
    def token_count(self) -> int:
        """Return the tokens."""
        self.measured += 1
        return self.tokens


@attrs.define(eq=False)
class FakeHops:
    """Implements `routing.ports.Hops`: every model is there, and takes what it is asked."""

    price: Price | None = None
    bounded: list[bool] = attrs.field(factory=list)
    """Whether bounds were asked for, of every hop."""
    error: Exception | None = None
    """Raised in the place of a hop."""

    def open(
        self, model: str, body: ChatBody, *, reliability: CallOverride | None, is_bounded: bool
    ) -> Hop:
        """Return the call."""
        if self.error is not None:
            raise self.error
        self.bounded.append(is_bounded)
        data = body.with_member("model", model).encode()
        call = Call(b"POST", b"/v1/chat/completions", Headers(), data, model.encode())
        call.policy = None if reliability is None else reliability.over(CallPolicy())
        return Hop(call, lambda _, answer: answer, self.price, PROMPT_TOKENS, OUTPUT_TOKENS)


def make_run(
    script: Script | Mapping[str, Said] | FakeCaller | None = None,
    *,
    budget: Budget | None = None,
    timeout_s: float | None = None,
    request: bytes = QUESTION,
    hops: FakeHops | None = None,
) -> GraphRun:
    """Return a run whose backends do as `script` says; a deadline needs a running loop."""
    caller = script if isinstance(script, FakeCaller) else FakeCaller(script or {})
    now = 0.0 if timeout_s is None else trio.current_time()
    return GraphRun(
        tasks=FakeTasks(),
        deadline=Deadline.after(now, timeout_s),
        budget=Budget() if budget is None else budget,
        ledger=Ledger(),
        prompt=FakePrompt(),
        output_bound_tokens=OUTPUT_TOKENS,
        hops=hops or FakeHops(),
        caller=caller,
        inputs=Inputs(read_body(request)),
        unix=lambda: 1_700_000_000.5,
    )


def plain_facts(ref: Candidate) -> ModelRef:
    """Return a model of which nothing is known but its name."""
    return ModelRef(ref.model, ref.called_name, ref.weight)


@attrs.define(eq=False)
class Authored:
    """Compiles graphs and notes what is wrong with them."""

    graphs: Mapping[str, GraphSource] = attrs.field(factory=dict)
    problems: list[str] = attrs.field(factory=list)

    def complain(self, path: Path, what: str, why: str, mend: str) -> None:
        """Note one problem."""
        text = ", ".join(part for part in (what, why, mend) if part)
        self.problems.append(f"{'.'.join(map(str, path))}: {text}")

    def compile(
        self,
        name: str,
        params: Mapping[str, object] | None = None,
        budget: CallBudget | None = None,
    ) -> CompiledGraph | None:
        """Compile the graph called `name` for these parameters."""
        compiler = GraphCompiler(REGISTRIES, self.graphs.get, plain_facts)
        call = GraphCall(name, params or {}, budget or CallBudget())
        return compiler.compile(call, ("algorithm",), self.complain)


def source_of(
    steps: Sequence[Step],
    params: Mapping[str, ParamSpec] | None = None,
    limits: GraphLimits | None = None,
    name: str = "main",
) -> GraphSource:
    """Return a graph as authored."""
    return GraphSource(
        name, params or {}, limits or GraphLimits(), tuple(steps), path=("graphs", name)
    )


def compiled(
    steps: Sequence[Step],
    *,
    specs: Mapping[str, ParamSpec] | None = None,
    params: Mapping[str, object] | None = None,
    limits: GraphLimits | None = None,
    others: Sequence[GraphSource] = (),
) -> CompiledGraph:
    """Compile a graph that must be without fault.

    Args:
        steps: of it.
        specs: of its parameters.
        params: given ones.
        limits: of it.
        others: graphs that it may run inside.
    """
    main = source_of(steps, specs, limits)
    authored = Authored({each.name: each for each in (main, *others)})
    graph = authored.compile("main", params)
    assert authored.problems == []
    assert graph is not None
    return graph


def problems_of(
    steps: Sequence[Step],
    *,
    specs: Mapping[str, ParamSpec] | None = None,
    params: Mapping[str, object] | None = None,
    others: Sequence[GraphSource] = (),
) -> list[str]:
    """Return what is wrong with a graph; see `compiled`."""
    main = source_of(steps, specs)
    authored = Authored({each.name: each for each in (main, *others)})
    authored.compile("main", params)
    return authored.problems


async def run_steps(run: GraphRun, *steps: Step, **more: object) -> Answer | TailCall | Suspension:
    """Compile and run `steps`; see `compiled`."""
    return await execute(compiled(steps, **more), run)  # type: ignore[arg-type]  # passed on


async def told(run: GraphRun, *steps: Step, **more: object) -> str:
    """Run steps whose answer is a text, and return it."""
    answer = await run_steps(run, *steps, **more)
    assert isinstance(answer, Answer)
    assert answer.status == 200
    text: str = msgspec.json.decode(answer.body)["choices"][0]["message"]["content"]
    return text


def caller_of(run: GraphRun) -> FakeCaller:
    """Return the caller that `make_run` made."""
    assert isinstance(run.caller, FakeCaller)
    return run.caller


def ends_of(run: GraphRun) -> list[str]:
    """Return how each call of the ledger ended: model, terminal class and cause."""
    ends = []
    for entry in run.ledger.entries:
        outcome = entry.outcome
        if outcome is None:
            ends.append(f"{entry.model} open")
            continue
        cause = "" if outcome.cause is None else f" {outcome.cause.value}"
        ends.append(f"{entry.model} {outcome.terminal.value}{cause}")
    return ends
