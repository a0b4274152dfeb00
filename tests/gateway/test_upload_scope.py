"""Which bodies are passed on unread, and what else goes with them."""

import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.h2_backend import Asked, H2Backend
from tests.fakes.router import clusters_of
from tests.fakes.spans import SpanRecorder
from tests.gateway.upload_backend import Received, UploadBackend
from tests.gateway.upload_scene import NOTHING, PAIRS, PIECE, Backend, H2Uploader, start_scene
from vsr.headers import HeaderLine
from vsr.http.h2_library import STREAM_WINDOW_BYTES

CHAT = b"/v1/chat/completions"
LONG = 9 * len(PIECE)
OPEN = "global: {router: {skip_processing: {enabled: true}}}"
SKIP = (b"x-vsr-skip-processing", b"true")
HELD_BYTES = 400_000
"""More than all buffers between a client and its backend hold of one body."""


def field(call: Received | Asked, name: bytes) -> bytes:
    """Return a field of a call's head, empty if absent."""
    return call.field(name) if isinstance(call, Asked) else call.head.fields.get(name, b"")


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
async def test_chat_that_skips_processing_is_passed_on(
    ours: int, theirs: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its body is nobody's business, so it need be no chat at all."""
    scene = await start_scene(nursery, theirs, more=OPEN)
    client = await scene.client(ours)
    await client.begin(LONG, [SKIP], CHAT)
    await client.put(PIECE * 2)
    await trio.testing.wait_all_tasks_blocked()
    assert scene.body == PIECE * 2
    await client.put(PIECE * 7)

    assert (await client.answer()).status == 200
    assert scene.body == PIECE * 9


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
async def test_chat_is_read_whole(
    ours: int, theirs: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Also beyond `replay_bytes`; too long is a 413 that no backend hears of."""
    body = chat_body("x" * 2500, model="auto")
    scene = await start_scene(nursery, theirs, listener=f"max_body_bytes: {len(body)}")
    statuses: list[int] = []
    for more in (b"", b" "):
        client = await scene.client(ours)
        await client.begin(None, target=b"/v1/chat/completions")
        await client.put(body[:-5])
        await trio.testing.wait_all_tasks_blocked()
        assert len(scene.calls) == len(statuses)
        await client.put(body[-5:] + more)
        await client.finish()
        statuses.append((await client.answer()).status)

    assert statuses == [200, 413]
    assert field(scene.calls[0], b"content-length") == b"%d" % len(scene.body)


@pytest.mark.parametrize(
    ("lines", "more"),
    [
        ([SKIP], ""),
        ([SKIP, (b"connection", b"x-vsr-skip-processing")], OPEN),
        ([(SKIP[0], b"false"), SKIP], OPEN),
    ],
    ids=["not allowed", "of this hop", "said twice"],
)
async def test_chat_that_does_not_skip_after_all_is_read(
    lines: list[HeaderLine],
    more: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """What routing sees counts: a body that it wants to read must not be kept from it."""
    scene = await start_scene(nursery, 1, more=more)
    body = chat_body("x" * 2000, model="auto")
    client = await scene.client(1)
    await client.begin(len(body), lines, CHAT)
    await client.put(body[:1500])
    await trio.testing.wait_all_tasks_blocked()
    assert scene.calls == []
    await client.put(body[1500:])

    assert (await client.answer()).status == 200
    assert scene.body == body.replace(b'"auto"', b'"alpha"')


@pytest.mark.parametrize("ours", [1, 2])
async def test_unlike_backends_get_the_same_upload(
    ours: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One alias, one backend of either version: each is sent it its own way."""
    scene = await start_scene(nursery, 1, 2)
    for _ in range(2):
        client = await scene.client(ours)
        await client.begin(None)
        for _ in range(9):
            await client.put(PIECE)
        await client.finish()
        assert (await client.answer()).status == 200

    assert [type(call) for call in scene.calls] == [Received, Asked]
    assert [bytes(call.body) for call in scene.calls] == [PIECE * 9] * 2
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("theirs", [1, 2])
async def test_traced_upload_carries_its_context(
    theirs: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """That of its attempt's span, in place of the client's."""
    recorder = SpanRecorder()
    tracing = (
        "global: {services: {observability: {tracing: {enabled: true, "
        "exporter: {type: otlp, endpoint: 'http://127.0.0.1:4318'}, "
        "sampling: {type: always_on}}}}}"
    )
    scene = await start_scene(nursery, theirs, more=tracing, open_spans=recorder.open)
    client = await scene.client(1)
    sent = f"00-{'a' * 32}-{'b' * 16}-01".encode()
    await client.begin(LONG, [(b"traceparent", sent)])
    await client.put(PIECE * 9)
    await client.answer()

    got = field(scene.calls[0], b"traceparent")
    assert got[:36] == sent[:36]
    assert got != sent
    assert scene.body == PIECE * 9


@pytest.mark.parametrize("ours", [1, 2])
async def test_slow_short_upload_is_not_cut_by_the_time_for_routing(
    ours: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Where routing may wait it has a limit, which ends with it: only the call's own follows."""
    scene = await start_scene(nursery, 1, listener="timeout: 10s")
    scene.router.generation.engine.may_wait = True
    client = await scene.client(ours)
    await client.begin(None)
    for _ in range(5):
        await client.put(b"x")
        await trio.sleep(8)
    await client.finish()

    assert (await client.answer()).status == 200
    assert scene.body == b"xxxxx"


@pytest.mark.parametrize("theirs", [1, 2])
async def test_slow_client_does_not_make_a_slow_endpoint(
    theirs: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Where latencies choose they count from the end of the body."""
    scene = await start_scene(nursery, theirs, theirs, reliability="lb_policy: p2c_ewma")
    client = await scene.client(1)
    await client.begin(LONG)
    for _ in range(9):
        await client.put(PIECE)
        await trio.sleep(5)
    assert (await client.answer()).status == 200

    assert sorted(host.latency_s or 0 for host in scene.hosts) == [0, 0]
    assert [host.latency_s is None for host in scene.hosts].count(True) == 1


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
async def test_client_is_read_no_further_than_buffers_go(
    ours: int, theirs: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A backend that does not read makes its client wait, and one that does again lets it go on."""

    def set_up(backend: Backend) -> None:
        if isinstance(backend, UploadBackend):
            backend.early = (5.0,)
        else:
            backend.gives_credit = False

    size = 3 * HELD_BYTES
    scene = await start_scene(nursery, theirs, set_up=set_up, reliability="idle_timeout: 60s")
    client = await scene.client(ours)
    await client.begin(size)
    taken = 0
    with trio.move_on_after(4):
        while taken < size:
            await _wait_for_window(client, taken)
            await client.put(PIECE)
            taken += len(PIECE)
    assert taken < HELD_BYTES

    if isinstance(scene.backend, H2Backend):
        scene.backend.gives_credit = True
        session, call = scene.backend.sessions[0], scene.backend.calls[0]
        session._credit(call.stream_id, len(call.body))
        await session.flush()
    while taken < size:
        await _wait_for_window(client, taken)
        await client.put(PIECE)
        taken += len(PIECE)
    assert (await client.answer()).status == 200
    assert scene.body == PIECE * (size // len(PIECE))


async def _wait_for_window(client: object, sent: int) -> None:
    """Keep a client of HTTP/2 to what it was allowed."""
    if isinstance(client, H2Uploader):
        windows, stream_id = client.client.windows, client._stream_id
        room = STREAM_WINDOW_BYTES - sent - len(PIECE)
        while room + windows.get(stream_id, 0) < 0:  # noqa: ASYNC110  # nothing tells of credit
            await trio.sleep(0.1)


async def test_upload_in_a_drain_is_finished(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It is a request under way like any other; what takes too long is cut off."""
    scene = await start_scene(nursery, 1)
    first, second = await scene.client(1), await scene.client(1)
    for client in (first, second):
        await client.begin(LONG)
        await client.put(PIECE)
    await trio.testing.wait_all_tasks_blocked()
    nursery.start_soon(scene.router.router.server.drain, 10)
    await trio.sleep(1)
    await first.put(PIECE * 8)
    answer = await first.answer()
    await trio.sleep(10)

    assert (answer.status, answer.closes) == (200, True)
    whole = [call.is_whole for call in scene.calls]
    assert sorted(whole) == [False, True]
    assert not clusters_of(scene.router.generation).connections_in_use
