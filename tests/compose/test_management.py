"""The management API of one process: its address, and what it is told of the Router."""

import attrs
import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.router import RunningRouter, document_of, start_router
from tests.upstream.scenes import OK, PlayingBackend, failing, model_over, start_backends
from vsr.compose.management import Binding, LocalServing
from vsr.config.attempt import Code
from vsr.network.memory import MemoryNetwork
from vsr.resources.management import Management
from vsr.resources.snapshot import Snapshot

SLOW = (5.0, *OK)
REMOTE = Management("0.0.0.0", 9000, is_remote=True, asks_token=True)


@pytest.mark.parametrize(
    ("flag", "binding"),
    [
        (None, Binding("0.0.0.0", 9000, is_flag=False)),
        (("127.0.0.1", 8081), Binding("127.0.0.1", 8081, is_flag=True)),
        (("", 0), None),
        (("127.0.0.1", 0), None),
    ],
)
def test_flag_goes_before_the_document(
    flag: tuple[str, int] | None, binding: Binding | None
) -> None:
    """And switches it off."""
    assert Binding.of(REMOTE, flag) == binding


@pytest.mark.parametrize(
    ("binding", "management", "codes"),
    [
        (Binding("127.0.0.1", 8080, is_flag=False), Management(), []),
        (Binding("127.0.0.1", 8080, is_flag=False), Management(port=1), [Code.RESTART_REQUIRED]),
        (Binding("127.0.0.1", 8080, is_flag=True), Management(port=1), []),
        (Binding("0.0.0.0", 9000, is_flag=False), REMOTE, []),
        (Binding("0.0.0.0", 1, is_flag=True), Management(), [Code.INVALID_RESOURCE]),
        (Binding("0.0.0.0", 1, is_flag=True), Management(is_remote=True), [Code.INVALID_RESOURCE]),
        (Binding("0.0.0.0", 1, is_flag=True), Management(asks_token=True), [Code.INVALID_RESOURCE]),
        (Binding("::1", 1, is_flag=True), Management(), []),
    ],
)
def test_address_that_others_reach_needs_tokens_and_leave(
    binding: Binding, management: Management, codes: list[Code]
) -> None:
    """Whoever says where it is; a change of the document that takes them away is refused."""
    reasons = binding.check(Snapshot("x", management=management))

    assert [reason.code for reason in reasons] == codes


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
    [cluster] = await scene.serving.backends()
    # Which of the two comes first is drawn.
    at = [each.in_flight for each in cluster.endpoints].index(1)
    scene.backends[1 - at].plays = [failing(500)]
    await scene.running.ask(chat_body(model="alpha"))
    await trio.sleep(20)
    [later] = await scene.serving.backends()

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
