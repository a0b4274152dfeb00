"""A new configuration takes over what is known of the models that it leaves as they are."""

from collections import Counter

import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd, Got
from tests.engine.stepped_backend import EVENT_STREAM, Act
from tests.fakes.router import clusters_of, document_of
from tests.upstream.scenes import (
    NOTHING,
    OK,
    SILENT,
    STREAM,
    Scene,
    event,
    failing,
    model_over,
    start_scene,
    streaming,
)

CHECKED = "health_check_path: /health, health_check_interval: 10s"
EJECTS = "consecutive_5xx: 1, base_ejection_time: 15s"


def unchanged(scene: Scene, settings: str) -> str:
    """Return a document with the same model, and something new beside it."""
    return document_of(model_over(scene.backends, settings)) + "\nevaluation: {}"


def changed(scene: Scene, settings: str) -> str:
    """Return a document in which one setting of the model is another."""
    return document_of(model_over(scene.backends, settings + ", idle_timeout: 77s"))


async def calls_of(scene: Scene, count: int) -> dict[int, int]:
    """Send requests in turn; return how many calls each backend got of them."""
    before = len(scene.calls)
    for _ in range(count):
        await scene.ask()
    return dict(Counter(scene.order[before:]))


async def test_unchanged_model_keeps_its_ejections(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """And whoever is out comes back when it would have."""
    scene = await start_scene(nursery, EJECTS, [failing(503), OK], [OK])
    await calls_of(scene, 2)
    await trio.sleep_until(4)

    await scene.reload(unchanged(scene, EJECTS))

    assert await calls_of(scene, 4) == {1: 4}
    await trio.sleep_until(19.9)
    assert await calls_of(scene, 4) == {1: 4}
    await trio.sleep_until(20.1)
    assert await calls_of(scene, 4) == {0: 2, 1: 2}


async def test_configurations_that_follow_fast_do_not_put_sweeps_off(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Whoever is out comes back though no configuration lives as long as one interval."""
    scene = await start_scene(nursery, EJECTS, [failing(503), OK], [OK])
    await calls_of(scene, 2)

    for _ in range(5):
        await trio.sleep(6)
        await scene.reload(unchanged(scene, EJECTS))

    assert await calls_of(scene, 4) == {0: 2, 1: 2}


async def test_two_configurations_at_once_sweep_once(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The old one still does while the new one warms up; being forgiven twice would show."""
    bad = failing(503)
    scene = await start_scene(nursery, EJECTS, [bad, bad, bad, OK], [OK], [OK])
    alpha = model_over(scene.backends[:2], EJECTS)
    documents = [
        document_of(
            alpha, model_over(scene.backends[2:], f"{CHECKED}, idle_timeout: {idle}s", name="beta")
        )
        for idle in (5, 6)
    ]
    await scene.reload(documents[0])
    for at in (0, 21):
        await trio.sleep_until(at)
        assert 0 in await calls_of(scene, 2)
    # Out for 30 s the second time, back since 60 s, forgiven once at 70 s.
    await trio.sleep_until(69)
    scene.backends[2].health = (1.9, *OK)
    await scene.reload(documents[1])
    assert trio.current_time() == pytest.approx(70.9)

    assert 0 in await calls_of(scene, 2)

    await trio.sleep_until(95)
    assert await calls_of(scene, 4) == {1: 4}


async def test_failures_in_a_row_are_counted_on(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Two under the old configuration and one under the new one are three."""
    settings = "consecutive_5xx: 3"
    scene = await start_scene(nursery, settings, [failing(503)], [OK])
    await calls_of(scene, 4)

    await scene.reload(unchanged(scene, settings))

    assert await calls_of(scene, 2) == {0: 1, 1: 1}
    assert await calls_of(scene, 4) == {1: 4}


async def test_answer_that_breaks_off_under_the_old_configuration_still_counts(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its endpoint is out for the calls of the new one."""
    settings = "consecutive_5xx: 1"
    breaks = (EVENT_STREAM, event("first"), 9.0, Act.RESET)
    scene = await start_scene(nursery, settings, [breaks], [OK])
    nursery.start_soon(scene.ask, STREAM)
    await trio.sleep(1)
    await scene.reload(unchanged(scene, settings))
    await trio.sleep(9)

    assert await calls_of(scene, 4) == {1: 4}
    assert await scene.held() == NOTHING


async def test_unchanged_model_keeps_what_its_checks_said(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nothing is checked again for the new configuration, which serves at once."""
    scene = await start_scene(nursery, CHECKED, [OK], [OK], health=[failing(503)])
    await scene.ask()
    await trio.sleep_until(64)

    await scene.reload(unchanged(scene, CHECKED))

    assert trio.current_time() == 64
    assert await calls_of(scene, 4) == {1: 4}
    await trio.sleep_until(95)
    for backend in scene.backends:
        assert [check.at for check in backend.checks] == pytest.approx([0, 60, 70, 80, 90])


async def test_check_that_was_broken_off_is_made_again_at_once(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It told nothing."""
    scene = await start_scene(nursery, CHECKED, [OK])
    backend = scene.backends[0]
    backend.health = SILENT
    await trio.sleep_until(61)
    backend.health = OK

    await scene.reload(unchanged(scene, CHECKED))
    await trio.sleep_until(61.5)

    assert [check.at for check in backend.checks] == pytest.approx([0, 60, 61])
    assert await scene.held() == NOTHING


async def test_unchanged_model_keeps_its_connections(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Even one whose settings changed keeps those to endpoints that it still has."""
    scene = await start_scene(nursery, EJECTS, [OK], [OK])
    await calls_of(scene, 4)

    for document in (unchanged(scene, EJECTS), changed(scene, EJECTS)):
        await scene.reload(document)
        assert await calls_of(scene, 4) == {0: 2, 1: 2}

    assert [each.accepted for each in scene.backends] == [1, 1]


@pytest.mark.parametrize("kept", [1, 2])
async def test_connection_of_an_endpoint_that_is_gone_is_not_kept(
    kept: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Also one that a call of the old configuration opened afterwards."""
    settings = "retry_count: 1, retry_on: 5xx, retry_after_max: 9s"
    later = failing(503, (b"retry-after", b"5"))
    scene = await start_scene(nursery, settings, [later], [OK], [OK], [OK])
    nursery.start_soon(scene.ask)
    await trio.sleep(1)

    await scene.reload(document_of(model_over(scene.backends[-kept:], settings)))
    await trio.sleep(20)

    assert scene.order == [0, 1]
    assert await scene.held() == NOTHING
    assert [len(each.gone_at) for each in scene.backends] == [1, 1, 0, 0]
    assert scene.network.open_connections == 0
    await scene.reload(document_of(model_over(scene.backends, settings)))
    await calls_of(scene, 12)
    assert [each.accepted for each in scene.backends[1:]] == [2, 1, 1]


async def test_calls_of_both_configurations_share_the_breaker(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Who waits under the old one gets the slot of a call of the new one, and the other way."""
    settings = "max_connections: 1"
    plays = [streaming(10.0), streaming(10.0), streaming(10.0), OK]
    scene = await start_scene(nursery, settings, plays)
    answers: list[Got] = []

    async def ask() -> None:
        answers.append(await scene.ask(STREAM))

    nursery.start_soon(ask)
    await trio.sleep(1)
    nursery.start_soon(ask)
    await trio.sleep(1)
    await scene.reload(unchanged(scene, settings))
    nursery.start_soon(ask)
    await trio.sleep(1)
    nursery.start_soon(ask)
    old, new = scene.generations
    assert (await scene.held())["waiting"] == 3
    assert (old.leases, new.leases) == (2, 2)
    await scene.reload(unchanged(scene, settings))

    await trio.sleep(60)

    assert scene.times == pytest.approx([0, 10, 20, 30])
    assert [(got.status, got.end) for got in answers] == [(200, AnswerEnd.WHOLE)] * 4
    shown = [got.line(b"x-vsr-config-version") for got in answers]
    assert shown == [b"1", b"1", b"2", b"2"]
    assert await scene.held() == NOTHING
    assert all(each.on_unused is None for each in scene.generations[:-1])


async def test_slot_of_the_new_configuration_serves_a_waiter_of_the_old_one(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Two slots: the one that comes back first is one that was taken after the change."""
    settings = "max_connections: 2"
    scene = await start_scene(
        nursery, settings, [streaming(50.0), streaming(2.0), streaming(9.0), OK]
    )
    nursery.start_soon(scene.ask, STREAM)
    nursery.start_soon(scene.ask, STREAM)
    await trio.sleep(1)
    nursery.start_soon(scene.ask, STREAM)
    nursery.start_soon(scene.ask)
    await trio.sleep(0.5)
    waiting = (await scene.held())["waiting"]
    await scene.reload(unchanged(scene, settings))
    nursery.start_soon(scene.ask)
    await trio.sleep(30)

    assert waiting == 2
    assert scene.times[:3] == pytest.approx([0, 0, 2])
    assert scene.times[3:] == pytest.approx([11, 11])
    assert scene.generations[0].leases == 1


async def test_retry_slots_are_shared_too(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A call that waits to try again under the old configuration counts under the new one."""
    settings = "retry_count: 1, retry_on: 5xx, retry_after_max: 9s, max_retries: 1"
    scene = await start_scene(nursery, settings, [failing(503, (b"retry-after", b"5"))])
    nursery.start_soon(scene.ask)
    await trio.sleep(1)

    await scene.reload(unchanged(scene, settings))
    await scene.ask()

    assert trio.current_time() == 1
    assert len(scene.calls) == 2
    await trio.sleep(10)
    assert len(scene.calls) == 3
    assert await scene.held() == NOTHING


async def test_changed_model_starts_anew(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """No ejection is left, and the breaker is empty, while old calls finish beside it."""
    settings = EJECTS + ", max_connections: 1"
    scene = await start_scene(nursery, settings, [failing(503), streaming(30.0), OK], [OK])
    await calls_of(scene, 2)
    assert scene.state.hosts[0].is_ejected
    await trio.sleep_until(21)
    nursery.start_soon(scene.ask, STREAM)
    await trio.sleep(1)
    old = scene.state

    await scene.reload(changed(scene, settings))

    assert scene.state is not old
    assert not any(host.is_ejected for host in scene.state.hosts)
    assert (scene.state.gate.breaker.active, old.gate.breaker.active) == (0, 1)
    assert await calls_of(scene, 4) == {0: 2, 1: 2}
    assert trio.current_time() == pytest.approx(22)
    await trio.sleep(40)
    assert await scene.held() == NOTHING


async def test_changed_model_is_checked_before_it_serves(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The old configuration serves until then, as it did."""
    scene = await start_scene(nursery, CHECKED, [OK], [OK])
    scene.backends[0].health = (1.5, *failing(500))

    nursery.start_soon(scene.reload, changed(scene, CHECKED))
    await trio.sleep(1)
    early = await scene.ask()
    assert await calls_of(scene, 3) == {0: 1, 1: 2}
    await trio.sleep(1)
    late = await scene.ask()

    shown = [got.line(b"x-vsr-config-version") for got in (early, late)]
    assert shown == [b"1", b"2"]
    assert await calls_of(scene, 4) == {1: 4}


async def test_unchanged_model_beside_a_changed_one_goes_on(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Each is taken over for itself."""
    scene = await start_scene(nursery, EJECTS, [failing(503)], [OK])
    alpha = model_over(scene.backends, EJECTS)
    await calls_of(scene, 2)
    states = []

    for idle in (5, 6):
        beta = model_over(scene.backends, f"{EJECTS}, idle_timeout: {idle}s", name="beta")
        await scene.reload(document_of(alpha, beta))
        states.append(list(clusters_of(scene.generations[-1]).states.values()))

    assert states[0][0] is states[1][0]
    assert states[0][1] is not states[1][1]
    assert await calls_of(scene, 4) == {1: 4}


async def test_breakers_of_fallbacks_outlive_a_configuration(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A model that was no candidate is none either under the next one, until its time is over."""
    scene = await start_scene(nursery, "", [failing(503)], [failing(503)], [OK])
    breaker = "circuit_breaker: {consecutive_failures: 1, cooldown_period: 30s}"
    names = ("alpha", "beta", "gamma")
    refs = ", ".join(f"{{model: {name}}}" for name in names)
    routing = (
        f"{{fallback: {{enabled: true, {breaker}}}, decisions: [{{name: d, modelRefs: [{refs}]}}]}}"
    )

    async def serve(idle_s: int) -> None:
        settings = f"idle_timeout: {idle_s}s"
        models = [
            model_over([backend], settings, name=name)
            for backend, name in zip(scene.backends, names, strict=True)
        ]
        await scene.reload(document_of(*models, routing=routing))

    await serve(20)
    assert await calls_of(scene, 1) == {0: 1, 1: 1, 2: 1}
    assert await calls_of(scene, 1) == {0: 1, 2: 1}

    await serve(21)

    assert await calls_of(scene, 1) == {0: 1, 2: 1}
    await trio.sleep(31)
    assert await calls_of(scene, 1) == {0: 1, 1: 1, 2: 1}
    assert await scene.held() == NOTHING
