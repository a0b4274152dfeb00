"""Several workers: real processes on one socket, through reloads, deaths and drains."""

import os
import random
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from tests.e2e.process import DRAINS, Started, free_port, run, start
from tests.e2e.standalone import document, until
from tests.e2e.wire import Answer, RawClient, chat, connect, post
from tests.e2e.workers import (
    PATIENCE_S,
    WORKERS,
    Load,
    ask,
    change,
    command,
    end,
    is_there,
    pids,
    rewrite,
)
from tests.fakes.backend import start_backend
from vsr.demo.script import Script
from vsr.demo.server import DemoModel
from vsr.network.epoll import EpollNetwork

CLIENTS = 8
_ACTIVE = r"configuration version {} serves"
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
async def router(nursery: trio.Nursery, config: Path, tmp_path: Path) -> AsyncIterator[Started]:
    """Start workers; none outlives the test."""
    started = await start(nursery, command(config), tmp_path / "access.log")
    yield started
    for pid in pids(started):
        end(pid)


async def test_each_worker_serves(router: Started) -> None:
    """With the other one stopped, clients wait for nobody; the exit code is 0."""
    first, second = pids(router)

    statuses = []
    with trio.fail_after(PATIENCE_S):
        for stopped in (first, second):
            os.kill(stopped, signal.SIGSTOP)
            for _ in range(3):
                answer = await ask(router.port)
                statuses.append(None if answer is None else answer.status)
            os.kill(stopped, signal.SIGCONT)
        router.send(signal.SIGTERM)
        code = await router.process.wait()

    assert statuses == [200] * 6
    assert code == 0
    assert [line["response_code"] for line in router.log_lines()] == [200] * 6
    assert "Traceback" not in router.stderr


async def test_reload_reaches_all_and_no_client_sees_a_version_go_back(
    router: Started, config: Path
) -> None:
    """Whatever connection it comes by; no request fails."""
    load = Load(router.port)

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            for _ in range(CLIENTS):
                nursery.start_soon(load.keep_asking)
            nursery.start_soon(load.connect_each_time)
            for times in range(2, 5):
                change(config, times)
                await router.says(re.compile(_ACTIVE.format(times)))
                await load.more(2 * CLIENTS)
            nursery.cancel_scope.cancel()

    assert load.went_back == []
    assert load.broken == []
    assert load.statuses == {200}
    assert load.seen == 4


async def test_refused_document_leaves_all_workers_as_they_were(
    router: Started, config: Path
) -> None:
    """The reasons are told once, with their place."""
    with trio.fail_after(PATIENCE_S):
        rewrite(config, "timeout: 30s", "timeout: soon")
        await router.says(re.compile("configuration refused"))
        answers = [await ask(router.port) for _ in range(4)]

    versions = [each.fields["x-vsr-config-version"] for each in answers if each is not None]
    assert versions == ["1"] * 4
    assert router.stderr.count("timeout") == 1


async def test_listeners_change_on_all_workers(router: Started, config: Path) -> None:
    """A new one is served, one that is gone refuses clients, whoever is asked."""
    port = free_port()

    statuses = []
    with trio.fail_after(PATIENCE_S):
        rewrite(config, f"port: {router.port}", f"port: {port}")
        await router.says(re.compile(_ACTIVE.format(2)))
        for stopped in pids(router):
            os.kill(stopped, signal.SIGSTOP)
            answer = await ask(port)
            statuses.append(None if answer is None else answer.status)
            os.kill(stopped, signal.SIGCONT)
        with pytest.raises(OSError, match="refused"):
            await connect(router.port)

    assert statuses == [200, 200]


async def test_killed_worker_takes_its_own_requests_only(router: Started) -> None:
    """New clients are served all along, its queue by the other one; it is back at once."""
    load = Load(router.port)
    fresh = Load(router.port)
    victim = pids(router)[0]

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            for _ in range(CLIENTS):
                nursery.start_soon(load.keep_asking)
            await load.more(2 * CLIENTS)
            # Clients that wait in the queue while nobody accepts.
            for pid in pids(router):
                os.kill(pid, signal.SIGSTOP)
            waiting = [await connect(router.port) for _ in range(CLIENTS)]
            for client in waiting:
                await client.send(post(chat()))
            end(victim)
            os.kill(pids(router)[1], signal.SIGCONT)
            queued = [await client.answer() for client in waiting]
            for client in waiting:
                client.close()
            nursery.start_soon(fresh.connect_each_time)
            await until(lambda: len(pids(router)) == WORKERS + 1, PATIENCE_S)
            await fresh.more(CLIENTS)
            nursery.cancel_scope.cancel()

    assert [each.status for each in queued if each is not None] == [200] * CLIENTS
    assert len(load.broken) <= CLIENTS
    assert fresh.broken == []
    assert fresh.statuses == load.statuses == {200}
    assert router.process.poll() is None


async def test_streams_end_whole_in_a_drain_of_workers(router: Started, backend: DemoModel) -> None:
    """As those of one process do; both workers end, and the exit code is 0."""
    answers: list[Answer | None] = []

    async def stream(client: RawClient) -> None:
        await client.send(post(chat(stream=True)))
        answers.append(await client.answer())

    with trio.fail_after(PATIENCE_S):
        clients = [await connect(router.port) for _ in range(CLIENTS)]
        async with trio.open_nursery() as nursery:
            for client in clients:
                nursery.start_soon(stream, client)
            await until(
                lambda: sum(call.bytes_sent > 0 for call in backend.calls) == CLIENTS, PATIENCE_S
            )
            router.send(signal.SIGTERM)
            await router.says(DRAINS)
        code = await router.process.wait()
        for client in clients:
            client.close()

    assert [answer is not None and answer.body[-14:] for answer in answers] == [WHOLE_END] * CLIENTS
    assert code == 0
    assert not any(is_there(pid) for pid in pids(router))
    assert [line["outcome"] for line in router.log_lines()] == ["succeeded"] * CLIENTS


async def test_drain_of_workers_ends_early_at_a_second_signal(
    router: Started, backend: DemoModel
) -> None:
    """A client that never reads holds nobody longer than the owner wants."""
    backend.script = Script(chunks=100_000, piece_bytes=1000)

    with trio.fail_after(PATIENCE_S):
        with await connect(router.port, receive_buffer_bytes=4096) as client:
            await client.send(post(chat(stream=True)))
            await until(lambda: any(call.bytes_sent for call in backend.calls), PATIENCE_S)
            router.send(signal.SIGTERM)
            await router.says(DRAINS)
            router.send(signal.SIGTERM)
            with trio.fail_after(5):
                code = await router.process.wait()

    assert code == 0
    assert [line["outcome"] for line in router.log_lines()] == ["cancelled"]


async def test_workers_end_when_their_supervisor_is_killed(
    router: Started, config: Path, nursery: trio.Nursery, tmp_path: Path
) -> None:
    """In the middle of an activation: a restart serves the document under the next version."""
    await _kill_amid_activation(router, config, nursery, tmp_path, after_s=0.9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
async def test_supervisor_may_be_killed_at_any_time(
    router: Started, config: Path, nursery: trio.Nursery, tmp_path: Path, seed: int
) -> None:
    """No point of an activation leaves a history that a restart cannot go on from."""
    after_s = random.Random(seed).uniform(0.4, 2.0)  # noqa: S311  # a test
    await _kill_amid_activation(router, config, nursery, tmp_path, after_s=after_s)


async def _kill_amid_activation(
    router: Started, config: Path, nursery: trio.Nursery, tmp_path: Path, *, after_s: float
) -> None:
    load = Load(router.port)
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as clients:
            for _ in range(CLIENTS):
                clients.start_soon(load.keep_asking)
            await load.more(CLIENTS)
            change(config, 2)
            await trio.sleep(after_s)
            router.send(signal.SIGKILL)
            await router.process.wait()
            clients.cancel_scope.cancel()
        await until(lambda: not any(is_there(pid) for pid in pids(router)), PATIENCE_S)
        again = await start(nursery, command(config), tmp_path / "again.log")
        answers = [await ask(again.port) for _ in range(4)]
        again.send(signal.SIGTERM)
        code = await again.process.wait()

    versions = {int(each.fields["x-vsr-config-version"]) for each in answers if each is not None}
    assert load.went_back == []
    assert versions == {2}
    assert load.seen in {1, 2}
    assert code == 0


async def test_metrics_of_workers_are_summed(
    nursery: trio.Nursery, config: Path, tmp_path: Path
) -> None:
    """The supervisor tells them; what only one worker sees has its number."""
    port = free_port()
    router = await start(nursery, command(config, "--metrics-port", str(port)), tmp_path / "a.log")

    with trio.fail_after(PATIENCE_S):
        await router.says(re.compile(rf"metrics can be read on port {port}\b"))
        for stopped in pids(router):
            os.kill(stopped, signal.SIGSTOP)
            await ask(router.port)
            os.kill(stopped, signal.SIGCONT)
        with await connect(port) as reader:
            await reader.send(b"GET /metrics HTTP/1.1\r\nHost: m\r\n\r\n")
            told = await reader.answer()
        router.send(signal.SIGTERM)
        code = await router.process.wait()

    assert told is not None
    assert b'llm_upstream_requests_total{cluster="large",outcome="2xx"} 2.0' in told.body
    for worker in (b"1", b"2"):
        assert b'llm_upstream_cluster_panic{cluster="large",worker="%b"} 0.0' % worker in told.body
    assert code == 0


async def test_what_workers_cannot_share_is_refused(config: Path) -> None:
    """With the way out; nothing is served."""
    state = "flow: {state: {store_backend: memory}}"
    rewrite(config, "routing:", f"global: {{integrations: {{looper: {{{state}}}}}}}\nrouting:")

    done = await run(command(config))

    assert done.returncode == 1
    assert b"store_backend" in done.stderr
    assert b"file" in done.stderr
    assert b"Traceback" not in done.stderr


async def test_port_that_is_taken_is_a_readable_error_of_workers(
    router: Started, config: Path
) -> None:
    """The second one says which listener it can't have, before it starts any worker."""
    second = await run(command(config))

    assert router.process.poll() is None
    assert second.returncode == 1
    assert b"in use" in second.stderr
    assert b"Traceback" not in second.stderr
