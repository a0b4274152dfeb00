"""Clients that leave while their call goes on from model to model."""

from contextlib import suppress
from itertools import count

import pytest
import trio
import trio.testing

from tests.fakes.router import document_of
from tests.faults.moments import request_of
from tests.faults.test_every_step import AfterStep
from tests.upstream.scenes import (
    BODY,
    NOTHING,
    OK,
    SILENT,
    STREAM,
    Departure,
    Play,
    Scene,
    failing,
    model_over,
    read_on,
    start_scene,
)
from vsr.network.port import ConnectionBroken

NAMES = ("alpha", "beta", "gamma")


async def start_models(nursery: trio.Nursery, *plays: list[Play]) -> Scene:
    """Serve a decision with three models, each of one backend, that fall back to one another."""
    scene = await start_scene(nursery, "", *plays)
    models = [
        model_over([backend], "idle_timeout: 50s", name=name)
        for backend, name in zip(scene.backends, NAMES, strict=True)
    ]
    refs = ", ".join(f"{{model: {name}}}" for name in NAMES)
    decision = f"{{name: d, modelRefs: [{refs}]}}"
    routing = f"{{fallback: {{enabled: true}}, decisions: [{decision}]}}"
    await scene.reload(document_of(*models, routing=routing))
    return scene


@pytest.mark.parametrize("how", ["close", "abort", "shutdown_send"])
async def test_client_that_leaves_ends_the_call_to_the_next_model_too(
    how: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The failure that was held back, with its slot, is let go in the same instant."""
    scene = await start_models(nursery, [failing(503)], [SILENT], [OK])
    client = await scene.begin(STREAM)
    await trio.sleep(1)
    held = await scene.held()
    assert held == {**NOTHING, "active": 2, "hosts": 2, "connections": 2, "leases": 1}

    getattr(client, how)()
    held = await scene.held()
    await trio.sleep(30)

    assert held == NOTHING
    assert scene.order == [0, 1]
    [line] = await scene.router.log()
    assert (line["outcome"], line["cause"], line["attempts"]) == ("cancelled", "client_gone", 2)
    client.close()
    await trio.testing.wait_all_tasks_blocked()
    assert scene.network.open_connections == 0


async def _leave_behind_step(step: int, how: str, body: bytes) -> bool:
    """Run one call through three models, left behind a step; return whether it got there."""
    async with trio.open_nursery() as nursery:
        plays = [[failing(503)], [OK, (0.01, *failing(502))], [OK]]
        scene = await start_models(nursery, *plays)
        # The second model has an idle connection, on which nothing need be waited for.
        await scene.ask()
        client = await scene.router.connect()
        await trio.testing.wait_all_tasks_blocked()
        departure = Departure(scene, client, how)
        instrument = AfterStep(step, departure)
        trio.lowlevel.add_instrument(instrument)
        with suppress(ConnectionBroken):
            await client.send(request_of(body))
        nursery.start_soon(read_on, client)
        await trio.sleep(0.3)
        trio.lowlevel.remove_instrument(instrument)
        assert await scene.held() == NOTHING
        lines = await scene.router.log()
        assert len(lines) <= 2
        if departure.begun is not None:
            assert lines[1]["attempts"] == departure.begun, "another model asked for nobody"
        nursery.cancel_scope.cancel()
    return instrument.count >= step


@pytest.mark.parametrize("body", [BODY, STREAM], ids=["buffered", "streamed"])
def test_client_may_leave_behind_any_step_of_a_call_that_falls_back(body: bytes) -> None:
    """Nothing is held afterwards, and no further model is asked for a client that has left."""
    for step in count(1):
        # Trio shuffles ready tasks, so one try per step would see one of several orders.
        lived = False
        for _ in range(3):
            clock = trio.testing.MockClock(autojump_threshold=0)
            lived |= trio.run(_leave_behind_step, step, "close", body, clock=clock)
        if not lived:
            assert step > 10
            return
