"""The listener of the metrics."""

import json
from collections.abc import Callable

import pytest
import trio

from tests.demo.raw_client import ask
from vsr.gateway.metrics_listener import MetricsFront
from vsr.gateway.serve import Server
from vsr.network.memory import MemoryNetwork
from vsr.resources.listener import Listener

TEXT = b"# TYPE up gauge\nup 1.0\n"


async def start(nursery: trio.Nursery, load: Callable[[], Callable[[], bytes]]) -> MemoryNetwork:
    """Start a listener on port 9190."""
    network = MemoryNetwork()
    await nursery.start(network.run)
    server = Server(network, MetricsFront(load))
    await server.bind([Listener("metrics", "127.0.0.1", 9190, 60.0)])
    await nursery.start(server.run)
    return network


@pytest.mark.parametrize(
    ("method", "target", "status", "body"),
    [
        (b"GET", b"/metrics", 200, TEXT),
        (b"GET", b"/metrics?name=up", 200, TEXT),
        (b"HEAD", b"/metrics", 200, b""),
        (b"POST", b"/metrics", 405, b"method not allowed\n"),
        (b"GET", b"/", 404, b"not found\n"),
        (b"GET", b"/v1/models", 404, b"not found\n"),
    ],
)
async def test_only_metrics_are_told(
    method: bytes,
    target: bytes,
    status: int,
    body: bytes,
    nursery: trio.Nursery,
) -> None:
    """In Prometheus' text format; nothing of the Router is served there."""
    network = await start(nursery, lambda: lambda: TEXT)
    client = await network.connect("metrics", 9190)

    got = await ask(client, target=target, method=method)

    assert (got.status, got.body) == (status, body)
    if status == 200:
        assert got.line(b"content-type") == b"text/plain; version=0.0.4; charset=utf-8"


async def test_renderer_is_loaded_once_and_for_the_first_reader(
    nursery: trio.Nursery,
) -> None:
    """A Router that nobody watches does not load it."""
    loads: list[int] = []

    def load() -> Callable[[], bytes]:
        loads.append(1)
        return lambda: json.dumps(len(loads)).encode()

    network = await start(nursery, load)
    client = await network.connect("metrics", 9190)
    before = list(loads)

    got = [(await ask(client, target=b"/metrics", method=b"GET")).body for _ in range(3)]

    assert (before, loads, got) == ([], [1], [b"1"] * 3)
