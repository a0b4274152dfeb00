"""Tracing as its users meet it: real commands, real sockets, a collector that works or does not."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from tests.e2e.process import ROUTER, free_port, start
from tests.e2e.standalone import document
from tests.e2e.wire import chat, connect, post
from tests.fakes.backend import start_backend
from tests.fakes.collector import Collector
from vsr.network.epoll import EpollNetwork

PATIENCE_S = 30
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE_ID}-00f067aa0ba902b7-01".encode()


@pytest.fixture
async def config(tmp_path: Path, nursery: trio.Nursery) -> Callable[[int], Path]:
    """Return what writes a document whose spans go to a port."""
    network = EpollNetwork()
    await nursery.start(network.run)
    backend = await start_backend(nursery, network)

    def write(collector_port: int) -> Path:
        text = document(port=free_port(), small=backend.port, large=backend.port)
        tracing = f"{{exporter: {{endpoint: 'http://127.0.0.1:{collector_port}'}}}}"
        more = f"global: {{services: {{observability: {{tracing: {tracing}}}}}}}\n"
        path = tmp_path / "router.yaml"
        path.write_text(text + more, encoding="utf-8")
        return path

    return write


async def test_spans_are_with_the_collector_when_the_router_has_ended(
    nursery: trio.Nursery, tmp_path: Path, config: Callable[[int], Path]
) -> None:
    """The last ones too: a drain does not wait for the next batch, it is the last one."""
    collector = await Collector().start(nursery)
    command = [ROUTER, "--config", str(config(collector.port)), "--gateway", "standalone"]
    router = await start(nursery, command, tmp_path / "access.log")
    with trio.fail_after(PATIENCE_S):
        with await connect(router.port) as client:
            await client.send(post(chat("python"), b"traceparent: " + PARENT))
            answer = await client.answer()
        router.send(signal.SIGTERM)
        await router.process.wait()

    assert answer is not None
    assert answer.status == 200
    assert router.process.returncode == 0
    assert [span.name.removeprefix("semantic_router.") for span in collector.spans] == [
        "request",
        "upstream.request",
        "upstream.attempt",
    ]
    assert {span.trace_id.hex() for span in collector.spans} == {TRACE_ID}
    assert "127.0.0.1" not in router.stderr


async def test_collector_that_is_not_there_harms_nobody(
    nursery: trio.Nursery, tmp_path: Path, config: Callable[[int], Path]
) -> None:
    """Requests are served, the exit code is 0, and the log says once that spans are lost."""
    command = [ROUTER, "--config", str(config(free_port())), "--gateway", "standalone"]
    router = await start(nursery, command, tmp_path / "access.log")
    with trio.fail_after(PATIENCE_S):
        with await connect(router.port) as client:
            for _ in range(3):
                await client.send(post(chat("python")))
                answer = await client.answer()
                assert answer is not None
                assert answer.status == 200
        router.send(signal.SIGTERM)
        await router.process.wait()

    assert router.process.returncode == 0
    assert "Traceback" not in router.stderr
    assert len(router.log_lines()) == 3
