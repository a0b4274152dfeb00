"""What every network owes those whose peer leaves, and those who leave themselves."""

import os
from contextlib import suppress

import pytest
import trio

from tests.network.ends import (
    LOCALHOST,
    AnyNetwork,
    connected,
    count_open,
    descriptor_of,
    eventually,
    expect_broken_receive,
    expect_broken_send,
    held,
    read,
    read_all,
    send_ignoring_breakage,
    settle,
    watch,
)
from vsr.network.epoll import EpollNetwork
from vsr.network.port import (
    READ_AHEAD_BYTES,
    Connection,
    ConnectionBroken,
)


async def test_end_of_stream_comes_behind_the_data(network: AnyNetwork) -> None:
    """Also when it is there before the reader, and every later read says so again."""
    async with connected(network) as pair:
        await pair.near.send(b"last words")
        pair.near.shutdown_send()
        await eventually(lambda: pair.far.is_gone)

        assert await read_all(pair.far) == b"last words"
        assert await pair.far.receive() == b""


async def test_waiting_reader_sees_the_end_of_stream(network: AnyNetwork) -> None:
    """A reader that is already waiting wakes up empty-handed."""
    got: list[bytes] = []

    async def wait(connection: Connection) -> None:
        got.append(await connection.receive())

    async with connected(network) as pair, trio.open_nursery() as nursery:
        nursery.start_soon(wait, pair.far)
        await settle()
        pair.near.close()
        await eventually(lambda: bool(got))

    assert got == [b""]


async def test_half_closed_connection_still_carries_the_answer(network: AnyNetwork) -> None:
    """Only the sending direction ends."""
    async with connected(network) as pair:
        pair.near.shutdown_send()
        await eventually(lambda: pair.far.is_gone)

        await pair.far.send(b"answer")
        assert await read(pair.near, 6) == b"answer"
        assert not pair.near.is_gone


@pytest.mark.parametrize("how", ["shutdown_send", "close", "abort"])
async def test_departure_is_seen_while_the_reader_is_busy(network: AnyNetwork, how: str) -> None:
    """`on_gone` is called once, although nobody reads."""
    async with connected(network) as pair:
        calls = watch(pair.far)
        await pair.near.send(b"request")
        await eventually(lambda: held(pair.far) == 7)
        assert not pair.far.is_gone

        getattr(pair.near, how)()
        await eventually(lambda: pair.far.is_gone)
        await settle()

        assert calls == ["gone"]


@pytest.mark.parametrize("how", ["shutdown_send", "close", "abort"])
async def test_departure_is_seen_while_reading_is_paused(network: AnyNetwork, how: str) -> None:
    """A full inbox pauses reading, not watching."""
    async with connected(network) as pair, trio.open_nursery() as nursery:
        calls = watch(pair.far)
        nursery.start_soon(send_ignoring_breakage, pair.near, bytes(READ_AHEAD_BYTES))
        await eventually(lambda: held(pair.far) >= READ_AHEAD_BYTES)
        await settle()
        assert calls == []

        getattr(pair.near, how)()
        await eventually(lambda: bool(calls))
        await settle()

        assert calls == ["gone"]
        assert held(pair.far) >= READ_AHEAD_BYTES
        nursery.cancel_scope.cancel()


async def test_data_before_the_end_is_kept_while_reading_is_paused(network: AnyNetwork) -> None:
    """The end is told early; the bytes before it are still read in full and in order."""
    data = os.urandom(READ_AHEAD_BYTES * 3)
    async with connected(network) as pair, trio.open_nursery() as nursery:

        async def send_then_end() -> None:
            for start in range(0, len(data), READ_AHEAD_BYTES):
                await pair.near.send(data[start : start + READ_AHEAD_BYTES])
            pair.near.shutdown_send()

        nursery.start_soon(send_then_end)
        await eventually(lambda: held(pair.far) >= READ_AHEAD_BYTES)
        await settle()

        assert await read_all(pair.far) == data


async def test_departure_before_anybody_watches_is_remembered(network: AnyNetwork) -> None:
    """`is_gone` tells whoever sets `on_gone` too late."""
    async with connected(network) as pair:
        pair.near.close()
        await eventually(lambda: pair.far.is_gone)

        assert not watch(pair.far)
        assert pair.far.is_gone


async def test_own_close_calls_no_hang_up(network: AnyNetwork) -> None:
    """`on_gone` is about the peer."""
    async with connected(network) as pair:
        calls = watch(pair.far)

        pair.far.close()
        await settle()

        assert calls == []


async def test_on_gone_may_close_the_connection(network: AnyNetwork) -> None:
    """A pool does that to its idle connections."""
    async with connected(network) as pair:
        pair.far.on_gone = pair.far.close

        pair.near.close()

        await eventually(lambda: not isinstance(network, EpollNetwork) or count_open(network) == 0)
        with pytest.raises(ConnectionBroken):
            await pair.far.send(b"x")


async def test_reset_breaks_a_waiting_reader(network: AnyNetwork) -> None:
    """A reset is no end of stream."""
    async with connected(network) as pair, trio.open_nursery() as nursery:
        nursery.start_soon(expect_broken_receive, pair.far)
        await settle()

        pair.near.abort()


async def test_reset_breaks_a_later_reader(network: AnyNetwork) -> None:
    """Whatever was read before it."""
    async with connected(network) as pair:
        pair.near.abort()
        await eventually(lambda: pair.far.is_gone)

        await expect_broken_receive(pair.far)


async def test_close_with_unread_bytes_ends_the_peers_wait(network: AnyNetwork) -> None:
    """By an end of stream or a reset: how far TCP had got decides which."""
    async with connected(network) as pair:
        calls = watch(pair.near)
        await pair.near.send(b"unread")
        await eventually(lambda: held(pair.far) == 6)

        pair.far.close()

        with suppress(ConnectionBroken):
            assert await read_all(pair.near) == b""
        assert calls == ["gone"]


async def test_send_to_a_gone_peer_breaks(network: AnyNetwork) -> None:
    """At once or with one of the next sends."""
    async with connected(network) as pair:
        pair.near.abort()
        await eventually(lambda: pair.far.is_gone)

        with pytest.raises(ConnectionBroken):
            await pair.far.send(b"x")


async def test_reset_breaks_a_blocked_sender(network: AnyNetwork) -> None:
    """A sender that waits for room learns that there will be none."""
    async with connected(network) as pair, trio.open_nursery() as nursery:
        nursery.start_soon(expect_broken_send, pair.near)
        await eventually(lambda: held(pair.far) >= READ_AHEAD_BYTES)
        await settle()

        pair.far.abort()


async def test_close_breaks_our_own_waiting_reader(network: AnyNetwork) -> None:
    """A drain closes connections whose tasks wait for the next request."""
    async with connected(network) as pair, trio.open_nursery() as nursery:
        nursery.start_soon(expect_broken_receive, pair.far)
        await settle()

        pair.far.close()


async def test_close_breaks_our_own_blocked_sender(network: AnyNetwork) -> None:
    """A forced end does not wait for a client that never reads."""
    async with connected(network) as pair, trio.open_nursery() as nursery:
        nursery.start_soon(expect_broken_send, pair.near)
        await eventually(lambda: held(pair.far) >= READ_AHEAD_BYTES)
        await settle()

        pair.near.close()


async def test_closed_connection_refuses_everything(network: AnyNetwork) -> None:
    """And closing again does nothing."""
    async with connected(network) as pair:
        pair.near.close()

        pair.near.close()
        pair.near.abort()
        pair.near.shutdown_send()
        assert not pair.near.is_idle()
        with pytest.raises(ConnectionBroken):
            await pair.near.send(b"x")
        await expect_broken_receive(pair.near)


async def test_peer_sees_our_close(network: AnyNetwork) -> None:
    """Cleanly, when nothing was left unread."""
    async with connected(network) as pair:
        await pair.near.send(b"bye")
        pair.near.close()

        assert await read_all(pair.far) == b"bye"


async def test_old_connection_never_disturbs_a_new_one(network: AnyNetwork) -> None:
    """Its descriptor's number, its timer and a second close are its own business."""
    async with connected(network) as pair:
        old, old_calls = pair.near, watch(pair.near)
        with trio.move_on_after(0.001):
            await old.receive(until=trio.current_time() + 0.02)
        old_number = descriptor_of(old)
        old.close()
        pair.far.close()
        new = await network.connect(LOCALHOST, pair.listener.port)
        far = await pair.listener.accept()
        calls = watch(new)
        assert old_number in {descriptor_of(new), descriptor_of(far)}

        old.close()
        old.abort()
        with pytest.raises(ConnectionBroken):
            await old.send(b"to nobody")
        with trio.move_on_after(0.05):
            await new.receive()
        await far.send(b"hello")

        assert await read(new, 5) == b"hello"
        assert old_calls == calls == []
        assert not new.is_gone
        new.close()
        far.close()


async def test_closing_from_a_hang_up_never_disturbs_a_new_connection(
    network: AnyNetwork,
) -> None:
    """Many peers leave in one batch while others arrive on the same numbers."""
    async with connected(network) as pair:
        idle = [await network.connect(LOCALHOST, pair.listener.port) for _ in range(30)]
        accepted = [await pair.listener.accept() for _ in idle]
        for waiting in idle:
            waiting.on_gone = waiting.close

        for left in accepted:
            left.close()
        fresh = [await network.connect(LOCALHOST, pair.listener.port) for _ in range(30)]
        served = [await pair.listener.accept() for _ in fresh]
        for index, end in enumerate(served):
            await end.send(b"%02d" % index)
        got = [await read(end, 2) for end in fresh]

        assert sorted(got) == [b"%02d" % index for index in range(30)]
        assert not any(end.is_gone for end in [*fresh, *served])
        for end in [*fresh, *served, *idle]:
            end.close()


async def test_connection_is_idle_while_open_and_silent(network: AnyNetwork) -> None:
    """Also after it has carried something."""
    async with connected(network) as pair:
        assert pair.near.is_idle()
        await pair.near.send(b"a")
        await read(pair.far, 1)

        assert pair.near.is_idle()
        assert pair.far.is_idle()


async def test_connection_with_unread_bytes_is_not_idle(network: AnyNetwork) -> None:
    """Bytes that nobody asked for would be taken for the next answer."""
    async with connected(network) as pair:
        await pair.near.send(b"surplus")
        await eventually(lambda: held(pair.far) > 0)

        assert not pair.far.is_idle()


@pytest.mark.parametrize("how", ["send", "shutdown_send", "close", "abort"])
async def test_connection_is_not_idle_when_the_kernel_knows_better(
    network: AnyNetwork, how: str
) -> None:
    """No checkpoint lies between the peer's act and the question."""
    async with connected(network) as pair:
        if how == "send":
            await pair.near.send(b"surplus")
        else:
            getattr(pair.near, how)()

        assert not pair.far.is_idle()
