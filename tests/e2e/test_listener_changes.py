"""Listeners change under clients who connect all the time: nobody is refused, reset or failed."""

import re
import signal
import socket
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from tests.e2e.process import ROUTER, Started, free_port, start
from tests.e2e.standalone import document, until
from tests.e2e.wire import BrokenAnswer, RawClient, chat, connect, post
from tests.e2e.workers import PATIENCE_S, Load, ask, command, end, pids, rewrite
from tests.fakes.backend import start_backend
from vsr.demo.script import Script
from vsr.gateway.listener_server import HANDSHAKES_S
from vsr.network.epoll import EpollNetwork

CLIENTS = 3
"""Of each kind."""
ADDRESSES = ["0.0.0.0", '"::"', "0.0.0.0", "127.0.0.1", '"::"', "localhost"]
"""Whoever connects to 127.0.0.1 is served throughout."""
_CHANGE_S = 10
"""What one may take on a busy machine."""
_MANY = 30
"""Changes: the rare moments are to be met, too."""


@pytest.fixture
async def config(tmp_path: Path, nursery: trio.Nursery) -> Path:
    """Return a document whose backend answers at once, and streams for a while."""
    network = EpollNetwork()
    await nursery.start(network.run)
    backend = await start_backend(nursery, network, Script(chunk_interval_s=0.02))
    path = tmp_path / "router.yaml"
    text = document(port=free_port(), small=backend.port, large=backend.port)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(params=["one process", "workers"])
async def router(
    request: pytest.FixtureRequest, nursery: trio.Nursery, config: Path, tmp_path: Path
) -> AsyncIterator[Started]:
    """Start a Router; none of its processes outlives the test."""
    alone = [ROUTER, "--config", str(config), "--gateway", "standalone", "--metrics-port", "0"]
    how = [*alone, "--admin-address", "127.0.0.1:0"]
    started = await start(
        nursery, how if request.param == "one process" else command(config), tmp_path / "access.log"
    )
    yield started
    for pid in pids(started):
        end(pid)


async def serves(router: Started, version: int) -> None:
    """Wait until all processes serve a version."""
    await router.says(re.compile(f"configuration version {version} serves"))


def listener_of(config: Path) -> str:
    """Return the line of the listener."""
    lines = config.read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("listeners:"))


async def under_load(router: Started, config: Path, changes: list[str]) -> Load:
    """Let the listener become each of `changes` while clients come and go."""
    load = Load(router.port)
    with trio.fail_after(PATIENCE_S + _CHANGE_S * len(changes)):
        async with trio.open_nursery() as nursery:
            for _ in range(CLIENTS):
                nursery.start_soon(load.keep_asking)
                nursery.start_soon(load.connect_each_time)
            await load.more(CLIENTS)
            for version, change in enumerate(changes, start=2):
                rewrite(config, listener_of(config), change)
                await serves(router, version)
                await load.more(2 * CLIENTS)
            nursery.cancel_scope.cancel()
    return load


async def test_address_changes_while_clients_connect(router: Started, config: Path) -> None:
    """Wider, narrower, to the other family and back."""
    line = listener_of(config)
    changes = [line.replace("127.0.0.1", each) for each in ADDRESSES]

    load = await under_load(router, config, changes)

    assert load.broken == []
    assert load.statuses == {200}
    assert load.went_back == []
    assert load.seen == len(ADDRESSES) + 1
    assert "Traceback" not in router.stderr


@pytest.mark.slow
async def test_address_changes_many_times_while_clients_connect(
    router: Started, config: Path
) -> None:
    """So that a moment in which somebody is refused would be met."""
    line = listener_of(config)
    wide, narrow = line.replace("127.0.0.1", "0.0.0.0"), line

    load = await under_load(router, config, [wide, narrow] * (_MANY // 2))

    assert load.broken == []
    assert load.statuses == {200}


async def test_listener_is_renamed_while_clients_ask(router: Started, config: Path) -> None:
    """On connections that stay open: no request fails, and each gets one version's rules."""
    line = listener_of(config)
    changes = [line.replace("public", f"name{number}") for number in range(6)]

    load = await under_load(router, config, changes)

    assert load.broken == []
    assert load.statuses == {200}
    assert load.went_back == []
    assert load.seen == len(changes) + 1
    logged = {entry["response_code"] for entry in router.log_lines()}
    assert logged - {0} == {200}  # 0: of clients that leave when the test ends


async def test_clients_in_the_queue_of_an_address_that_goes_are_served(
    router: Started, config: Path
) -> None:
    """All who connected before the change, in whatever process, and ask after it."""
    rewrite(config, "127.0.0.1, port", "0.0.0.0, port")
    with trio.fail_after(PATIENCE_S):
        await serves(router, 2)
        rewrite(config, "0.0.0.0, port", "127.0.0.1, port")
        clients: list[RawClient] = []
        while "version 3 serves" not in router.stderr:
            clients.append(await connect(router.port))
            await trio.sleep(0.001)
        for client in clients:
            await client.send(b"GET /health HTTP/1.1\r\nHost: router\r\n\r\n")
        answers = [await client.answer() for client in clients]
        for client in clients:
            client.close()

    assert len(clients) > 10 * CLIENTS
    assert [each.status for each in answers if each is not None] == [200] * len(clients)


async def test_refused_change_resets_nobody(router: Started, config: Path) -> None:
    """Its new listener takes nobody before all of the change is known to serve."""
    port, taken = free_port(), socket.socket()
    line = listener_of(config)
    load = Load(router.port)
    connected = 0

    async def knock() -> None:
        nonlocal connected
        while True:
            try:
                with await connect(port):
                    connected += 1
            except OSError:
                await trio.lowlevel.checkpoint()

    with trio.fail_after(PATIENCE_S), taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        also = ", ".join(
            f"{{name: n{number}, address: 127.0.0.1, port: {number}}}"
            for number in (port, taken.getsockname()[1])
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(load.keep_asking)
            nursery.start_soon(knock)
            rewrite(config, line, line.replace("}]", f"}}, {also}]"))
            await router.says(re.compile("configuration refused"))
            nursery.cancel_scope.cancel()

    assert connected == 0
    assert load.broken == []


async def test_second_router_on_a_port_whose_address_changed_is_refused(
    router: Started, config: Path, tmp_path: Path
) -> None:
    """Started by mistake, on either address."""
    errors = []
    with trio.fail_after(PATIENCE_S):
        rewrite(config, "127.0.0.1, port", "0.0.0.0, port")
        await serves(router, 2)
        for address in ("0.0.0.0", "127.0.0.1"):
            with socket.socket() as second:
                second.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    second.bind((address, router.port))
                    second.listen()
                except OSError as error:
                    errors.append(error.strerror)

    assert errors == ["Address already in use"] * 2


async def test_old_address_is_given_up(router: Started, config: Path) -> None:
    """Soon somebody else may have it, and a port that was given up can be had again at once."""
    old, new = router.port, free_port()
    line = listener_of(config)
    with trio.fail_after(PATIENCE_S):
        rewrite(config, line, line.replace(str(old), str(new)))
        await serves(router, 2)
        rewrite(config, line.replace(str(old), str(new)), line)
        await serves(router, 3)
        back = await ask(old)

        def is_free() -> bool:
            with socket.socket() as other:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    other.bind(("127.0.0.1", new))
                    other.listen()
                except OSError:
                    return False
                return True

        await until(is_free, 10 * HANDSHAKES_S)

    assert back is not None
    assert back.status == 200


async def test_drain_refuses_clients_and_resets_none(router: Started) -> None:
    """Whoever has connected is answered or sees an end, never a reset."""
    resets: list[str] = []
    statuses: list[int | None] = []

    async def connect_until_refused() -> None:
        while True:
            sock = trio.socket.socket()
            with sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
                try:
                    await sock.connect(("127.0.0.1", router.port))
                except ConnectionRefusedError:
                    return
                client = RawClient(trio.SocketStream(sock))
                try:
                    await client.send(post(chat()))
                    answer = await client.answer()
                except (BrokenAnswer, OSError) as error:
                    resets.append(repr(error))
                else:
                    statuses.append(None if answer is None else answer.status)

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            for _ in range(2 * CLIENTS):
                nursery.start_soon(connect_until_refused)
            await trio.sleep(0.5)
            router.send(signal.SIGTERM)
        code = await router.process.wait()

    assert resets == []
    assert set(statuses) <= {200, None}
    assert code == 0
