"""Quarantine through the whole Router: what it does to calls, and what outlives what."""

from collections import Counter

import pytest
import trio
import trio.testing

from tests.fakes.router import as_snapshot, clusters_of, document_of
from tests.upstream.scenes import (
    BODY,
    NOTHING,
    OK,
    STREAM,
    Scene,
    failing,
    model_over,
    start_scene,
    streaming,
)
from tests.upstream.test_metrics import samples
from vsr.compose.generation import build_generation
from vsr.upstream.metrics import make_renderer

LONG = streaming(5.0, 5.0)


def quarantine(scene: Scene, *places: int, change: int = 0) -> None:
    """Take these endpoints of the model out of rotation, and put all others back."""
    quarantined = scene.router.parts.quarantine
    names = [("alpha", scene.state.hosts[place].endpoint.name) for place in places]
    quarantined.replace(names, change or quarantined._change + 1)  # as its owner counts


async def calls_of(scene: Scene, count: int, body: bytes = BODY) -> dict[int, int]:
    """Send requests in turn; return how many calls each backend got of them."""
    before = len(scene.calls)
    for _ in range(count):
        await scene.ask(body)
    return dict(Counter(scene.order[before:]))


async def test_endpoint_leaves_rotation_and_comes_back(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """At once, both times."""
    scene = await start_scene(nursery, "", [OK], [OK], [OK])

    quarantine(scene, 1)
    out = await calls_of(scene, 6)
    quarantine(scene)
    back = await calls_of(scene, 6)

    assert out == {0: 3, 2: 3}
    assert back == {0: 2, 1: 2, 2: 2}


async def test_call_under_way_is_not_cut(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A stream goes on to its end, and holds nothing then."""
    scene = await start_scene(nursery, "", [LONG], [OK])
    client = await scene.begin(STREAM)
    await trio.sleep(2)

    quarantine(scene, 0)
    later = await calls_of(scene, 3)
    during = scene.state.hosts[0].active
    await trio.sleep(20)
    received = b""
    with trio.move_on_after(1):
        while piece := await client.receive():
            received += piece

    assert (later, during) == ({1: 3}, 1)
    assert b"[DONE]" in received
    assert scene.state.hosts[0].stats.complete == 1
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("reliability", ["consecutive_5xx: 1, max_ejection_percent: 100"])
async def test_panic_does_not_bring_it_back(
    reliability: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """All others are out, so that all others are called."""
    scene = await start_scene(nursery, reliability, [failing(503)], [failing(503)], [OK], [OK])
    quarantine(scene, 2, 3)
    await calls_of(scene, 2)

    calls = await calls_of(scene, 4)

    assert scene.state.rotation.is_panicking
    assert calls == {0: 2, 1: 2}


async def test_retry_does_not_go_there(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Where all others have been tried, one of them is asked again."""
    settings = "retry_count: 2, retry_on: 5xx, retry_back_off_base: 1ms"
    scene = await start_scene(nursery, settings, [failing(503)], [OK])
    quarantine(scene, 1)

    got = await scene.ask()

    assert got.status == 503
    assert scene.order == [0, 0, 0]


async def test_model_without_endpoints_answers_503_and_falls_back(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """As where no endpoint is there; nothing is held, and the log says why."""
    scene = await start_scene(nursery, "", [OK])

    quarantine(scene, 0)
    alone = await scene.ask()
    models = [model_over(scene.backends), model_over(scene.backends, name="spare")]
    routing = (
        "{decisions: [{name: all, modelRefs: [{model: alpha}, {model: spare}],"
        " fallback: {enabled: true}}]}"
    )
    await scene.reload(document_of(*models, routing=routing))
    elsewhere = await scene.ask()
    lines = await scene.router.log()

    assert (alone.status, alone.body) == (503, b"no healthy upstream")
    assert (elsewhere.status, elsewhere.line(b"x-vsr-selected-model")) == (200, b"spare")
    assert [line["response_flags"] for line in lines] == ["UH", "-"]
    assert await scene.held() == NOTHING


async def test_it_outlives_reloads_whatever_becomes_of_the_model(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Unchanged, changed, gone and back: the endpoint is known by its names."""
    scene = await start_scene(nursery, "", [OK], [OK])
    quarantine(scene, 0)
    seen = []

    for document in (
        document_of(model_over(scene.backends)) + "\nevaluation: {}",
        document_of(model_over(scene.backends, "idle_timeout: 77s")),
        document_of(model_over(scene.backends, name="other"), default="other"),
        document_of(model_over(scene.backends)),
    ):
        await scene.reload(document)
        seen.append([host.is_quarantined for host in scene.state.hosts])
    calls = await calls_of(scene, 4)

    assert seen == [[True, False], [True, False], [False, False], [True, False]]
    assert calls == {1: 4}


async def test_configuration_that_is_built_but_does_not_serve_heeds_it(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It may serve the very next moment."""
    scene = await start_scene(nursery, "", [OK], [OK])
    document = as_snapshot(document_of(model_over(scene.backends, "idle_timeout: 77s")))
    built = build_generation(scene.router.parts, document, 2, scene.router.generation)

    quarantine(scene, 1)
    state = clusters_of(built).state_of("alpha")

    assert state is not None
    assert [host.is_quarantined for host in state.hosts] == [False, True]
    assert state.rotation.pick(0.0) is state.hosts[0]
    built.retire()


async def test_change_that_comes_late_is_passed_over(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Two of them may be on their way at a time."""
    scene = await start_scene(nursery, "", [OK], [OK])

    quarantine(scene, 0, change=2)
    quarantine(scene, 1, change=1)

    assert [host.is_quarantined for host in scene.state.hosts] == [True, False]


async def test_it_is_a_metric(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Beside that of whether calls may go there."""
    scene = await start_scene(nursery, "", [OK], [OK])

    quarantine(scene, 1)
    read = samples(make_renderer(lambda: clusters_of(scene.router.generation))())

    for name, values in {"quarantined": [0, 1], "healthy": [1, 0]}.items():
        found = [
            read[f'llm_upstream_endpoint_{name}{{cluster="alpha",endpoint="{host}"}}']
            for host in (each.endpoint.name for each in scene.state.hosts)
        ]
        assert found == values


async def test_health_checks_go_on(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """So that it is known how an endpoint is before it is put back."""
    scene = await start_scene(nursery, "health_check_path: /health", [OK], [OK])
    quarantine(scene, 0)
    before = len(scene.backends[0].checks)

    await trio.sleep(200)

    assert len(scene.backends[0].checks) > before + 2
    assert not scene.state.hosts[0].is_rotating
