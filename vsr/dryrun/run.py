"""One dry run: a whole Router, its backends and its client in memory, on a clock that jumps."""

import random
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Protocol

import attrs
import msgspec
import trio

from vsr.dryrun.client import Exchange
from vsr.dryrun.clock import JumpingClock
from vsr.dryrun.observer import Observer, record_of
from vsr.dryrun.record import CallRecord, PolicyNote, Record
from vsr.dryrun.scenario import RequestScript, Scenario
from vsr.dryrun.subject import MODEL, PORT, Subject
from vsr.dryrun.transport import Backends, ScriptedFetch, ScriptedRuntime, World, virtual
from vsr.errors import ConfigRejected
from vsr.graph.run import GraphRun
from vsr.network.memory import MemoryNetwork
from vsr.resources.snapshot import Snapshot
from vsr.routing.outcome import Cause
from vsr.routing.ports import Runtime

_EPOCH_S = 1_700_000_000
"""What the virtual wall clock says when a run begins."""
_PATIENCE_S = 7 * 86_400.0
"""Of the client. Virtual, so that waiting for it takes no time."""
_SETTLE_S = 0.001
"""For what the end of the answer ends in turn."""
ASSUMED_QUESTION = "Why is the sky blue?"


class Surroundings(msgspec.Struct, frozen=True):
    """What the Router of a dry run has in place of the world."""

    network: MemoryNetwork
    rng: random.Random
    runtime: Runtime
    monotonic: Callable[[], float]
    unix: Callable[[], float]
    on_run: Callable[[GraphRun], None]


class StartRouter(Protocol):
    """Starts a Router on a snapshot; it serves until the nursery is cancelled."""

    def __call__(
        self, nursery: trio.Nursery, snapshot: Snapshot, surroundings: Surroundings, /
    ) -> Awaitable[Callable[[], Sequence[PolicyNote]]]:
        """Return once it serves, with what tells afterwards what its policies did."""
        ...


def dry_run(subject: Subject, scenario: Scenario, seed: int, start: StartRouter) -> Record:
    """Run the graph once in virtual time; the same arguments give the same record.

    Raises:
        ConfigRejected: the graph does not fit what it is given.
    """
    try:
        return trio.run(_Run(subject, scenario, seed, start).run, clock=JumpingClock())
    except BaseExceptionGroup as group:
        raise rejection_in(group) or group from None


def rejection_in(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """Return the rejection that a nursery wrapped, if it is what ended the run."""
    found: BaseException | None = group.subgroup(ConfigRejected)
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


def request_of(scenario: Scenario) -> RequestScript:
    """Return what the client asks; made up where the scenario does not say."""
    if scenario.request is not None:
        return scenario.request
    messages = [{"role": "user", "content": ASSUMED_QUESTION}]
    return RequestScript({"messages": messages}, is_assumed=True)


class _Run(msgspec.Struct, frozen=True, eq=False):
    subject: Subject
    scenario: Scenario
    seed: int
    start_router: StartRouter

    async def run(self) -> Record:
        network, now = MemoryNetwork(), trio.lowlevel.current_clock().current_time
        world = World(self.scenario, self.seed)
        snapshot = self.subject.snapshot
        snapshot = msgspec.structs.replace(snapshot, clusters=virtual(snapshot.clusters))
        observer, backends = Observer(now), Backends(network, world)

        def watch(run: GraphRun) -> None:
            observer.attach(run)
            run.fetch = ScriptedFetch(world, self.scenario.verifiers)
            if run.inputs is not None:
                run.inputs = attrs.evolve(run.inputs, seed=self.seed)

        around = Surroundings(
            network=network,
            rng=random.Random(self.seed),  # noqa: S311  # a simulation
            runtime=ScriptedRuntime(world, self.scenario.runtime),
            monotonic=now,
            unix=lambda: _EPOCH_S + now(),
            on_run=watch,
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(network.run)
            await backends.start(snapshot.clusters, nursery)
            notes = await self.start_router(nursery, snapshot, around)
            record = await self._ask(network, observer, backends)
            record = msgspec.structs.replace(record, policies=tuple(notes()))
            nursery.cancel_scope.cancel(reason="the run has ended")
        return record

    async def _ask(self, network: MemoryNetwork, observer: Observer, backends: Backends) -> Record:
        request, world = request_of(self.scenario), backends.world
        if request.is_assumed:
            world.assumed.note("request")
        exchange = Exchange(await network.connect("router", PORT))
        start = trio.current_time()
        leaves_s = self.scenario.client_leaves_s
        leaves_at = inf if leaves_s is None else start + leaves_s
        await exchange.run(request, MODEL, leaves_at, start + _PATIENCE_S)
        end = trio.current_time()
        await trio.sleep(_SETTLE_S)
        answer = exchange.record(start, end)
        record = record_of(observer, answer, start, self.subject.snapshot.clusters)
        for kind, name in self.subject.assumed:
            world.assumed.note(kind, name)
        cuts = [at - start for at in backends.cut_calls()]
        return msgspec.structs.replace(
            record,
            graph=self.subject.name,
            seed=self.seed,
            params=self.subject.params,
            decision=self.subject.decision,
            assumed=world.assumed.told(backends.speakers()),
            cut_delays_s=tuple(at - self._reason_s(record.calls, at) for at in cuts),
            open_calls=backends.open_calls(),
        )

    def _reason_s(self, calls: tuple[CallRecord, ...], cut_s: float) -> float:
        """Return when what cut a call off at `cut_s` happened, at the latest."""
        leaves_s = self.scenario.client_leaves_s
        reasons = [0.0 if leaves_s is None or leaves_s > cut_s else leaves_s]
        for call in calls:
            if call.cause is Cause.CLIENT_GONE:
                continue
            reasons += [at for at in (call.ended_s,) if at <= cut_s]
        return max(reasons)
