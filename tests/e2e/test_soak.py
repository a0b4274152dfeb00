"""Field report O9: memory does not grow from one busy time to the next."""

from functools import partial
from pathlib import Path

import pytest
import trio

from tests.e2e.process import ROUTER, Started, free_port, start
from tests.e2e.standalone import document
from tests.e2e.wire import chat, connect, post
from tests.fakes.backend import start_backend
from vsr.demo.script import Script
from vsr.network.epoll import EpollNetwork

pytestmark = pytest.mark.slow

CYCLES = 6
CLIENTS = 40
REQUESTS = 60
"""Of each client in each cycle."""
STREAMED_EACH, LEFT_EACH = 3, 6
IDLE_S = 1.0
PATIENCE_S = 240
MOST_GROWTH = 1.05
"""Of the last cycle over the second one; the first fills caches and pools."""


async def test_memory_after_the_last_busy_time_is_that_after_the_second(
    nursery: trio.Nursery, tmp_path: Path
) -> None:
    """New connections each time, streams that are left half-way, and heads that never repeat."""
    network = EpollNetwork()
    await nursery.start(network.run)
    backend = await start_backend(nursery, network, Script(chunks=5, chunk_interval_s=0.001))
    path = tmp_path / "router.yaml"
    path.write_text(document(port=free_port(), small=backend.port, large=backend.port))
    command = [ROUTER, "--config", str(path), "--gateway", "standalone"]
    router = await start(nursery, command, tmp_path / "access.log")
    seen = []

    with trio.fail_after(PATIENCE_S):
        for cycle in range(CYCLES):
            async with trio.open_nursery() as busy:
                for client in range(CLIENTS):
                    busy.start_soon(partial(_be_busy, router, f"{cycle}-{client}"))
            await trio.sleep(IDLE_S)
            seen.append(_resident_bytes(router))

    assert seen[-1] <= seen[1] * MOST_GROWTH, seen


async def _be_busy(router: Started, name: str) -> None:
    for number in range(REQUESTS):
        body = chat("python", stream=number % STREAMED_EACH == 0)
        with await connect(router.port) as client:
            await client.send(post(body, b"x-request-id: %b-%d" % (name.encode(), number)))
            if number % LEFT_EACH == 0:
                await client.first_byte()
                client.reset()
            else:
                answer = await client.answer()
                assert answer is not None
                assert answer.status == 200


def _resident_bytes(router: Started) -> int:
    pages = int(Path(f"/proc/{router.process.pid}/statm").read_text().split()[1])
    return pages * 4096
