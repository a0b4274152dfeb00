"""Messages and descriptors over a socket pair."""

import os
import socket

import msgspec
import trio
import trio.testing

from vsr.workers.channel import ChannelBroken, SocketChannel
from vsr.workers.framing import MAX_DESCRIPTORS, Received
from vsr.workers.messages import Drain, Order, Part, Place, Report, Sockets, Word
from vsr.workers.outbox import Outbox

PATIENCE_S = 10


def pair() -> tuple[SocketChannel[Report], SocketChannel[Order]]:
    """Return both ends."""
    ours, theirs = socket.socketpair()
    return (
        SocketChannel(ours, msgspec.msgpack.Decoder(Report)),
        SocketChannel(theirs, msgspec.msgpack.Decoder(Order)),
    )


async def test_descriptors_arrive_with_their_message() -> None:
    """Others, and larger messages than the kernel holds, before and behind it."""
    ours, theirs = pair()
    reader, writer = os.pipe()
    outbox = Outbox()
    big = Part(os.urandom(3_000_000))
    outbox.put(big)
    outbox.put(Word(), [writer])
    outbox.put_sockets([(Place("", at), reader) for at in range(MAX_DESCRIPTORS + 1)])
    outbox.put(Drain())
    os.close(writer)

    got: list[Received[Order]] = []
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(outbox.run, ours)
            while not got or got[-1].message != Drain():
                received = await theirs.receive()
                assert received is not None
                got.append(received)
            nursery.cancel_scope.cancel()
    os.write(got[1].descriptors[0], b"same pipe")

    assert os.read(reader, 100) == b"same pipe"
    assert got[0].message == big
    assert [len(each.descriptors) for each in got] == [0, 1, MAX_DESCRIPTORS, 1, 0]
    assert isinstance(got[2].message, Sockets)
    for descriptor in (reader, *(each for received in got for each in received.descriptors)):
        os.close(descriptor)
    for channel in (ours, theirs):
        channel.close()


async def test_end_of_the_other_process_is_seen_by_both_directions() -> None:
    """Receiving returns None, sending raises; what waits to be sent is let go."""
    ours, theirs = pair()
    reader, writer = os.pipe()
    theirs.close()
    outbox = Outbox()
    outbox.put(Word(), [writer])
    os.close(writer)

    with trio.fail_after(PATIENCE_S):
        await outbox.run(ours)
        received = await ours.receive()
        try:
            await ours.send(Drain())
        except ChannelBroken:
            received = None

    assert received is None
    assert os.read(reader, 1) == b""  # no copy of the other end is left open
    os.close(reader)
    ours.close()


async def test_descriptors_that_nobody_took_are_closed() -> None:
    """Those of messages that were not received, or never came whole."""
    ours, theirs = pair()
    reader, writer = os.pipe()
    with trio.fail_after(PATIENCE_S):
        await ours.send(Drain())
        await ours.send(Word(), [writer])
        await theirs.receive()
        await trio.testing.wait_all_tasks_blocked()
        await ours.send(Drain())
    os.close(writer)

    theirs.close()
    ours.close()

    assert os.read(reader, 1) == b""
    os.close(reader)
