"""Connections go to addresses that the configuration allows, and to no others."""

from collections.abc import Sequence
from itertools import chain, repeat

import pytest
import trio
import trio.testing

from tests.fakes.router import document_of, start_router
from tests.upstream.raw_backend import RawBackend, reply
from tests.upstream.scenes import BODY, NOTHING, OK, model_over, start_scene
from tests.upstream.test_metrics import of, read
from vsr.network.memory import MemoryNetwork
from vsr.routing.outcome import NOTHING_USED, TransportFact

ALLOWS = "global: {{router: {{egress: {{allow: [{}]}}}}}}"
REFUSED = (
    b"upstream connect error or disconnect/reset before headers. reset reason: remote connection "
    b"failure, transport failure reason: egress refused"
)
ONLY_TEN = ALLOWS.format("10.0.0.0/8")


def resolving(*found: Sequence[str]) -> MemoryNetwork:
    """Return a network on which `b0.test` is found at one answer after the other."""
    network = MemoryNetwork()
    answers = chain(found, repeat(found[-1]))
    network.addresses["b0.test"] = lambda: next(answers)
    return network


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (["10.0.0.1"], 200),
        (["11.0.0.1"], 503),
        (["11.0.0.1", "10.0.0.1"], 200),
        (["169.254.169.254"], 503),
        (["::ffff:169.254.169.254"], 503),
        (["::ffff:10.0.0.1"], 200),
        (["::1"], 503),
        ([], 503),
    ],
)
async def test_every_address_of_a_name_is_held_to_the_list(
    found: list[str],
    status: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Those that are not on it are left out; without any left the call fails, and did nothing."""
    scene = await start_scene(nursery, "", [OK], network=resolving(found), more=ONLY_TEN)

    got = await scene.ask()

    assert got.status == status
    [attempt] = scene.journal()
    if status != 200:
        assert (attempt.fact, attempt.error) == (TransportFact.NOT_CONNECTED, "egress_refused")
        assert attempt.usage == NOTHING_USED
        assert scene.backends[0].accepted == 0
    assert await scene.held() == NOTHING


async def test_client_reads_no_address_and_no_list(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A local reply in Envoy's form, whose flag says that no connection could be made."""
    scene = await start_scene(nursery, "", [OK], network=resolving(["11.0.0.1"]), more=ONLY_TEN)

    got = await scene.ask()

    assert (got.status, got.body) == (503, REFUSED)
    [line] = await scene.router.log()
    assert (line["response_flags"], line["attempts"]) == ("UF", 1)


async def test_refusals_are_counted_by_endpoint(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Calls and health checks alike; they count as failed connections too."""
    scene = await start_scene(
        nursery,
        "health_check_path: /health, health_check_interval: 10s",
        [OK],
        [OK],
        network=resolving(["11.0.0.1"]),
        more=ALLOWS.format("10.0.0.0/8, b1.test"),
    )
    await scene.ask()
    await trio.sleep(65)

    counted = read(scene.router)

    checks = counted[of("health_checks_total", endpoint="backend-1", outcome="network")]
    assert checks == 2
    assert counted[of("egress_refused_total", endpoint="backend-1")] == checks
    assert counted[of("egress_refused_total", endpoint="backend-2")] == 0
    assert scene.order == [1]
    assert scene.backends[0].accepted == 0
    assert [host.is_healthy for host in scene.state.hosts] == [False, True]


async def test_refused_call_counts_once(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """As an attempt that could not connect, and as a refusal."""
    scene = await start_scene(nursery, "", [OK], network=resolving(["11.0.0.1"]), more=ONLY_TEN)

    await scene.ask()

    counted = read(scene.router)
    assert counted[of("egress_refused_total", endpoint="backend-1")] == 1
    attempts = of("attempts_total", endpoint="backend-1", outcome="connect_failure")
    assert counted[attempts] == 1


async def test_refused_endpoint_is_passed_over_at_once(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It proves that nothing was done: a retry goes elsewhere without a wait."""
    scene = await start_scene(
        nursery,
        "retry_count: 1, retry_evidence: known_zero",
        [OK],
        [OK],
        network=resolving(["11.0.0.1"]),
        more=ALLOWS.format("10.0.0.0/8, b1.test"),
    )

    assert (await scene.ask()).status == 200

    assert [each.error for each in scene.journal()] == ["egress_refused", ""]
    assert (scene.order, scene.times) == ([1], [0])
    assert await scene.held() == NOTHING


async def test_name_that_moves_is_looked_at_with_every_connection(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """First it is where it should be, then on the metadata service of a cloud."""
    network = resolving(["10.0.0.1"], ["169.254.169.254"])
    backend = await RawBackend(network, reply(200, b"{}"), closes=True).start(nursery)
    model = f"{{name: alpha, backend_refs: [{{endpoint: 'b0.test:{backend.port}'}}]}}"
    router = await start_router(nursery, network, f"{document_of(model)}\n{ONLY_TEN}")

    statuses = [(await router.ask(BODY)).status for _ in range(3)]

    assert statuses == [200, 503, 503]
    assert len(backend.accepted) == 1


async def test_narrowed_list_holds_for_connections_that_are_open(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What the one before allowed is closed, and not used again."""
    scene = await start_scene(nursery, "", [OK], network=resolving(["10.0.0.1"]), more=ONLY_TEN)
    assert (await scene.ask()).status == 200
    assert scene.backends[0].gone_at == []

    document = document_of(model_over(scene.backends))
    await scene.reload(f"{document}\n{ALLOWS.format('10.9.0.0/16')}")

    assert (await scene.ask()).status == 503
    assert len(scene.backends[0].gone_at) == scene.backends[0].accepted == 1


async def test_same_list_keeps_connections(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A reload that leaves the policy as it is."""
    scene = await start_scene(nursery, "", [OK], network=resolving(["10.0.0.1"]), more=ONLY_TEN)
    await scene.ask()

    document = document_of(model_over(scene.backends))
    await scene.reload(f"{document}\n{ONLY_TEN}\nevaluation: {{}}")

    assert (await scene.ask()).status == 200
    assert scene.backends[0].accepted == 1


async def test_without_a_policy_nobody_is_asked(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Every address is as good as another."""
    scene = await start_scene(nursery, "", [OK], network=resolving(["169.254.169.254"]))

    assert (await scene.ask()).status == 200


@pytest.mark.parametrize(
    ("policy", "status"),
    [
        ("{}", 503),
        ("{allow: ['*.test']}", 503),
        ("{allow: [169.254.0.0/16]}", 503),
        ("{deny: []}", 200),
        ("{deny: [10.0.0.0/8]}", 200),
        ("{allow: [169.254.0.0/16], deny: []}", 200),
    ],
)
async def test_policy_denies_link_local_unless_it_says_what_it_denies(
    policy: str, status: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Also where the name is allowed: whoever answers for it could point it there."""
    more = f"global: {{router: {{egress: {policy}}}}}"
    network = resolving(["169.254.169.254"])
    scene = await start_scene(nursery, "", [OK], network=network, more=more)

    assert (await scene.ask()).status == status
