"""Dials that calls share: who gets what comes of them, and when they end."""

from contextlib import suppress
from functools import partial

import pytest
import trio
import trio.testing

from tests.fakes.h2_backend import Head, model_over_h2
from tests.fakes.router import clusters_of, document_of, start_router
from tests.upstream.h2_scene import NOTHING, Scene, start_h2_scene
from vsr.errors import UpstreamFailure
from vsr.network.memory import Fault, MemoryNetwork
from vsr.routing.outcome import TransportFact
from vsr.routing.ports import Journal

PREFIX = b"upstream connect error or disconnect/reset before headers. reset reason: "


async def scene_without_backend(nursery: trio.Nursery, *, reliability: str = "") -> Scene:
    """Return a Router whose backend's host does not answer at all."""
    network = MemoryNetwork()
    network.faults["silent.test"] = Fault.SILENT
    network.faults["unknown.test"] = Fault.UNKNOWN_HOST
    model = model_over_h2(1, reliability=reliability).replace("127.0.0.1:1", "silent.test:1")
    return Scene(await start_router(nursery, network, document_of(model)), [])


async def fail(scene: Scene, ended: list[tuple[str, float, TransportFact]]) -> None:
    """Make a call that gets no connection; note how it ended."""
    journal = Journal([])
    with suppress(UpstreamFailure):
        await scene.send(journal)
    [attempt] = journal.attempts
    ended.append((attempt.error, trio.current_time(), attempt.fact))


async def test_failed_dial_fails_all_who_wait_each_as_its_own_attempt(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One dial for all of them; nothing was sent."""
    scene = await scene_without_backend(nursery, reliability="connect_timeout: 3s")
    ended: list[tuple[str, float, TransportFact]] = []

    async with trio.open_nursery() as calls:
        for _ in range(20):
            calls.start_soon(fail, scene, ended)
        await trio.testing.wait_all_tasks_blocked()
        dials = (await scene.held())["dials"]

    assert dials == 1
    assert ended == [("upstream_connect_failure", 3.0, TransportFact.NOT_CONNECTED)] * 20
    assert await scene.held() == NOTHING


async def test_each_call_tells_of_a_shared_failure_as_its_own(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What one has tried before does not show in the answer of another."""
    network = MemoryNetwork()
    network.faults["silent.test"] = Fault.SILENT
    models = [
        model_over_h2(1, name="alpha", reliability="connect_timeout: 3s"),
        model_over_h2(1, name="beta", reliability="connect_timeout: 3s, retry_count: 1"),
    ]
    document = document_of(*models).replace("127.0.0.1:1'", "silent.test:1'")
    router = await start_router(nursery, network, document)
    bodies: list[bytes] = []

    async def ask(model: bytes) -> None:
        got = await router.ask(b'{"model":"%b","messages":[]}' % model)
        bodies.append(got.body)

    async with trio.open_nursery() as calls:
        for _ in range(3):
            calls.start_soon(ask, b"beta")
        await trio.sleep(1)
        for _ in range(3):
            calls.start_soon(ask, b"alpha")
        await trio.sleep(2.5)
        calls.start_soon(ask, b"alpha")

    text = PREFIX + b"connection timeout"
    retried = text.replace(b"reset reason", b"retried and the latest reset reason", 1)
    assert sorted(bodies) == sorted([text] * 4 + [retried] * 3)


async def test_call_that_leaves_does_not_stop_the_others(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Not even the one that asked for the dial."""
    scene = await start_h2_scene(nursery, settings_after_s=2.0)
    first, second = await scene.begin(), await scene.begin()

    first.close()
    answer = await second.receive()

    assert answer.startswith(b"HTTP/1.1 200")
    assert trio.current_time() == pytest.approx(2)
    assert len(scene.backend.sessions) == 1
    assert await scene.held() == NOTHING


async def test_dial_ends_with_the_last_who_waits(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its connection is closed at once; who comes in that very instant gets one of their own."""
    scene = await start_h2_scene(nursery, settings_after_s=5.0)
    clients = [await scene.begin() for _ in range(3)]
    await trio.sleep(1)

    for client in clients:
        client.close()
    await trio.testing.wait_all_tasks_blocked()
    held, gone_at = await scene.held(), list(scene.backend.gone_at)
    later = await scene.begin()
    later.close()
    got = await scene.ask()

    assert held == NOTHING
    assert gone_at == pytest.approx([1])
    assert got.status == 200
    assert trio.current_time() == pytest.approx(6)
    assert await scene.held() == NOTHING


async def test_call_that_comes_as_a_dial_is_given_up_gets_another(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It must not be told that the other one failed; in whichever order the tasks run."""
    scene = await start_h2_scene(nursery, settings_after_s=5.0)
    responses: list[int] = []

    async def leave(scope: trio.CancelScope) -> None:
        with scope:
            await scene.send(Journal([]))

    async def come() -> None:
        response = await scene.send(Journal([]))
        responses.append(response.status)
        response.close()

    for _ in range(12):
        scope = trio.CancelScope()
        nursery.start_soon(leave, scope)
        await trio.testing.wait_all_tasks_blocked()
        scope.cancel()
        nursery.start_soon(come)
        await trio.sleep(20)
        assert await scene.held() == NOTHING
        for session in scene.backend.sessions:
            session.close()
        await trio.sleep(1)

    assert responses == [200] * 12


@pytest.mark.parametrize(
    ("settings_after_s", "text", "at"),
    [
        (1000.0, b"connection timeout", 3),
        (4.0, b"connection timeout", 3),
        (2.0, None, 2),
    ],
    ids=["never", "too late", "in time"],
)
async def test_settings_belong_to_connecting(
    settings_after_s: float,
    text: bytes | None,
    at: float,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Within the connect timeout, with TCP and TLS; so nothing was sent when they fail to come."""
    scene = await start_h2_scene(
        nursery, reliability="connect_timeout: 3s", settings_after_s=settings_after_s
    )

    got = await scene.ask()

    assert trio.current_time() == pytest.approx(at)
    if text is None:
        assert got.status == 200
    else:
        assert (got.status, got.body) == (503, PREFIX + text)
        assert await scene.held() == NOTHING
        assert scene.backend.open_sessions == 0


async def test_backend_of_http_1_is_a_failed_connection(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Prior knowledge was wrong: it never sees a request, and who reads the error knows why."""
    network = MemoryNetwork()
    listener = await network.listen("", 0)

    async def refuse() -> None:
        while True:
            connection = await listener.accept()
            await connection.receive()
            await connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    nursery.start_soon(refuse)
    document = document_of(model_over_h2(listener.port))
    scene = Scene(await start_router(nursery, network, document), [])

    got = await scene.ask()
    [line] = await scene.router.log()

    text = b"remote connection failure, transport failure reason: the backend does not speak HTTP/2"
    assert (got.status, got.body, line["response_flags"]) == (503, PREFIX + text, "UF")
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("says", [b"", b"\0\0\0\4\0\0\0\0\0\0\0\x08\7\0\0\0\0\0" + bytes(8)])
async def test_connection_that_ends_as_it_begins_is_a_failed_one(
    says: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A backend that starts or stops may close at once, or say GOAWAY with its settings."""
    network = MemoryNetwork()
    listener = await network.listen("", 0)

    async def refuse() -> None:
        while True:
            connection = await listener.accept()
            await connection.receive()
            if says:
                await connection.send(says)
            else:
                connection.close()

    nursery.start_soon(refuse)
    reliability = "retry_count: 2, retry_back_off_base: 1ms"
    document = document_of(model_over_h2(listener.port, reliability=reliability))
    scene = Scene(await start_router(nursery, network, document), [])
    attempts = await scene.failing()
    got = await scene.ask()

    assert [attempt.error for attempt in attempts] == ["upstream_connect_failure"] * 3
    assert all(attempt.is_known_zero for attempt in attempts)
    assert got.body.endswith(b"refused by GOAWAY" if says else b"closed before its settings")
    assert await scene.held() == NOTHING


async def test_failed_dial_fails_its_share_alone(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """With two of them under way, half of those who wait; the others go on waiting."""
    scene = await start_h2_scene(nursery, (60.0, Head(), b"{}"), settings={3: 2})
    ended: list[tuple[str, float, TransportFact]] = []
    for _ in range(2):
        await scene.begin()
    network = scene.network
    real = network.connect
    tried: list[int] = []

    async def connect(host: str, port: int, **how: object) -> object:
        tried.append(port)
        if len(tried) == 1:
            await trio.sleep(1)
            return await real("127.0.0.1", 1)
        await trio.sleep(2)
        return await real(host, port, **how)  # type: ignore[arg-type]  # as it came

    network.connect = connect  # type: ignore[method-assign, assignment]  # as the test says
    for _ in range(4):
        nursery.start_soon(partial(fail, scene, ended))
    await trio.sleep(1.5)
    failed = list(ended)
    waiting = await scene.held()
    await trio.sleep(1)

    assert failed == [("upstream_connect_failure", 1, TransportFact.NOT_CONNECTED)] * 2
    assert (len(tried), waiting["waiters"]) == (2, 2)
    assert (await scene.held())["lent"] == 4


@pytest.fixture
def one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be one connection, so that calls wait for its streams."""
    monkeypatch.setattr("vsr.upstream.h2_pool.MAX_CONNECTIONS_PER_HOST", 1)


@pytest.mark.usefixtures("one_connection")
async def test_stream_that_comes_as_its_call_ends_is_passed_on(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A place that nobody takes goes to the next who waits."""
    scene = await start_h2_scene(nursery, settings={3: 1})
    holder = await scene.send(Journal([]))
    scopes = [trio.CancelScope(), trio.CancelScope()]
    got: list[int] = []

    async def call(number: int) -> None:
        with scopes[number]:
            response = await scene.send(Journal([]))
            got.append(number)
            response.close()

    for number in range(2):
        nursery.start_soon(call, number)
        await trio.testing.wait_all_tasks_blocked()
    holder.close()
    scopes[0].cancel()
    await trio.sleep(1)

    assert got == [1]
    assert await scene.held() == NOTHING


@pytest.mark.usefixtures("one_connection")
async def test_connection_that_goes_as_its_stream_is_handed_over_is_replaced(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nothing was written on it, so it is no attempt."""
    scene = await start_h2_scene(nursery, settings={3: 1})
    holder = await scene.send(Journal([]))
    journal = Journal([])
    statuses: list[int] = []

    async def wait() -> None:
        response = await scene.send(journal)
        statuses.append(response.status)
        response.close()

    nursery.start_soon(wait)
    await trio.testing.wait_all_tasks_blocked()
    [host] = scene.pool._hosts.values()
    holder.close()
    handed_over = host.connections[0].lent
    host.connections[0].close()
    await trio.sleep(1)

    assert (handed_over, statuses, len(journal.attempts)) == (1, [200], 1)
    assert await scene.held() == NOTHING


async def test_connection_to_a_host_that_nobody_wants_closes_behind_its_call(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Also one that was being dialled when the last who wanted it left."""
    scene = await start_h2_scene(nursery, settings_after_s=2.0)
    scene.pool.join(nursery, {("elsewhere", 1)})
    client = await scene.begin()

    scene.pool.leave(clusters_of(scene.router.generation))
    answer = await client.receive()
    await trio.testing.wait_all_tasks_blocked()

    assert answer.startswith(b"HTTP/1.1 200")
    assert scene.backend.open_sessions == 0
