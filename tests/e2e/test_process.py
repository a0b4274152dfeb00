"""The real commands: start, serve, refuse, drain, end."""

import os
import re
import shlex
import signal
from pathlib import Path

import pytest
import trio

from tests.e2e.process import DRAINS, ROUTER, VLLM_SR, Started, free_port, run, start
from tests.e2e.standalone import document, until
from tests.e2e.wire import Answer, RawClient, chat, connect, post
from tests.fakes.backend import start_backend
from vsr.demo.script import Script
from vsr.demo.server import DemoModel
from vsr.network.epoll import EpollNetwork

PATIENCE_S = 30
DRAIN_S = 3.5
STREAMS = 20
BANNER_END = re.compile(r"""-sN .*"stream": true}'\n""")
WHOLE_END = b"data: [DONE]\n\n"


@pytest.fixture
async def backend(nursery: trio.Nursery) -> DemoModel:
    """Serve streams of about half a second."""
    network = EpollNetwork()
    await nursery.start(network.run)
    return await start_backend(nursery, network, Script(chunks=25, chunk_interval_s=0.02))


@pytest.fixture
def config(tmp_path: Path, backend: DemoModel) -> Path:
    """Return a document that is served by the backend."""
    path = tmp_path / "router.yaml"
    text = document(port=free_port(), small=backend.port, large=backend.port)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
async def router(nursery: trio.Nursery, config: Path, tmp_path: Path) -> Started:
    """Start the Router."""
    return await start(nursery, _command(config), tmp_path / "access.log")


def _command(config: Path) -> list[str]:
    return [ROUTER, "--config", str(config), "--gateway", "standalone"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_router_serves_until_told_to_stop(router: Started, number: signal.Signals) -> None:
    """The exit code is 0, and the log has its line although it is written in batches."""
    with trio.fail_after(PATIENCE_S):
        with await connect(router.port) as client:
            await client.send(post(chat("python")))
            answer = await client.answer()
            router.send(number)
            code = await router.process.wait()

    assert answer is not None
    assert answer.fields["x-vsr-selected-model"] == "large"
    assert code == 0
    assert [line["response_code"] for line in router.log_lines()] == [200]
    assert "Traceback" not in router.stderr


async def test_streams_under_way_end_whole_in_a_drain(router: Started, backend: DemoModel) -> None:
    """Nothing new is accepted meanwhile, idle connections close, the exit code is 0."""
    answers: list[Answer | None] = []

    async def stream(client: RawClient) -> None:
        await client.send(post(chat(stream=True)))
        answers.append(await client.answer())
        assert await client.rest() == b""

    with trio.fail_after(PATIENCE_S):
        idle = await connect(router.port)
        await idle.send(b"GET /ready HTTP/1.1\r\nHost: h\r\n\r\n")
        assert await idle.answer() is not None
        clients = [await connect(router.port) for _ in range(STREAMS)]
        async with trio.open_nursery() as nursery:
            for client in clients:
                nursery.start_soon(stream, client)
            await until(lambda: sum(call.bytes_sent > 0 for call in backend.calls) == STREAMS)
            router.send(signal.SIGTERM)
            await router.says(DRAINS)
            assert await idle.rest() == b""
            with pytest.raises(OSError, match="refused"):
                await connect(router.port)
            assert len(answers) < STREAMS
        code = await router.process.wait()
        for client in (idle, *clients):
            client.close()

    assert code == 0
    assert [answer is not None and answer.body[-14:] for answer in answers] == [WHOLE_END] * STREAMS
    assert [line["outcome"] for line in router.log_lines()] == ["succeeded"] * STREAMS


async def test_drain_ends_early_at_a_second_signal(router: Started, backend: DemoModel) -> None:
    """A client that never reads holds the process no longer than its owner wants."""
    backend.script = Script(chunks=100_000, piece_bytes=1000)

    with trio.fail_after(PATIENCE_S):
        with await connect(router.port, receive_buffer_bytes=4096) as client:
            await client.send(post(chat(stream=True)))
            await until(lambda: any(call.bytes_sent for call in backend.calls))
            router.send(signal.SIGTERM)
            await router.says(DRAINS)
            router.send(signal.SIGTERM)
            with trio.fail_after(DRAIN_S):
                code = await router.process.wait()

    assert code == 0
    assert [line["outcome"] for line in router.log_lines()] == ["cancelled"]


@pytest.mark.slow
@pytest.mark.slow
async def test_drain_is_bounded_with_a_client_that_never_reads(
    router: Started, backend: DemoModel
) -> None:
    """It takes 25 s and a little, not longer."""
    backend.script = Script(chunks=100_000, piece_bytes=1000)

    with trio.fail_after(PATIENCE_S):
        with await connect(router.port, receive_buffer_bytes=4096) as client:
            await client.send(post(chat(stream=True)))
            await until(lambda: any(call.bytes_sent for call in backend.calls))
            asked_at = trio.current_time()
            router.send(signal.SIGTERM)
            code = await router.process.wait()
            took_s = trio.current_time() - asked_at

    assert code == 0
    assert 24 < took_s < 28


async def test_port_that_is_taken_is_a_readable_error(router: Started, config: Path) -> None:
    """The second Router says which listener it can't have, and the first serves on."""
    second = await run(_command(config))

    assert router.process.poll() is None, router.stderr
    assert second.returncode == 1
    assert b"listeners" in second.stderr
    assert b"in use" in second.stderr
    assert b"Traceback" not in second.stderr
    with trio.fail_after(PATIENCE_S), await connect(router.port) as client:
        await client.send(post(chat()))
        assert await client.answer() is not None


async def test_bad_document_is_refused_with_its_lines(tmp_path: Path) -> None:
    """Every fault with its place, and nothing is served."""
    bad = tmp_path / "bad.yaml"
    text = document(port=free_port(), small=1, large=1).replace("timeout: 30s", "timeout: soon")
    bad.write_text(text + "  unknown: true\n", encoding="utf-8")

    done = await run(_command(bad))

    lines = done.stderr.decode().splitlines()
    assert done.returncode == 1
    assert [line.rpartition(": ")[0].split(": ")[0] for line in lines] == [f"{bad}:2", f"{bad}:11"]
    assert "timeout" in lines[0]
    assert "unknown" in lines[1]


async def test_missing_document_is_a_readable_error(tmp_path: Path) -> None:
    """No traceback for a mistyped path."""
    done = await run(_command(tmp_path / "none.yaml"))

    assert done.returncode == 1
    assert b"none.yaml" in done.stderr
    assert b"Traceback" not in done.stderr


async def test_demo_does_what_its_banner_says(nursery: trio.Nursery, tmp_path: Path) -> None:
    """Each of the three lines is answered by the model that the banner names."""
    port = free_port()
    demo = await start(nursery, [VLLM_SR, "demo", "--port", str(port)], tmp_path / "access.log")
    await demo.says(BANNER_END)
    curls = [line.strip() for line in demo.stderr.splitlines() if line.startswith("  curl ")]

    with trio.fail_after(PATIENCE_S):
        answers = [await _do(line, port) for line in curls]
        demo.send(signal.SIGTERM)
        code = await demo.process.wait()

    assert [answer.status for answer in answers] == [200] * 3
    models = [answer.fields["x-vsr-selected-model"] for answer in answers]
    assert models == ["demo-small", "demo-large", "demo-large"]
    assert answers[2].body.endswith(WHOLE_END)
    assert code == 0


async def _do(curl: str, port: int) -> Answer:
    """Do what a `curl` line says, which is to post its `-d` to its URL."""
    words = shlex.split(curl)
    url = next(word for word in words if word.startswith("http://"))
    host, path = url.removeprefix("http://").split("/", 1)
    assert host == f"127.0.0.1:{port}"
    body = words[words.index("-d") + 1].encode()
    with await connect(port) as client:
        await client.send(post(body, target=b"/" + path.encode(), host=host.encode()))
        answer = await client.answer()
    assert answer is not None
    return answer


async def test_router_serves_on_when_nobody_reads_its_log(
    nursery: trio.Nursery, config: Path
) -> None:
    """A log reader that has ended must not take the traffic with it."""
    reader, writer = os.pipe()
    log = Path(f"/proc/self/fd/{writer}")
    router = await start(nursery, _command(config), log)
    os.close(reader)
    os.close(writer)

    statuses = []
    with trio.fail_after(PATIENCE_S):
        for _ in range(3):
            with await connect(router.port) as client:
                await client.send(post(chat()))
                answer = await client.answer()
            statuses.append(None if answer is None else answer.status)
            await trio.sleep(0.4)  # the log is written in batches

    assert statuses == [200] * 3


async def test_router_ends_when_nobody_takes_its_log(nursery: trio.Nursery, config: Path) -> None:
    """A log reader that hangs must not keep the process from ending."""
    reader, writer = os.pipe()
    router = await start(nursery, _command(config), Path(f"/proc/self/fd/{writer}"))
    os.close(writer)

    try:
        with trio.fail_after(PATIENCE_S):
            with await connect(router.port) as client:
                for _ in range(400):  # lines enough to fill the pipe
                    await client.send(post(b"{}"))
                    assert await client.answer() is not None
            await trio.sleep(0.4)  # the log is written in batches
            router.send(signal.SIGTERM)
            with trio.fail_after(DRAIN_S):
                code = await router.process.wait()
    finally:
        os.close(reader)

    assert code == 0


def _on_another_port(config: Path, port: int) -> Path:
    """Return a document that is like another one but for the port."""
    other = config.with_name("other.yaml")
    text = config.read_text(encoding="utf-8")
    other.write_text(text.replace(str(port), str(free_port())), encoding="utf-8")
    return other


async def test_metrics_are_told_on_their_own_port(
    nursery: trio.Nursery, config: Path, tmp_path: Path
) -> None:
    """Loopback alone; without a free port the Router serves all the same, and ends as it should."""
    port = free_port()
    command = [*_command(config), "--metrics-port", str(port)]
    router = await start(nursery, command, tmp_path / "first.log")
    await router.says(re.compile(rf"metrics can be read on port {port}\b"))

    with trio.fail_after(PATIENCE_S):
        with await connect(router.port) as client:
            await client.send(post(chat("python")))
            assert await client.answer() is not None
        with await connect(port) as reader:
            await reader.send(b"GET /metrics HTTP/1.1\r\nHost: m\r\n\r\n")
            told = await reader.answer()
        other = _on_another_port(config, router.port)
        second = await start(
            nursery, [*_command(other), "--metrics-port", str(port)], tmp_path / "second.log"
        )
        await second.says(re.compile("metrics cannot be read"))
        with await connect(second.port) as client:
            await client.send(post(chat("python")))
            assert await client.answer() is not None
        codes = []
        for each in (router, second):
            each.send(signal.SIGTERM)
            codes.append(await each.process.wait())

    assert told is not None
    assert told.status == 200
    assert b'llm_upstream_requests_total{cluster="large",outcome="2xx"} 1.0' in told.body
    assert codes == [0, 0]
