"""One exchange on an HTTP/1.1 connection, without a handler."""

import trio
import trio.testing

from tests.fakes.scripted_run import ListenerOfOne
from vsr.gateway.h1_exchange import H1Exchange
from vsr.http.framing import RequestHead
from vsr.http.h1_server import ServerConnection
from vsr.network.memory import MemoryConnection, MemoryNetwork
from vsr.network.timers import Timer


async def test_exchange_stays_behind_a_wait_that_was_cancelled(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nobody can say what of a piece is out, so nothing may follow it; a whole one clears it."""
    network = MemoryNetwork()
    await nursery.start(network.run)
    client, far = MemoryConnection(network), MemoryConnection(network)
    client.join(far)
    head = RequestHead(b"GET", b"/", b"h", [], 0, keep_alive=True)
    clock = trio.lowlevel.current_clock().current_time
    exchange = H1Exchange(
        far, ServerConnection(), ListenerOfOne(), Timer(None), clock, head, is_body_read=True
    )
    await exchange.start(200, [], None, b"first")
    assert not exchange.is_behind

    while exchange.try_write(b"x" * 10_000):
        pass
    assert exchange.is_behind
    with trio.CancelScope() as scope:
        scope.cancel()
        await exchange.flush()
    await client.receive()

    assert scope.cancelled_caught
    assert exchange.is_behind
    client.close()
    far.close()
