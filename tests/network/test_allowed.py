"""Connecting only where the caller allows: on the real network, with a resolver of our own."""

import ipaddress
import socket
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
import trio

from tests.network.ends import PATIENCE_S
from vsr.network.epoll import EpollNetwork
from vsr.network.memory import MemoryNetwork
from vsr.network.port import HostNotFound, NothingAllowed

NAME = "backend.test"


@attrs.define
class Resolver(trio.abc.HostnameResolver):
    """Finds `NAME` at one answer after the other; the last one stays."""

    answers: list[Sequence[str]]
    asked: int = 0

    async def getaddrinfo(
        self,
        host: bytes | None,
        port: bytes | str | int | None,
        family: int = 0,
        type: int = 0,  # noqa: A002  # Trio's name
        proto: int = 0,
        flags: int = 0,
    ) -> list[Any]:
        """Return the next answer."""
        await trio.lowlevel.checkpoint()
        assert host == NAME.encode()
        found = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        return [
            entry
            for each in found
            for entry in socket.getaddrinfo(each, port, family, type, proto, flags)
        ]

    async def getnameinfo(self, sockaddr: Any, flags: int) -> tuple[str, str]:  # noqa: ANN401
        """Nobody asks."""
        raise NotImplementedError


@pytest.fixture
def resolver() -> Resolver:
    """Resolve names by hand."""
    return Resolver([])


async def running(nursery: trio.Nursery, resolver: Resolver) -> EpollNetwork:
    """Return a network that runs and resolves by `resolver`."""
    trio.socket.set_custom_hostname_resolver(resolver)
    network = EpollNetwork()
    await nursery.start(network.run)
    return network


async def listening(network: EpollNetwork, *hosts: str) -> dict[str, Any]:
    """Listen on the same port of several loopback addresses; return the listeners by address."""
    first = await network.listen(hosts[0], 0)
    return {hosts[0]: first, **{each: await network.listen(each, first.port) for each in hosts[1:]}}


async def test_address_that_is_not_allowed_is_left_out(
    nursery: trio.Nursery, resolver: Resolver
) -> None:
    """Though it comes first and somebody listens there; the other one is connected to."""
    resolver.answers = [["127.0.0.2", "127.0.0.3"]]
    network = await running(nursery, resolver)
    listeners = await listening(network, "127.0.0.2", "127.0.0.3")

    with trio.fail_after(PATIENCE_S):
        connection = await network.connect(
            NAME, listeners["127.0.0.2"].port, allows=lambda address: address == "127.0.0.3"
        )
        accepted = await listeners["127.0.0.3"].accept()

    assert resolver.asked == 1
    connection.close()
    accepted.close()
    for listener in listeners.values():
        listener.close()
    nursery.cancel_scope.cancel()


async def test_address_that_was_looked_at_is_the_one_connected_to(
    nursery: trio.Nursery, resolver: Resolver
) -> None:
    """A name that is somewhere else the second time leads nowhere else: it is looked up once."""
    resolver.answers = [["127.0.0.2"], ["127.0.0.3"]]
    network = await running(nursery, resolver)
    listeners = await listening(network, "127.0.0.2", "127.0.0.3")
    port = listeners["127.0.0.2"].port
    asked: list[str] = []

    def allows(address: str) -> bool:
        asked.append(address)
        return address == "127.0.0.2"

    with trio.fail_after(PATIENCE_S):
        connection = await network.connect(NAME, port, allows=allows)
        accepted = await listeners["127.0.0.2"].accept()
        assert (asked, resolver.asked) == (["127.0.0.2"], 1)
        with pytest.raises(NothingAllowed):
            await network.connect(NAME, port, allows=allows)

    assert asked == ["127.0.0.2", "127.0.0.3"]
    connection.close()
    accepted.close()
    for listener in listeners.values():
        listener.close()
    assert network.open_sockets == 0
    nursery.cancel_scope.cancel()


async def test_no_socket_is_opened_where_nothing_is_allowed(
    nursery: trio.Nursery, resolver: Resolver
) -> None:
    """Each address was asked about, in the form that a rule can read."""
    resolver.answers = [["127.0.0.2", "::ffff:127.0.0.3", "::1"]]
    network = await running(nursery, resolver)
    asked: list[str] = []

    with pytest.raises(NothingAllowed):
        await network.connect(NAME, 1, allows=asked.append)  # type: ignore[arg-type]  # None is no

    assert {ipaddress.ip_address(each) for each in asked} == {
        ipaddress.ip_address(each) for each in ("127.0.0.2", "::ffff:127.0.0.3", "::1")
    }
    assert network.open_sockets == 0
    nursery.cancel_scope.cancel()


async def test_literal_is_asked_about_as_well(nursery: trio.Nursery) -> None:
    """Nothing has to be looked up for it."""
    network = EpollNetwork()
    await nursery.start(network.run)
    asked: list[str] = []

    with pytest.raises(NothingAllowed):
        await network.connect("127.0.0.1", 1, allows=asked.append)  # type: ignore[arg-type]  # no

    assert asked == ["127.0.0.1"]
    nursery.cancel_scope.cancel()


async def test_network_in_memory_holds_to_it_too(autojump_clock: trio.testing.MockClock) -> None:
    """By what a test says of a host, or else by what a literal is, and a name is this host."""
    network = MemoryNetwork()
    network.addresses["a.test"] = lambda: ["10.0.0.1", "10.0.0.2"]
    await network.listen("127.0.0.1", 80)
    asked: list[str] = []

    for host in ("a.test", "b.test", "10.0.0.3"):
        with pytest.raises(NothingAllowed):
            await network.connect(host, 80, allows=asked.append)  # type: ignore[arg-type]  # no

    assert asked == ["10.0.0.1", "10.0.0.2", "127.0.0.1", "10.0.0.3"]
    assert network.open_connections == 0
    await network.connect("a.test", 80, allows="10.0.0.2".__eq__)


async def test_name_without_an_address_is_not_found(
    nursery: trio.Nursery, resolver: Resolver
) -> None:
    """That nothing is allowed is said of what is there."""
    network = EpollNetwork()
    await nursery.start(network.run)

    with pytest.raises(HostNotFound):
        await network.connect("a" * 64 + ".test", 1, allows=lambda _: False)

    nursery.cancel_scope.cancel()
