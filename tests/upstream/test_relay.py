"""Body bytes that go from the network's task straight to a sink."""

import pytest
import trio

from tests.demo.raw_client import chat_body
from tests.fakes.backend import start_backend
from tests.fakes.router import clusters_of, document_of, model_of
from vsr.compose.generation import Parts, build_generation
from vsr.config.report import Report
from vsr.config.source import check_bytes
from vsr.deadline import Deadline
from vsr.demo.script import Script
from vsr.headers import Headers
from vsr.network.epoll import EpollNetwork
from vsr.network.memory import MemoryNetwork
from vsr.routing.plan import Call
from vsr.routing.ports import Journal, UpstreamResponse
from vsr.upstream.clusters import Clusters

NETWORKS = [MemoryNetwork, EpollNetwork]


async def _upstream(
    nursery: trio.Nursery, network_type: type[MemoryNetwork | EpollNetwork]
) -> Clusters:
    network = network_type()
    await nursery.start(network.run)
    backend = await start_backend(nursery, network, Script(chunks=4, chunk_interval_s=0.01))
    document = document_of(model_of(backend.port))
    snapshot = check_bytes(document.encode(), {}, Report("document")).snapshot
    return clusters_of(build_generation(Parts.default(network), snapshot, 1))


async def _ask(upstream: Clusters) -> UpstreamResponse:
    body = chat_body(stream=True)
    call = Call(b"POST", b"/v1/chat/completions", Headers(), body, b"")
    return await upstream.cluster_for(b"").send(
        call, now=trio.current_time(), deadline=Deadline(), idle_s=5.0, journal=Journal()
    )


@pytest.mark.parametrize("network_type", NETWORKS)
async def test_relay_hands_on_every_byte(
    network_type: type[MemoryNetwork | EpollNetwork], nursery: trio.Nursery
) -> None:
    """Also when the sink asks for a pause at every piece."""
    upstream = await _upstream(nursery, network_type)
    eager = await _ask(upstream)
    shy = await _ask(upstream)
    got: dict[bool, bytes] = {True: b"", False: b""}

    def take(data: bytes, *, more: bool) -> bool:
        got[more] += data
        return more

    while not eager.is_complete:
        await eager.relay(lambda data: take(data, more=True))
    while not shy.is_complete:
        await shy.relay(lambda data: take(data, more=False))

    eager.close()
    shy.close()
    upstream.close()
    assert got[True] == got[False]
    assert got[True].endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("network_type", NETWORKS)
async def test_failing_sink_fails_its_own_request_alone(
    network_type: type[MemoryNetwork | EpollNetwork], nursery: trio.Nursery
) -> None:
    """It runs in the task that serves every socket, and must not take that down."""
    upstream = await _upstream(nursery, network_type)
    broken = await _ask(upstream)
    broken.take()  # so that the next piece comes from the network

    def fail(data: bytes) -> bool:
        raise ZeroDivisionError(len(data))

    with pytest.raises(ZeroDivisionError):
        await broken.relay(fail)
    broken.close()
    sound = await _ask(upstream)
    pieces: list[bytes] = []
    while not sound.is_complete:
        pieces.append(await sound.receive())

    sound.close()
    upstream.close()
    assert b"".join(pieces).endswith(b"data: [DONE]\n\n")
