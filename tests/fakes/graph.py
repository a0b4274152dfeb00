"""What a graph needs of the request that runs it."""

from collections.abc import Awaitable, Callable, Mapping

import attrs

from vsr.deadline import Deadline
from vsr.graph.budget import Budget
from vsr.graph.context import NodeContext
from vsr.graph.ledger import Ledger
from vsr.headers import Headers
from vsr.resources.reliability import CallOverride, CallPolicy
from vsr.routing.outcome import Cause
from vsr.routing.plan import Call
from vsr.routing.ports import Caller


class FakeTasks:
    """A request that goes on and starts no tasks."""

    cause: Cause | None = None

    def start_soon(self, task: Callable[[], Awaitable[object]], /) -> None:
        """Refuse: no node of these tests may start a task."""
        raise AssertionError(task)


def prepare_call(model: str, reliability: CallOverride | None) -> Call:
    """Return a request that names `model`, with what is changed of the default policy."""
    name = model.encode()
    call = Call(b"POST", b"/v1/chat/completions", Headers(), body=name, route_key=name)
    call.policy = None if reliability is None else reliability.over(CallPolicy())
    return call


@attrs.define
class FakePrompt:
    """A request of so many tokens; notes how often it was measured."""

    tokens: int = 10
    measured: int = 0

    @property
    def token_count(self) -> int:
        """Return the tokens."""
        self.measured += 1
        return self.tokens


def make_context(
    *,
    caller: Caller | None = None,
    budget: Budget | None = None,
    deadline: Deadline | None = None,
    params: Mapping[str, str] | None = None,
    prompt: FakePrompt | None = None,
) -> NodeContext:
    """Return a context; the prompt counts 10 tokens unless given, the output up to 20."""
    return NodeContext(
        tasks=FakeTasks(),
        deadline=deadline or Deadline(),
        budget=budget or Budget(),
        ledger=Ledger(),
        params=params or {"model": "alpha"},
        prompt=prompt or FakePrompt(),
        output_bound_tokens=20,
        prepare=prepare_call if caller is not None else None,
        caller=caller,
    )
