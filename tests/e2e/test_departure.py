"""A client that leaves, at any moment: everything its request holds is free at once."""

import gc
import socket
from collections.abc import AsyncIterator, Callable

import pytest
import trio

from tests.e2e.standalone import Standalone, open_descriptors, start_standalone, until
from tests.e2e.wire import RawClient, chat, connect, post
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.demo.server import Call, CallEnd

PATIENCE_S = 10
FREED_WITHIN_S = 0.2
UNREAD = post(chat("x" * 100_000))
"""More than the Router reads ahead of a client whose request it is busy with, yet so little that
the kernel takes the rest: an end behind what no buffer takes never arrives."""

Leave = Callable[[RawClient], None]
LEAVES: dict[str, Leave] = {"closes": RawClient.close, "resets": RawClient.reset}
leaves_either_way = pytest.mark.parametrize("leave", LEAVES.values(), ids=LEAVES)


def _name(value: object) -> str | None:
    """Return the test id of a script or of whether it is a stream."""
    if isinstance(value, Script):
        return str(value.fault or "well")
    return "stream" if value else "buffered"


@pytest.fixture
def script() -> Script:
    """Return how the backends behave; tests override it by parametrizing."""
    return Script()


@pytest.fixture
async def served(nursery: trio.Nursery, script: Script) -> Standalone:
    """Serve."""
    return await start_standalone(nursery, script)


@pytest.fixture
async def client(served: Standalone) -> AsyncIterator[RawClient]:
    """Return a connected client."""
    with trio.fail_after(PATIENCE_S), await connect(served.port) as client:
        yield client


@leaves_either_way
@pytest.mark.parametrize(
    "sent",
    [b"", b"POST /v1/chat/comp", post(chat())[:100], post(chat())[:-1], UNREAD[:90_000]],
    ids=["nothing", "request line", "head", "body", "large body"],
)
async def test_client_that_leaves_within_its_request_frees_everything(
    served: Standalone, client: RawClient, sent: bytes, leave: Leave
) -> None:
    """No backend hears of a request that never arrived."""
    await client.send(sent)
    await until(lambda: served.router.server.open_connections == 1)

    leave(client)
    await until(lambda: not any(served.held().values()), FREED_WITHIN_S)

    assert served.small.seen == []


@leaves_either_way
@pytest.mark.parametrize(
    ("script", "is_stream"),
    [
        (Script(latency_s=60), False),
        (Script(fault=Fault.SILENCE), True),
        (Script(fault=Fault.SLOW_FIRST_BYTE), True),
        (Script(fault=Fault.SLOW_FIRST_BYTE), False),
        (Script(fault=Fault.STALL_MIDSTREAM), True),
        (Script(fault=Fault.STALL_MIDSTREAM), False),
        (Script(fault=Fault.TRICKLE, chunk_interval_s=0.01), True),
        (Script(fault=Fault.TRICKLE, chunk_interval_s=0.01), False),
        (Script(fault=Fault.UNTIL_CLOSE, chunks=10_000, chunk_interval_s=0.001), True),
        (Script(chunks=10_000, chunk_interval_s=0.001), True),
    ],
    ids=_name,
)
async def test_client_that_leaves_ends_the_call(
    served: Standalone, client: RawClient, leave: Leave, *, is_stream: bool
) -> None:
    """The backend's connection is closed within 200 ms of the client's."""
    call = await _call_under_way(served, client, post(chat(stream=is_stream)))

    await _assert_freed_by(lambda: leave(client), served, call)


@leaves_either_way
@pytest.mark.parametrize("script", [Script(latency_s=60)])
async def test_client_that_leaves_behind_unread_bytes_ends_the_call(
    served: Standalone, client: RawClient, leave: Leave
) -> None:
    """Read-ahead is bounded, but the end behind what is not read is seen all the same."""
    call = await _call_under_way(served, client, post(chat()) + UNREAD)

    await _assert_freed_by(lambda: leave(client), served, call)


@pytest.mark.parametrize("script", [Script(latency_s=60)])
async def test_client_that_closes_its_sending_half_counts_as_gone(
    served: Standalone, client: RawClient
) -> None:
    """A proxy in front that loses its own client does just that."""
    call = await _call_under_way(served, client, post(chat()))

    await _assert_freed_by(lambda: client.stream.socket.shutdown(socket.SHUT_WR), served, call)


@leaves_either_way
@pytest.mark.parametrize("script", [Script(chunks=100_000, piece_bytes=1000)])
async def test_client_that_leaves_without_reading_ends_the_call(
    served: Standalone, client: RawClient, leave: Leave
) -> None:
    """The Router is stuck in a write when the client goes."""
    call = await _call_under_way(served, client, post(chat(stream=True)))
    await _until_still(lambda: call.bytes_sent)

    await _assert_freed_by(lambda: leave(client), served, call)


@leaves_either_way
async def test_client_that_leaves_during_the_upload_ends_the_call(
    nursery: trio.Nursery, leave: Leave
) -> None:
    """The Router is stuck in a write to a backend that does not read."""
    with trio.fail_after(PATIENCE_S), trio.socket.socket() as deaf:
        await deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        served = await start_standalone(nursery, small_port=deaf.getsockname()[1])
        with await connect(served.port) as client:
            nursery.start_soon(client.send, post(chat("x" * 8_000_000)))
            backend, _ = await deaf.accept()
            with backend:
                await backend.recv(1)

                leave(client)
                await until(lambda: served.clusters.connections_in_use == 0, FREED_WITHIN_S)

                assert not any(served.held().values())


@leaves_either_way
async def test_client_that_leaves_while_the_backend_is_dialled_frees_the_socket(
    nursery: trio.Nursery, leave: Leave
) -> None:
    """A connect that hangs is given up with its request."""
    with trio.fail_after(PATIENCE_S), trio.socket.socket() as full:
        await full.bind(("127.0.0.1", 0))
        full.listen(0)
        with trio.socket.socket() as first:
            # Takes the only place in the accept queue, so that the next one gets no answer.
            await first.connect(full.getsockname())
            served = await start_standalone(nursery, small_port=full.getsockname()[1])
            gc.collect()  # descriptors that earlier tests left behind go now, not in between
            before = open_descriptors()
            with await connect(served.port) as client:
                await client.send(post(chat()))
                # Both ends of the client's connection, and the one that is being dialled.
                await until(lambda: open_descriptors() == before + 3)

                leave(client)
                await until(lambda: open_descriptors() == before, FREED_WITHIN_S)

            assert not any(served.held().values())


@pytest.mark.parametrize("script", [Script(latency_s=60)])
async def test_departure_is_logged_as_one(served: Standalone, client: RawClient) -> None:
    """The log names the cause, and no status, since none was sent."""
    await _call_under_way(served, client, post(chat()))

    client.close()
    await served.settled()

    line = (await served.log_lines())[0]
    wanted = ("outcome", "cause", "response_flags", "response_code")
    assert [line[name] for name in wanted] == ["cancelled", "client_gone", "DC", 0]


async def _call_under_way(served: Standalone, client: RawClient, request: bytes) -> Call:
    """Send `request`; return the backend's call once it has been read."""
    await client.send(request)
    await until(lambda: any(seen.is_complete for seen in served.small.seen))
    if served.script.latency_s == 0:
        await until(lambda: served.small.calls[0].bytes_sent > 0 or _is_silent(served))
    return served.small.calls[0]


def _is_silent(served: Standalone) -> bool:
    return served.script.fault is Fault.SILENCE


async def _assert_freed_by(leave: Callable[[], object], served: Standalone, call: Call) -> None:
    """Leave, then check when the call ended and that nothing else is held."""
    assert call.end is None

    leave()
    await until(lambda: call.end is not None, FREED_WITHIN_S)
    await until(lambda: not any(served.held().values()), FREED_WITHIN_S)

    assert call.end is CallEnd.PEER_GONE


async def _until_still(count: Callable[[], int]) -> None:
    """Wait until `count` has not grown for a while."""
    last = -1
    while count() != last:
        last = count()
        await trio.sleep(0.05)
