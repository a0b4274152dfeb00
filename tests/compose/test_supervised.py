"""What the management API is told of several workers, and what it lets them know."""

import attrs
import msgspec
import pytest
import trio
import trio.testing

from tests.fakes.workers import FakeServing, Plans
from tests.workers.scene import Scene, start, stop
from vsr.admin.ports import GenerationView, ServingView
from vsr.admin.quarantine import Quarantined
from vsr.admin.views import (
    BackendsView,
    BreakerView,
    ClusterView,
    ComponentView,
    EndpointView,
    WorkerView,
)
from vsr.compose.supervised import SupervisedServing
from vsr.compose.topics import BACKENDS, QUARANTINE, VIEW, decode_quarantined
from vsr.resources.cluster import Cluster, Endpoint
from vsr.workers.components import Components

ENDPOINT = EndpointView(
    "a",
    available=True,
    healthy=True,
    ejected=False,
    quarantined=False,
    ejection_reason=None,
    ejected_for_s=None,
    in_flight=2,
    weight=1,
    latency_ms=None,
    attempts={"2xx": 5},
)
BREAKER = BreakerView(False, 2, 0, 9, 9, 9)  # noqa: FBT003  # as it is made
CLUSTER = ClusterView("m", "round_robin", False, BREAKER, (ENDPOINT,))  # noqa: FBT003
TOLD = {
    VIEW: ServingView(
        ready=True,
        draining=False,
        workers=1,
        uptime_s=1.0,
        open_connections=3,
        listeners={"public": 1},
        generations=(GenerationView(1, active=True, leases=2),),
        components=(ComponentView("listeners", 0, "fatal", "running", 0, ""),),
    ),
    BACKENDS: BackendsView(1, (CLUSTER,)),
}
SERVED = Cluster("m", (Endpoint("a", "h", 1), Endpoint("b", "h", 2)), "m")


async def supervised(nursery: trio.Nursery) -> tuple[Scene, SupervisedServing]:
    """Start two workers that answer by a script."""
    answers = {topic: msgspec.msgpack.encode(view) for topic, view in TOLD.items()}
    scene = await start(nursery, Plans(answers=answers))
    scene.supervisor.snapshot = msgspec.structs.replace(
        scene.supervisor.snapshot, clusters=(SERVED,)
    )
    components = Components()
    components.degrade("metrics", "BindFailed")
    return scene, SupervisedServing(scene.supervisor, components, trio.Event())


def hang(serving: FakeServing) -> None:
    """Let a worker answer nothing in time."""
    serving.plans = attrs.evolve(serving.plans, answer_s=100.0)


async def test_view_has_sums_and_each_worker(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """With the components of all processes."""
    scene, serving = await supervised(nursery)
    await trio.sleep(10)

    view = await serving.view()

    assert (view.ready, view.draining, view.workers, view.missing) == (True, False, 2, ())
    assert (view.open_connections, view.listeners) == (6, {"public": 1})
    assert view.generations == (GenerationView(1, active=True, leases=4),)
    pids = [scene.spawn.process(worker).pid for worker in (1, 2)]
    assert view.processes == tuple(
        WorkerView(worker, pid, "serving", 1, 0, 10.5)
        for worker, pid in zip((1, 2), pids, strict=True)
    )
    assert [(each.name, each.worker, each.state) for each in view.components] == [
        ("metrics", 0, "degraded"),
        ("listeners", 1, "running"),
        ("listeners", 2, "running"),
    ]
    await stop(scene)


async def test_worker_that_does_not_answer_is_missing_in_every_view(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What the supervisor knows of it is told all the same."""
    scene, serving = await supervised(nursery)
    hang(scene.spawn.serving(1))

    view, backends = await serving.view(), await serving.backends()
    metrics = await serving.metrics()

    assert (view.missing, backends.missing) == ((1,), (1,))
    assert (view.open_connections, len(view.processes)) == (3, 2)
    [cluster] = backends.clusters
    assert [each.worker for each in cluster.endpoints[0].workers] == [2]
    assert b'llm_worker_up{worker="1"} 0.0' in metrics
    await stop(scene)


async def test_dead_worker_is_ended_and_missing(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """With all of them dead nothing serves, and all that is told."""
    scene, serving = await supervised(nursery)
    scene.spawn.is_failing = True
    for process in scene.spawn.there:
        process.kill()
    await trio.sleep(1)

    view, backends = await serving.view(), await serving.backends()

    assert (view.ready, view.missing, view.generations) == (False, (1, 2), ())
    assert [(each.phase, each.uptime_s) for each in view.processes] == [("ended", 0.0)] * 2
    assert (backends.clusters, backends.missing) == ((), (1, 2))
    scene.spawn.is_failing = False
    await stop(scene)


async def test_backends_are_those_of_all(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Summed."""
    scene, serving = await supervised(nursery)

    backends = await serving.backends()

    [cluster] = backends.clusters
    [endpoint] = cluster.endpoints
    assert (backends.version, backends.missing) == (1, ())
    assert (endpoint.in_flight, endpoint.attempts, cluster.breaker.active) == (4, {"2xx": 10}, 4)
    await stop(scene)


async def test_quarantine_reaches_all_and_those_to_come(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Whoever hangs is named; whoever is gone hears of it before it serves."""
    scene, serving = await supervised(nursery)

    change = await serving.quarantine.take_out("m", "a")
    hang(scene.spawn.serving(2))
    later = await serving.quarantine.take_out("m", "b", allow_empty=True)
    scene.spawn.process(1).kill()
    await trio.sleep(2)
    [(topic, heard)] = scene.spawn.serving(1).asked

    assert (change.missing, later.missing) == ((), (2,))
    assert (topic, scene.spawn.serving(1).asked_before) == (QUARANTINE, 1)
    assert decode_quarantined(heard) == Quarantined(2, (("m", "a"), ("m", "b")))
    await stop(scene)


@pytest.mark.parametrize("times", [1, 2])
async def test_drain_is_wanted(
    times: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """And told from then on."""
    scene, serving = await supervised(nursery)

    for _ in range(times):
        serving.drain()
    view = await serving.view()

    assert serving.drain_wanted.is_set()
    assert (view.ready, view.draining) == (False, True)
    await stop(scene)
