"""One real run of a graph: the Router in this process, real backends, a client in memory."""

from collections.abc import Callable, Collection
from math import inf

import attrs
import msgspec
import trio

from vsr.compose.generation import Parts
from vsr.compose.router import Router
from vsr.dryrun.client import Exchange
from vsr.dryrun.observer import Observer, record_of
from vsr.dryrun.record import Record
from vsr.dryrun.render.words import seconds
from vsr.dryrun.run import rejection_in
from vsr.dryrun.scenario import RequestScript
from vsr.dryrun.subject import MODEL, PORT, Subject
from vsr.graph.ledger import LedgerEntry
from vsr.graph.run import GraphRun
from vsr.network.epoll import EpollNetwork
from vsr.network.memory import MemoryListener, MemoryNetwork
from vsr.network.port import Connection, Place
from vsr.telemetry.access_log import AccessLog

_SETTLE_S = 0.05
"""For what the end of the answer ends in turn."""

Say = Callable[[str], None]


class BackendsOutside(msgspec.Struct, frozen=True, eq=False):
    """A network whose connections are real and whose listeners are in memory."""

    outside: EpollNetwork
    inside: MemoryNetwork

    async def connect(
        self,
        host: str,
        port: int,
        *,
        ipv4_only: bool = False,
        allows: Callable[[str], bool] | None = None,
    ) -> Connection:
        """Connect to a real host; see `vsr.network.port.Network`."""
        return await self.outside.connect(host, port, ipv4_only=ipv4_only, allows=allows)

    async def listen(self, address: str, port: int) -> MemoryListener:
        """Listen for the client in this process."""
        return await self.inside.listen(address, port)

    async def bind(self, address: str, port: int, beside: Collection[Place] = ()) -> MemoryListener:
        """Bind for the client in this process."""
        return await self.inside.bind(address, port, beside)


def run_for_real(subject: Subject, request: RequestScript, say: Say) -> Record:
    """Run the graph once; `say` gets a line for each call that starts or ends.

    Raises:
        ConfigRejected: the graph does not fit what it is given.
    """
    try:
        return trio.run(ask_for_real, subject, request, say)
    except BaseExceptionGroup as group:
        raise rejection_in(group) or group from None


async def ask_for_real(subject: Subject, request: RequestScript, say: Say) -> Record:
    """Do the same inside of a running loop."""
    outside, inside = EpollNetwork(), MemoryNetwork()
    observer = Observer(trio.current_time)
    progress = _Progress(say)

    def watch(run: GraphRun) -> None:
        observer.attach(run)
        run.ledger.watch = progress.note

    async with trio.open_nursery() as nursery:
        await nursery.start(outside.run)
        await nursery.start(inside.run)
        parts = msgspec.structs.replace(
            Parts.default(BackendsOutside(outside, inside)), on_run=watch
        )
        router = await Router.bind(parts, subject.snapshot, AccessLog(_forget))
        await nursery.start(router.run)
        exchange = Exchange(await inside.connect("router", PORT))
        start = progress.start = trio.current_time()
        await exchange.run(request, MODEL, inf, inf)
        end = trio.current_time()
        await trio.sleep(_SETTLE_S)
        record = record_of(observer, exchange.record(start, end), start, subject.snapshot.clusters)
        nursery.cancel_scope.cancel(reason="the run has ended")
    return msgspec.structs.replace(
        record,
        graph=subject.name,
        params=subject.params,
        decision=subject.decision,
        is_dry=False,
    )


@attrs.define(eq=False)
class _Progress:
    """Says what calls do while they do it."""

    say: Say
    start: float = 0.0

    def note(self, entry: LedgerEntry) -> None:
        """Say that a call has started or ended."""
        at = seconds(trio.current_time() - self.start)
        did = "asked" if entry.outcome is None else str(entry.outcome.terminal)
        self.say(f"{at:>9}  #{entry.ordinal} {entry.model}  {entry.step}: {did}")


async def _forget(data: bytes) -> None:
    del data
    await trio.lowlevel.checkpoint()
