"""A worker's side: serves what it is told to, from one version to the next with its peers."""

import logging
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Protocol

import attrs
import trio

from vsr.config.own_python import ANOTHER_RELEASE
from vsr.config.parts import UNREADABLE, reading
from vsr.config.slicing import in_slices
from vsr.errors import ConfigRejected, VsrError
from vsr.resources.snapshot import Snapshot
from vsr.workers.active import SharedActive
from vsr.workers.channel import Channel, ChannelBroken
from vsr.workers.framing import Received
from vsr.workers.messages import (
    Agreed,
    Answered,
    Ask,
    Commit,
    Committed,
    Discard,
    Drain,
    End,
    Order,
    Part,
    Place,
    Prepare,
    Ready,
    Refused,
    Renew,
    Report,
    Sockets,
    Start,
    Word,
)
from vsr.workers.word import VersionWord

_log = logging.getLogger("vsr.workers")


MayAccept = Callable[[], Awaitable[None]]


class Built(Protocol):
    """A configuration that is built and warm in this process."""

    @property
    def reused(self) -> tuple[str, ...]:
        """Return the components that would serve on as they are."""
        ...

    def commit_now(self) -> None:
        """Serve it from now on."""
        ...

    async def discard(self) -> None:
        """Give it up."""
        ...


class Serving(Protocol):
    """What serves clients in this process."""

    async def run(self, may_accept: MayAccept, *, task_status: trio.TaskStatus[None]) -> None:
        """Serve until cancelled; started once it serves.

        Args:
            may_accept: awaited once all is warm, and before any client is taken.
            task_status: for the nursery.
        """
        ...

    async def prepare(self, snapshot: Snapshot, version: int) -> Built:
        """Build and warm what serves `snapshot`.

        Raises:
            ConfigRejected: it cannot be built.
            VsrError: it cannot be warmed.
        """
        ...

    async def drain(self) -> None:
        """Accept nothing new, let requests finish; bounded."""
        ...

    def force_end(self) -> None:
        """End every request under way."""
        ...

    def renew_certificates(self) -> None:
        """Load them anew."""
        ...

    async def answer(self, topic: str, question: bytes) -> bytes:
        """Answer what the supervisor asks; several questions at a time."""
        ...


class Opening(Protocol):
    """Makes of a snapshot what serves it."""

    async def __call__(
        self, snapshot: Snapshot, version: int, folder: Path, active: SharedActive
    ) -> Serving:
        """Build it.

        Raises:
            ConfigRejected: it cannot be built.
        """
        ...


class TakesSockets(Protocol):
    """Where what serves finds its listening sockets."""

    def give(self, address: str, port: int, sock: socket.socket) -> None:
        """Take one for what is built next."""
        ...

    def drop(self) -> None:
        """Close what was not wanted."""
        ...


_Given = list[tuple[Place, socket.socket]]


@attrs.define(eq=False)
class _Preparation:
    """One activation as far as it has come here."""

    attempt: int
    version: int
    parts: list[bytes]
    given: _Given
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    ended: trio.Event = attrs.field(factory=trio.Event)
    built: Built | None = None


@attrs.define(eq=False)
class Worker:
    """Carries out what its supervisor says, until that ends."""

    channel: Channel[Order]
    open: Opening
    sockets: TakesSockets
    _parts: list[bytes] = attrs.field(factory=list, init=False)
    """With the sockets: what the next `Start` or `Prepare` needs."""
    _given: _Given = attrs.field(factory=list, init=False)
    _kept: list[Ask] = attrs.field(factory=list, init=False)
    """What has to be known before anything is served."""
    _word: VersionWord | None = attrs.field(default=None, init=False)
    _preparation: _Preparation | None = attrs.field(default=None, init=False)
    _is_draining: bool = attrs.field(default=False, init=False)
    _sending: trio.Lock = attrs.field(factory=trio.Lock, init=False)

    async def run(self) -> None:
        """Serve; returns once drained, or told that there is nothing to serve."""
        start = await self._first()
        if start is None or self._word is None:
            return
        try:
            serving = await self._open(start, self._word)
        except VsrError as error:
            await self._say(_refused(start.attempt, error))
            return
        for each in self._kept:
            await serving.answer(each.topic, each.question)
        async with trio.open_nursery() as tasks:
            await tasks.start(serving.run, partial(self._may_accept, start.attempt, serving, tasks))
            await self._say(Ready())
            if start.attempt:
                await self._say(Committed(start.attempt))
            await self._obey(serving, tasks)
            await self._drain(serving, tasks)
            tasks.cancel_scope.cancel(reason="drained")

    async def _may_accept(self, attempt: int, serving: Serving, tasks: trio.Nursery) -> None:
        """Return at once, or on trial when the version serves; it ends if it never does."""
        if not attempt:
            return
        await self._say(Agreed(attempt))
        while (received := await self.channel.receive()) is not None:
            match received.message:
                case Commit():
                    return
                case Ask():
                    tasks.start_soon(self._answer, serving, received.message)
                case _:
                    break
        tasks.cancel_scope.cancel(reason="the version is not served")
        await trio.sleep_forever()

    async def _open(self, start: Start, word: VersionWord) -> Serving:
        """Return what serves what `start` is about, and keep nothing else of that."""
        gathered = self._gathered(0, start.version)
        snapshot = await _read(gathered.parts)
        self._give(gathered)
        active = SharedActive(word)
        active.on_other = self._switch
        return await self.open(snapshot, start.version, Path(start.folder), active)

    async def _first(self) -> Start | None:
        while (received := await self.channel.receive()) is not None:
            if isinstance(received.message, Start):
                return received.message
            self._take(received)
        return None

    def _take(self, received: Received[Order]) -> None:
        """Keep what a `Start` or `Prepare` needs."""
        match received.message:
            case Word():
                self._word = VersionWord(received.descriptors[0])
            case Sockets(places):
                for place, descriptor in zip(places, received.descriptors, strict=True):
                    self._given.append((place, socket.socket(fileno=descriptor)))
            case Part(data):
                self._parts.append(data)
            case Ask():
                self._kept.append(received.message)
            case _:
                pass

    def _gathered(self, attempt: int, version: int) -> _Preparation:
        gathered = _Preparation(attempt, version, self._parts, self._given)
        self._parts, self._given = [], []
        return gathered

    def _give(self, preparation: _Preparation) -> None:
        for place, sock in preparation.given:
            self.sockets.give(place.address, place.port, sock)

    async def _obey(self, serving: Serving, tasks: trio.Nursery) -> None:
        """Do as told until it is time to drain: for which the end of the supervisor is as good."""
        while (received := await self.channel.receive()) is not None:
            match received.message:
                case Prepare(attempt, version):
                    before, self._preparation = self._preparation, self._gathered(attempt, version)
                    tasks.start_soon(self._prepare, serving, self._preparation, before)
                case Commit(attempt):
                    self._switch()
                    tasks.start_soon(self._say, Committed(attempt))
                case Discard(attempt):
                    self._discard(attempt, tasks)
                case Ask():
                    tasks.start_soon(self._answer, serving, received.message)
                case Drain():
                    return
                case End() | Renew() as order:
                    _act_on(order, serving)
                case _:
                    self._take(received)
        _log.error("the supervisor has ended: draining")

    async def _prepare(
        self, serving: Serving, preparation: _Preparation, before: _Preparation | None
    ) -> None:
        if before is not None:
            await before.ended.wait()
        answer: Report | None = None
        try:
            with preparation.scope:
                answer = await self._build(serving, preparation)
        except VsrError as error:
            answer = _refused(preparation.attempt, error)
        finally:
            self.sockets.drop()
            preparation.ended.set()
        if answer is not None:
            await self._say(answer)

    async def _build(self, serving: Serving, preparation: _Preparation) -> Report | None:
        self._give(preparation)
        snapshot = await _read(preparation.parts)
        built = await serving.prepare(snapshot, preparation.version)
        if preparation.scope.cancel_called:
            await built.discard()
            return None
        preparation.built = built
        return Agreed(preparation.attempt, built.reused)

    def _discard(self, attempt: int, tasks: trio.Nursery) -> None:
        preparation = self._preparation
        if preparation is None or preparation.attempt != attempt:
            return
        preparation.scope.cancel(reason="discarded")
        if preparation.built is not None:
            tasks.start_soon(preparation.built.discard)
            preparation.built = None

    def _switch(self) -> None:
        """Serve what the word names by now, if it is built: it is once the word names it."""
        preparation, word = self._preparation, self._word
        if preparation is None or preparation.built is None or word is None:
            return
        if word.version == preparation.version:
            built, preparation.built = preparation.built, None
            built.commit_now()

    async def _answer(self, serving: Serving, ask: Ask) -> None:
        answer: bytes | None = None
        try:
            answer = await serving.answer(ask.topic, ask.question)
        except Exception:  # noqa: BLE001  # whoever asks must not end requests by it
            _log.exception("a question about %s could not be answered", ask.topic)
        await self._say(Answered(ask.number, answer))

    async def _drain(self, serving: Serving, tasks: trio.Nursery) -> None:
        tasks.start_soon(self._heed_end, serving)
        await serving.drain()

    async def _heed_end(self, serving: Serving) -> None:
        while (received := await self.channel.receive()) is not None:
            if isinstance(received.message, End):
                serving.force_end()

    async def _say(self, report: Report) -> None:
        try:
            async with self._sending:
                await self.channel.send(report)
        except ChannelBroken:
            pass  # reading finds out, too


def _act_on(order: End | Renew, serving: Serving) -> None:
    if isinstance(order, End):
        serving.force_end()
    else:
        serving.renew_certificates()


class _Unreadable(VsrError):
    """What the supervisor wants served was written by another release."""


async def _read(parts: list[bytes]) -> Snapshot:
    try:
        return await in_slices(reading(parts))
    except UNREADABLE as error:
        raise _Unreadable(f"what is to be served cannot be read; {ANOTHER_RELEASE}") from error


def _refused(attempt: int, error: VsrError) -> Refused:
    if isinstance(error, ConfigRejected):
        return Refused(attempt, error.problems)
    return Refused(attempt, text=str(error))
