"""A request keeps the configuration it began with, from first byte to last."""

import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd, Got, ask, chat_body
from tests.fakes.backend import start_backend
from tests.fakes.router import as_snapshot, clusters_of, document_of, model_of, start_router
from vsr.compose.generation import build_generation
from vsr.demo.script import Script
from vsr.network.memory import MemoryNetwork

STREAM = chat_body(model="auto", stream=True)


async def test_request_finishes_on_the_generation_it_began_with(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report O6: the old one serves its last request whole, then closes its pools."""
    network = MemoryNetwork()
    script = Script(model="old", chunks=10, chunk_interval_s=1)
    old_backend = await start_backend(nursery, network, script)
    new_backend = await start_backend(nursery, network, Script(model="new"))
    router = await start_router(nursery, network, document_of(model_of(old_backend.port)))
    old = router.generation
    client = await router.connect()
    answers: list[Got] = []

    async def stream() -> None:
        answers.append(await ask(client, STREAM))

    await router.ask(chat_body(model="auto"))
    async with trio.open_nursery() as asking:
        asking.start_soon(stream)
        await trio.sleep(3)
        new = router.activate(document_of(model_of(new_backend.port)), 2)
        during = await router.ask(chat_body(model="auto"))
        held = await router.held(old)
        assert old_backend.open_connections == 1
    after = await ask(client, chat_body(model="auto"))

    assert (answers[0].end, held) == (AnswerEnd.WHOLE, (1, 1))
    assert answers[0].line(b"x-vsr-config-version") == b"1"
    assert answers[0].body.endswith(b"[DONE]\n\n")
    assert during.json()["model"] == after.json()["model"] == "new"
    assert during.line(b"x-vsr-config-version") == after.line(b"x-vsr-config-version") == b"2"
    assert await router.held(old, new) == (0, 0)
    assert (old.is_retired, old.on_unused, old_backend.open_connections) == (True, None, 0)
    assert (new_backend.open_connections, clusters_of(new).idle_connections) == (1, 1)
    assert sorted(line["config_version"] for line in await router.log()) == [1, 1, 2, 2]


@pytest.mark.parametrize(("is_moved", "left"), [(False, 1), (True, 0)])
async def test_connections_stay_open_as_long_as_their_endpoint_is_served(
    is_moved: bool,  # noqa: FBT001  # a case
    left: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Idle ones to an endpoint that the new version lacks close at once."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))
    await router.ask(STREAM)
    assert backend.open_connections == 1

    moved = await start_backend(nursery, network)
    port = moved.port if is_moved else backend.port
    router.activate(document_of(model_of(port)), 2)
    await trio.testing.wait_all_tasks_blocked()

    assert backend.open_connections == left
    assert (await router.ask(STREAM)).status == 200
    assert backend.accepted_connections == 1


async def test_every_request_is_served_by_one_version_while_versions_change(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report O6: forty versions under load, no error, and each answer names its own."""
    network = MemoryNetwork()
    script = Script(latency_s=0.03, chunks=5, chunk_interval_s=0.02)
    backend = await start_backend(nursery, network, script)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))
    generations = [router.generation]
    answers: list[Got] = []

    async def ask_on() -> None:
        client = await router.connect()
        for _ in range(15):
            answers.append(await ask(client, STREAM))  # noqa: PERF401  # one by one

    async with trio.open_nursery() as asking:
        for _ in range(4):
            asking.start_soon(ask_on)
        for version in range(2, 42):
            await trio.sleep(0.05)
            generations.append(router.activate(document_of(model_of(backend.port)), version))

    assert {(got.end, got.status) for got in answers} == {(AnswerEnd.WHOLE, 200)}
    shown = sorted(int(got.line(b"x-vsr-config-version")) for got in answers)
    assert shown == sorted(line["config_version"] for line in await router.log())
    assert len(set(shown)) > 10
    assert await router.held(*generations) == (0, 0)
    assert all(each.on_unused is None for each in generations[:-1])


async def test_listener_that_the_new_version_lacks_serves_those_that_have_come(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """By the rules that it had; its connections are on their way out, and no lease is lost."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network)
    document = document_of(model_of(backend.port))
    router = await start_router(nursery, network, document)
    client = await router.connect()
    await ask(client, STREAM)

    new = router.activate(document.replace("name: http,", "name: other,"), 2)
    got = await ask(client, STREAM)

    assert (got.status, got.line(b"x-vsr-config-version")) == (200, b"2")
    assert await router.held(new) == (0, 0)


@pytest.mark.parametrize("version", [1, 7])
async def test_version_is_told_to_clients_and_to_the_log(
    version: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """On routed answers, errors and the model list alike."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))
    router.activate(document_of(model_of(backend.port)), version)

    answers = [
        await router.ask(STREAM),
        await router.ask(chat_body(model="nope")),
        await router.ask(target=b"/v1/models", method=b"GET"),
    ]

    assert [int(got.line(b"x-vsr-config-version")) for got in answers] == [version] * 3
    assert [line["config_version"] for line in await router.log()] == [version] * 3


async def test_configuration_that_is_given_up_takes_nothing_along(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The one that serves keeps its connections, and keeps keeping them; the rest is closed."""
    network = MemoryNetwork()
    sound = await start_backend(nursery, network)
    other = await start_backend(nursery, network, Script(latency_s=0.5))
    router = await start_router(nursery, network, document_of(model_of(sound.port)))
    await router.ask(chat_body(model="auto"))
    checked = model_of(other.port, "beta", reliability="{health_check_path: /slow}")
    document = document_of(model_of(sound.port), checked)
    new = build_generation(router.parts, as_snapshot(document), 2, router.generation)

    with trio.move_on_after(0.2):
        await router.router.activate(new)
    await trio.testing.wait_all_tasks_blocked()
    for _ in range(3):
        assert (await router.ask(chat_body(model="auto"))).status == 200

    assert (sound.accepted_connections, sound.open_connections) == (1, 1)
    assert other.open_connections == 0
    assert router.generation.version == 1
