"""Workers in this process: the real ones, on channels in memory, which serve nothing real."""

import os
import socket
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import Generic, TypeVar

import attrs
import msgspec
import trio

from vsr.errors import ConfigRejected, Problem, VsrError
from vsr.resources.snapshot import Snapshot
from vsr.workers.active import SharedActive
from vsr.workers.channel import ChannelBroken
from vsr.workers.framing import Received
from vsr.workers.messages import METRICS, Family, Order, Report, Sample
from vsr.workers.worker import MayAccept, Worker

T = TypeVar("T")


@attrs.define(eq=False)
class FakeChannel(Generic[T]):
    """Implements `Channel` in memory; descriptors are copied, as between processes."""

    _sends: "trio.MemorySendChannel[Received[msgspec.Struct]]"
    _receives: "trio.MemoryReceiveChannel[Received[T]]"

    async def send(self, message: msgspec.Struct, descriptors: Sequence[int] = ()) -> None:
        """Send a message."""
        copies = tuple(os.dup(each) for each in descriptors)
        try:
            await self._sends.send(Received(message, copies))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise ChannelBroken from None

    async def receive(self) -> Received[T] | None:
        """Return the next message."""
        try:
            return await self._receives.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError):
            return None

    def close(self) -> None:
        """Close this end."""
        self._sends.close()
        self._receives.close()


@attrs.define(eq=False)
class FakeBuilt:
    """What a worker has built."""

    serving: "FakeServing"
    version: int
    reused: tuple[str, ...] = ("upstream",)

    def commit_now(self) -> None:
        """Serve it."""
        self.serving.version = self.version
        self.serving.history.append(("commit", self.version))

    async def discard(self) -> None:
        """Give it up."""
        self.serving.history.append(("discard", self.version))
        await trio.lowlevel.checkpoint()


@attrs.define(eq=False)
class FakeServing:
    """Serves nothing, and notes what it is told."""

    plans: "Plans"
    active: SharedActive
    version: int
    start_s: float
    die: Callable[[], None]
    history: list[tuple[str, int]] = attrs.field(factory=list)
    forced: trio.Event = attrs.field(factory=trio.Event)
    asked: list[tuple[str, bytes]] = attrs.field(factory=list)
    """Questions so far."""
    accepts: bool = False
    """Whether clients are taken."""
    asked_before: int = 0
    """How many of them came before it served."""

    @property
    def admits(self) -> int:
        """Return the version that a request gets which comes now."""
        self.active.current  # noqa: B018  # as a request does
        return self.version

    async def run(
        self,
        may_accept: MayAccept,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve until cancelled."""
        self.asked_before = len(self.asked)
        await trio.sleep(self.start_s)
        await may_accept()
        self.accepts = True
        task_status.started()
        await trio.sleep_forever()

    async def prepare(self, snapshot: Snapshot, version: int) -> FakeBuilt:
        """Build as planned for this snapshot."""
        self.history.append(("prepare", version))
        plan = self.plans.of.get(snapshot.hash, 1.0)
        if isinstance(plan, VsrError):
            raise plan
        await trio.sleep(plan)
        if snapshot.hash in self.plans.deadly:
            self.die()
            await trio.sleep_forever()
        return FakeBuilt(self, version)

    async def drain(self) -> None:
        """Take as long as planned, or until forced."""
        with trio.move_on_after(self.plans.drain_s):
            await self.forced.wait()

    def force_end(self) -> None:
        """End the drain."""
        self.forced.set()

    def renew_certificates(self) -> None:
        """Note it."""
        self.history.append(("renew", self.version))

    async def answer(self, topic: str, question: bytes) -> bytes:
        """Return the version as a count; to other topics the question, with the topic."""
        self.asked.append((topic, question))
        await trio.sleep(self.plans.answer_s)
        if self.plans.is_clueless:
            raise ZeroDivisionError
        if topic in self.plans.answers:
            return self.plans.answers[topic]
        if topic != METRICS:
            return topic.encode() + b": " + question
        sample = Sample("v_total", {}, float(self.version))
        return msgspec.msgpack.encode((Family("v", "", "counter", (sample,)),))


@attrs.define
class Plans:
    """How workers behave."""

    of: dict[str, float | VsrError] = attrs.field(factory=dict)
    """By hash: seconds that building takes, or what is raised."""
    start_s: float = 0.5
    starts_s: dict[str, float] = attrs.field(factory=dict)
    """By hash, in place of that."""
    deadly: set[str] = attrs.field(factory=set)
    """Hashes of what a process dies of that builds it, or begins with it."""
    drain_s: float = 2.0
    answer_s: float = 0.0
    """What answering a question takes."""
    answers: dict[str, bytes] = attrs.field(factory=dict)
    """By topic."""
    is_clueless: bool = False
    """Whether answering fails."""
    first: VsrError | None = None
    """Raised by those that start."""


@attrs.define(eq=False)
class FakeProcess:
    """Implements `crew.WorkerProcess` with a real `Worker` in a task."""

    worker: int
    pid: int
    channel: FakeChannel[Report]
    worker_channel: FakeChannel[Order]
    plans: Plans
    serving: FakeServing | None = None
    lingers_s: float = 0.0
    """What its end takes once its channel is closed."""
    sockets: dict[tuple[str, int], socket.socket] = attrs.field(factory=dict)
    ended: trio.Event = attrs.field(factory=trio.Event)
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)

    async def live(self) -> None:
        """Work until told to end, or killed."""
        try:
            with self.scope:
                await Worker(self.worker_channel, self.open, self).run()
        finally:
            self.worker_channel.close()
            self.drop()
            with trio.CancelScope(shield=True, relative_deadline=self.lingers_s):
                await trio.sleep_forever()
            self.ended.set()

    async def open(
        self, snapshot: Snapshot, version: int, folder: Path, active: SharedActive
    ) -> FakeServing:
        """Serve a snapshot."""
        del folder
        await trio.lowlevel.checkpoint()
        if self.plans.first is not None:
            raise self.plans.first
        plan = self.plans.of.get(snapshot.hash)
        if isinstance(plan, VsrError):
            raise plan
        if snapshot.hash in self.plans.deadly:
            self.kill()
            await trio.sleep_forever()
        start_s = self.plans.starts_s.get(snapshot.hash, self.plans.start_s)
        self.serving = FakeServing(self.plans, active, version, start_s, self.kill)
        return self.serving

    def give(self, address: str, port: int, sock: socket.socket) -> None:
        """Take a socket."""
        self.sockets[address, port] = sock

    def drop(self) -> None:
        """Close what was given."""
        while self.sockets:
            self.sockets.popitem()[1].close()

    async def wait(self) -> int:
        """Wait for its end."""
        await self.ended.wait()
        return 0

    def kill(self) -> None:
        """End it at once."""
        self.scope.cancel()


@attrs.define(eq=False)
class FakeSpawn:
    """Starts processes in a nursery."""

    nursery: trio.Nursery
    plans: Plans = attrs.field(factory=Plans)
    started: list[tuple[float, FakeProcess]] = attrs.field(factory=list)
    is_failing: bool = False

    @property
    def there(self) -> list[FakeProcess]:
        """Return the processes that are there."""
        return [process for _, process in self.started if not process.ended.is_set()]

    @property
    def servings(self) -> list[FakeServing]:
        """Return what the processes serve that are there."""
        return [process.serving for process in self.there if process.serving is not None]

    def process(self, worker: int) -> FakeProcess:
        """Return the process of a slot that is there."""
        [found] = [each for each in self.there if each.worker == worker]
        return found

    def serving(self, worker: int) -> FakeServing:
        """Return what that process serves."""
        serving = self.process(worker).serving
        assert serving is not None
        return serving

    async def __call__(self, worker: int) -> FakeProcess:
        """Start one."""
        await trio.lowlevel.checkpoint()
        if self.is_failing:
            raise OSError(11, "Resource temporarily unavailable")
        to_worker, orders = trio.open_memory_channel[Received[Order]](inf)
        to_supervisor, reports = trio.open_memory_channel[Received[Report]](inf)
        process = FakeProcess(
            worker,
            100 + len(self.started),
            FakeChannel(any_message(to_worker), reports),
            FakeChannel(any_message(to_supervisor), orders),
            self.plans,
        )
        self.started.append((trio.current_time(), process))
        self.nursery.start_soon(process.live)
        return process


def any_message(channel: object) -> "trio.MemorySendChannel[Received[msgspec.Struct]]":
    """Return a channel as one that takes any message."""
    return channel  # type: ignore[return-value]  # the same at run time


def rejected(what: str) -> ConfigRejected:
    """Return a rejection with one problem."""
    return ConfigRejected([Problem("listeners", what)])
