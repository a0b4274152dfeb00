"""Listeners for operators, which the Router serves its clients without."""

from collections.abc import Collection, Sequence

import attrs
import pytest
import trio
import trio.testing

from tests.demo.raw_client import ask
from vsr.compose.beside import Words, serve_beside
from vsr.gateway.answering import AnsweringFront
from vsr.headers import HeaderLine
from vsr.network.memory import MemoryNetwork
from vsr.network.port import Connection, Place
from vsr.network.port import Listener as Listening
from vsr.resources.listener import Listener
from vsr.workers.components import Components, ComponentStatus, OnFailure, State

LISTENER = Listener("metrics", "127.0.0.1", 9190, 60.0)
WORDS = Words("can be read", "cannot be read")


@attrs.define(eq=False)
class BuggyListener:
    """Fails where it would accept, when it is told to."""

    listener: Listening
    fails: trio.Event

    @property
    def port(self) -> int:
        """Return the bound port."""
        return self.listener.port

    async def accept(self) -> Connection:
        """Accept, or fail."""
        async with trio.open_nursery() as tasks:
            tasks.start_soon(self._fail)
            connection = await self.listener.accept()
            tasks.cancel_scope.cancel()
        return connection

    async def _fail(self) -> None:
        await self.fails.wait()
        raise ZeroDivisionError

    def close(self) -> None:
        """Close it."""
        self.listener.close()

    def finish(self, handshakes_s: float = 0.0) -> None:
        """Close it later."""
        self.listener.finish(handshakes_s)

    def open(self) -> None:
        """Let clients come."""
        self.listener.open()

    def take_waiting(self) -> Sequence[Connection]:
        """Return who waits."""
        return self.listener.take_waiting()


class BuggyNetwork(MemoryNetwork):
    """Has a bug in its listeners."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = trio.Event()

    async def bind(  # type: ignore[override]
        self, address: str, port: int, beside: Collection[Place] = ()
    ) -> Listening:
        """Bind what listens until it fails."""
        return BuggyListener(await super().bind(address, port, beside), self.fails)


async def _answer(*_: object) -> tuple[int, list[HeaderLine], bytes]:
    await trio.lowlevel.checkpoint()
    return 200, [], b""


async def test_listener_that_fails_begins_again(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """On the same port; the component tells of it."""
    network, components = BuggyNetwork(), Components()
    await nursery.start(network.run)
    front = AnsweringFront(lambda: _answer)
    front._answerer = _answer  # as if it was loaded: threads know no virtual clock
    await serve_beside(network, front, LISTENER, WORDS, nursery, components)
    statuses = [await _get(network)]

    fails, network.fails = network.fails, trio.Event()
    fails.set()
    await trio.sleep(1)
    statuses.append(await _get(network))

    assert statuses == [200, 200]
    assert components.statuses == (
        ComponentStatus("metrics", OnFailure.RESTART, State.RUNNING, 1, "ZeroDivisionError"),
    )


async def test_listener_without_a_free_address_is_done_without(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """That is said, and told."""
    network, components = MemoryNetwork(), Components()
    await nursery.start(network.run)
    await network.listen(LISTENER.address, LISTENER.port)

    await serve_beside(
        network, AnsweringFront(lambda: _answer), LISTENER, WORDS, nursery, components
    )

    assert components.statuses == (
        ComponentStatus("metrics", OnFailure.DEGRADE, State.DEGRADED, 1, "BindFailed"),
    )
    assert "cannot be read: " in caplog.text


async def _get(network: MemoryNetwork) -> int:
    connection = await network.connect("router", LISTENER.port)
    got = await ask(connection, b"", target=b"/metrics", method=b"GET", patience_s=10)
    connection.close()
    return got.status
