"""What the management API is told of a Router in this process."""

import os

import attrs
import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.router import RunningRouter, document_of, start_router
from tests.upstream.scenes import OK, PlayingBackend, failing, model_over, start_backends
from vsr.admin.quarantine import QuarantineChange
from vsr.admin.views import ComponentView, WorkerView
from vsr.compose.local_serving import LocalServing
from vsr.network.memory import MemoryNetwork

SLOW = (5.0, *OK)


@attrs.define(eq=False)
class Scene:
    """A Router with two slow backends, and what the API is told by."""

    running: RunningRouter
    backends: list[PlayingBackend]
    document: str
    serving: LocalServing


@pytest.fixture
async def scene(nursery: trio.Nursery) -> Scene:
    """Return one that ejects an endpoint at its first failure."""
    network = MemoryNetwork()
    backends = await start_backends(nursery, network, [[SLOW], [SLOW]])
    reliability = "consecutive_5xx: 1, base_ejection_time: 60s, max_ejection_percent: 100"
    document = document_of(model_over(backends, reliability))
    running = await start_router(nursery, network, document)
    return Scene(running, backends, document, LocalServing(running.router, trio.Event()))


async def test_versions_that_requests_still_use_are_told(
    scene: Scene, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Until the last of them has ended."""
    nursery.start_soon(scene.running.ask, chat_body(model="alpha"))
    await trio.testing.wait_all_tasks_blocked()
    scene.running.activate(scene.document + "\n# another\n", 2)

    during = await scene.serving.view()
    await trio.sleep(10)
    after = await scene.serving.view()

    assert [(each.version, each.active, each.leases) for each in during.generations] == [
        (2, True, 0),
        (1, False, 1),
    ]
    assert [each.version for each in after.generations] == [2]
    assert (during.ready, during.workers, during.listeners) == (True, 1, {"http": 8899})
    assert (during.open_connections, after.open_connections) == (1, 0)


async def test_endpoints_are_told_as_they_are_doing(
    scene: Scene, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What is under way, and why and how long one is left out."""
    nursery.start_soon(scene.running.ask, chat_body(model="alpha"))
    await trio.testing.wait_all_tasks_blocked()
    [cluster] = (await scene.serving.backends()).clusters
    # Which of the two comes first is drawn.
    at = [each.in_flight for each in cluster.endpoints].index(1)
    scene.backends[1 - at].plays = [failing(500)]
    await scene.running.ask(chat_body(model="alpha"))
    await trio.sleep(20)
    [later] = (await scene.serving.backends()).clusters

    assert (cluster.name, cluster.breaker.active, cluster.breaker.open) == ("alpha", 1, False)
    assert [each.available for each in cluster.endpoints] == [True, True]
    slow, failed = later.endpoints[at], later.endpoints[1 - at]
    assert (slow.ejected, slow.ejection_reason, slow.ejected_for_s) == (False, None, None)
    assert (failed.ejected, failed.available) == (True, False)
    assert failed.ejection_reason == "consecutive_5xx"
    assert failed.ejected_for_s == pytest.approx(40.0, abs=0.1)
    assert (slow.attempts, failed.attempts) == ({"2xx": 1}, {"5xx": 1})
    assert (slow.in_flight, later.panic) == (0, False)


async def test_metrics_are_those_of_their_own_listener(
    scene: Scene, autojump_clock: trio.testing.MockClock
) -> None:
    """Loaded for who asks."""
    await scene.running.ask(chat_body(model="alpha"))

    first, second = await scene.serving.metrics(), await scene.serving.metrics()

    assert b'llm_upstream_requests_total{cluster="alpha",outcome="2xx"} 1.0' in first
    assert first == second


async def test_drain_is_wanted_once(scene: Scene) -> None:
    """And told from then on."""
    scene.serving.drain()
    scene.serving.drain()

    view = await scene.serving.view()

    assert scene.serving.drain_wanted.is_set()
    assert (view.ready, view.draining) == (False, True)


async def test_process_is_told_as_the_only_worker(
    scene: Scene, autojump_clock: trio.testing.MockClock
) -> None:
    """With its components, of which those that run for every version are one."""
    await trio.testing.wait_all_tasks_blocked()
    view = await scene.serving.view()
    [process] = view.processes

    uptime_s = process.uptime_s
    assert process == WorkerView(1, os.getpid(), "serving", 1, 0, uptime_s)
    assert view.components == (
        ComponentView("backend timers", 0, "restart", "running", 0, ""),
        ComponentView("ejection", 0, "restart", "running", 0, ""),
    )
    assert view.missing == ()


async def test_endpoint_is_taken_out_at_once(
    scene: Scene, autojump_clock: trio.testing.MockClock
) -> None:
    """And that is told; there is nobody to wait for."""
    [cluster] = (await scene.serving.backends()).clusters
    first = cluster.endpoints[0].name

    change = await scene.serving.quarantine.take_out("alpha", first)
    [later] = (await scene.serving.backends()).clusters
    [entry] = scene.serving.quarantine.entries

    assert change == QuarantineChange("alpha", first, quarantined=True, left=1)
    assert [(each.quarantined, each.available) for each in later.endpoints] == [
        (True, False),
        (False, True),
    ]
    assert (entry.model, entry.endpoint, entry.served) == ("alpha", first, True)
