"""What waits to be sent to one worker."""

import os
from collections import deque
from collections.abc import Sequence

import attrs
import msgspec
import trio

from vsr.workers.channel import Channel, ChannelBroken
from vsr.workers.framing import MAX_DESCRIPTORS
from vsr.workers.messages import Place, Report, Sockets


@attrs.define(eq=False)
class Outbox:
    """Sends in order; whoever puts something in never waits."""

    _waiting: deque[tuple[msgspec.Struct, tuple[int, ...]]] = attrs.field(factory=deque, init=False)
    _filled: trio.Event = attrs.field(factory=trio.Event, init=False)

    def put(self, message: msgspec.Struct, descriptors: Sequence[int] = ()) -> None:
        """Let a message be sent; its descriptors may be closed at once."""
        self._waiting.append((message, tuple(os.dup(each) for each in descriptors)))
        self._filled.set()

    def put_sockets(self, sockets: Sequence[tuple[Place, int]]) -> None:
        """Let listening sockets be sent, as many at a time as may be."""
        for at in range(0, len(sockets), MAX_DESCRIPTORS):
            some = sockets[at : at + MAX_DESCRIPTORS]
            places = tuple(place for place, _ in some)
            self.put(Sockets(places), [descriptor for _, descriptor in some])

    async def run(self, channel: Channel[Report]) -> None:
        """Send until cancelled, or until nobody receives any more."""
        try:
            while True:
                while self._waiting:
                    await self._send_first(channel)
                self._filled = trio.Event()
                await self._filled.wait()
        except ChannelBroken:
            pass  # whoever receives finds out, too
        finally:
            self.close()

    async def _send_first(self, channel: Channel[Report]) -> None:
        message, descriptors = self._waiting.popleft()
        try:
            await channel.send(message, descriptors)
        finally:
            _close_all(descriptors)

    def close(self) -> None:
        """Drop what was not sent."""
        while self._waiting:
            _close_all(self._waiting.popleft()[1])


def _close_all(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
