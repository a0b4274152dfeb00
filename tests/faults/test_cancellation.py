"""A request ended at any moment: the backend is left at once, nothing is held, one end is told."""

import pytest
import trio
import trio.testing

from tests.fakes.router import clusters_of
from tests.faults.moments import HELD_AT_S, MOMENTS, Held, hold
from vsr.routing.outcome import Cause, Terminal

AT_ONCE_S = 0.05
PLANNED = [name for name, make in MOMENTS.items() if make().is_planned]


async def _check_ended(held: Held, terminal: Terminal, cause: Cause, flag: str) -> None:
    """Check that everything that a request held is given back, and how it is told to have ended."""
    router = held.router
    assert await router.held() == (0, 0)
    assert router.router.server.open_connections == 0
    lines = await router.log()
    assert len(lines) == int(held.moment.is_logged)
    for line in lines:
        assert (line["outcome"], line["cause"]) == (terminal, cause)
        assert line["response_flags"] == flag
        assert line["attempts"] == int(held.moment.is_planned)
    entries = held.engine.entries()
    assert len(entries) == int(held.moment.is_planned)
    for entry in entries:
        assert entry.outcome is not None
        assert (entry.outcome.terminal, entry.outcome.cause) == (terminal, cause)
        assert entry.reservation.is_settled


def _check_left_at(held: Held, at: float) -> None:
    left_at = held.left_at()
    assert len(left_at) == held.moment.connections_to_leave
    assert all(at <= each <= at + AT_ONCE_S for each in left_at), left_at


@pytest.mark.parametrize("how", ["close", "abort", "shutdown_send"])
@pytest.mark.parametrize("name", list(MOMENTS))
async def test_client_that_leaves_ends_its_request_at_once(
    name: str, how: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Field reports C1 and C2: closed, reset or half-closed, at every moment."""
    async with trio.open_nursery() as nursery:
        held = await hold(nursery, MOMENTS[name]())

        getattr(held.client, how)()
        await trio.testing.wait_all_tasks_blocked()

        assert trio.current_time() <= HELD_AT_S + AT_ONCE_S
        _check_left_at(held, HELD_AT_S)
        await _check_ended(held, Terminal.CANCELLED, Cause.CLIENT_GONE, "DC")
        held.client.close()
        await trio.testing.wait_all_tasks_blocked()
        idle = clusters_of(held.router.generation).idle_connections
        assert idle == int(held.moment.is_backend_done)
        assert held.router.network.open_connections == 2 * idle
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("name", list(MOMENTS))
async def test_forced_drain_ends_a_request_at_once(
    name: str, autojump_clock: trio.testing.MockClock
) -> None:
    """At every moment; the client sees that its answer is not whole."""
    async with trio.open_nursery() as nursery:
        held = await hold(nursery, MOMENTS[name]())

        await held.router.router.server.drain(grace_s=0)
        await trio.testing.wait_all_tasks_blocked()

        assert trio.current_time() <= HELD_AT_S + AT_ONCE_S
        _check_left_at(held, HELD_AT_S)
        await _check_ended(held, Terminal.CANCELLED, Cause.DRAIN, "-")
        assert held.client.is_gone
        assert not held.got.endswith(b"0\r\n\r\n")
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("name", PLANNED)
async def test_deadline_ends_a_request_at_once(
    name: str, autojump_clock: trio.testing.MockClock
) -> None:
    """A 504 while nothing of an answer is out, a visible break afterwards."""
    async with trio.open_nursery() as nursery:
        held = await hold(nursery, MOMENTS[name](), "{total_timeout: 2s}")
        is_stream_slow = name == "streaming"

        await trio.sleep_until(2 - AT_ONCE_S)
        assert held.left_at() == []
        await trio.sleep_until(2 + AT_ONCE_S)

        _check_left_at(held, 2)
        assert await held.router.held() == (0, 0)
        if held.moment.is_committed:
            assert held.client.is_gone
            assert not held.got.endswith(b"0\r\n\r\n")
            assert held.got.startswith(b"HTTP/1.1 200 ") or not held.moment.reads
        else:
            assert held.got.startswith(b"HTTP/1.1 504 ")
            assert held.got.endswith(b"upstream request timeout")
            held.client.close()
            await trio.testing.wait_all_tasks_blocked()
        assert is_stream_slow == (b"data: " in held.got and name != "stream is silent")
        await _check_ended(held, Terminal.TIMED_OUT, Cause.DEADLINE, "UT")
        nursery.cancel_scope.cancel()
