"""Backends for tests: demo models on whatever network the test has."""

import trio

from vsr.demo.script import Script
from vsr.demo.server import DemoModel
from vsr.network.port import Network

BACKEND_HOST = "127.0.0.1"


async def start_backend(
    nursery: trio.Nursery,
    network: Network,
    script: Script | None = None,
    *,
    port: int = 0,
) -> DemoModel:
    """Start a backend that serves until `nursery` is cancelled; `.port` is where.

    On an `EpollNetwork`, `network.run` must be running.
    """
    backend = DemoModel(network, script)
    await nursery.start(backend.run, BACKEND_HOST, port)
    return backend
