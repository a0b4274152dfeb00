"""What fallbacks know of models, as configurations come and go."""

from collections import Counter

import trio
import trio.testing

from tests.demo.raw_client import Got
from tests.fakes.router import clusters_of, document_of
from tests.upstream.scenes import (
    NOTHING,
    OK,
    STREAM,
    Play,
    Scene,
    failing,
    model_over,
    start_scene,
    streaming,
)

BAD: Play = failing(503)
NAMES = ("alpha", "beta", "gamma")


def document(scene: Scene, *names: str, cooldown_s: int = 30, idle_s: int = 20) -> str:
    """Return a document with these models, each on a backend of its own; all fall back."""
    breaker = f"{{consecutive_failures: 1, cooldown_period: {cooldown_s}s}}"
    refs = ", ".join(f"{{model: {name}}}" for name in names)
    settings = f"idle_timeout: {idle_s}s"
    models = [model_over([scene.backends[NAMES.index(n)]], settings, name=n) for n in names]
    fallback = f"{{enabled: true, circuit_breaker: {breaker}}}"
    decisions = f"[{{name: d, modelRefs: [{refs}]}}]"
    routing = f"{{fallback: {fallback}, decisions: {decisions}}}"
    return document_of(*models, routing=routing, default=names[0])


async def start(nursery: trio.Nursery, *plays: list[Play]) -> Scene:
    """Start a Router with one backend for each list of plays, all models in use."""
    scene = await start_scene(nursery, "", *plays)
    await scene.reload(document(scene, *NAMES))
    return scene


def known(scene: Scene) -> int:
    """Return of how many candidates the newest configuration knows something."""
    return len(clusters_of(scene.generations[-1]).breakers)


async def asked_by(scene: Scene) -> dict[int, int]:
    """Send one request; return how many calls each backend got of it."""
    before = len(scene.calls)
    await scene.ask()
    return dict(Counter(scene.order[before:]))


async def test_model_that_is_gone_is_forgotten(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What comes back under its name later is judged anew; the models that stay are not."""
    scene = await start(nursery, [BAD], [BAD], [BAD, OK])
    assert await asked_by(scene) == {0: 1, 1: 1, 2: 1}
    assert known(scene) == 3

    await scene.reload(document(scene, "alpha", "beta"))

    assert known(scene) == 2
    await scene.reload(document(scene, *NAMES))
    assert await asked_by(scene) == {0: 1, 2: 1}
    assert await scene.held() == NOTHING


async def test_settings_that_are_gone_leave_nothing(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """However many configurations there were, no more is kept than the last one has."""
    scene = await start(nursery, [BAD], [BAD], [BAD])

    for cooldown_s in range(1, 20):
        await scene.reload(document(scene, *NAMES, cooldown_s=cooldown_s))
        assert await asked_by(scene) == {0: 1, 1: 1, 2: 1}

    assert known(scene) == 3


async def test_models_that_no_longer_fall_back_are_forgotten(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nobody asks how they did any more."""
    scene = await start(nursery, [BAD], [BAD], [BAD])
    assert await asked_by(scene) == {0: 1, 1: 1, 2: 1}

    await scene.reload(document(scene, *NAMES).replace("enabled: true", "enabled: false"))

    assert known(scene) == 0
    assert await asked_by(scene) == {0: 1}


async def test_old_configuration_keeps_its_own_until_its_last_request(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It may still want a candidate; what its last call says is not kept for good either."""
    scene = await start(nursery, [BAD], [streaming(1.0, 1.0), OK], [OK])
    got: list[Got] = []

    async def ask() -> None:
        got.append(await scene.ask(STREAM))

    nursery.start_soon(ask)
    await trio.sleep(0.5)
    await scene.reload(document(scene, "gamma"))

    assert known(scene) == 2
    await trio.sleep(3)
    assert got[0].status == 200
    assert known(scene) == 0


async def test_configuration_that_never_serves_takes_nothing_along(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Given up while it warms up, it leaves the one that serves what it knows."""
    scene = await start(nursery, [BAD], [BAD], [OK])
    assert await asked_by(scene) == {0: 1, 1: 1, 2: 1}
    scene.backends[0].health = (60.0, *OK)
    checked = document(scene, "alpha").replace(
        "idle_timeout", "health_check_path: /health, health_check_timeout: 90s, idle_timeout"
    )

    with trio.move_on_after(1) as patience:
        await scene.reload(checked)

    assert patience.cancelled_caught
    scene.generations.pop()
    assert known(scene) == 3
    assert await asked_by(scene) == {0: 1, 2: 1}
