"""Uploads that go wrong at the backend: what the client is told, who is blamed, what is retried."""

from collections.abc import Callable

import pytest
import trio
import trio.testing

from tests.engine.stepped_backend import Act
from tests.fakes.h2_backend import Act as H2Act
from tests.fakes.h2_backend import H2Backend, Head, Reset
from tests.gateway.upload_backend import UploadBackend
from tests.gateway.upload_scene import (
    NOTHING,
    PAIRS,
    PIECE,
    SILENT,
    Backend,
    Uploader,
    plays,
    start_scene,
)
from tests.upstream.raw_backend import reply
from vsr.upstream.policy.outcome import FailureKind

pairs = pytest.mark.parametrize(("ours", "theirs"), PAIRS)
LONG = 9 * len(PIECE)
EVERYTHING = "retry_count: 3, retry_on: 'reset,connect-failure,5xx', consecutive_5xx: 1"


def stopping(act: Act, answer: bytes = b"") -> Callable[[Backend], None]:
    """Return what lets a backend answer, if it does, and break off inside a body."""

    def set_up(backend: Backend) -> None:
        if isinstance(backend, UploadBackend):
            backend.stops_at = len(PIECE)
            backend.stopped = (answer, act) if answer else (act,)
        else:
            ends = {Act.RESET: H2Act.ABORT, Act.CLOSE: H2Act.CLOSE}
            last = ends[act]
            backend.is_early = True
            backend.plays = ((Head(413), answer, 0.5, last) if answer else (1.0, last),)

    return set_up


async def upload(client: Uploader, pause_s: float = 0) -> None:
    """Send it all."""
    for _ in range(9):
        await client.put(PIECE)
        await trio.sleep(pause_s)


@pairs
@pytest.mark.parametrize("act", [Act.RESET, Act.CLOSE])
async def test_backend_that_breaks_off_inside_the_body_is_a_503(
    ours: int,
    theirs: int,
    act: Act,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Nothing is tried again, since the body is gone; and the endpoint is to blame."""
    scene = await start_scene(nursery, theirs, theirs, reliability=EVERYTHING, set_up=stopping(act))
    client = await scene.client(ours)
    await client.begin(LONG)
    await client.put(PIECE * 2)
    answer = await client.answer()

    assert (answer.status, answer.closes) == (503, True)
    assert b"disconnect/reset before headers" in answer.body
    assert len(scene.calls) == 1
    assert [host.is_ejected for host in scene.hosts] == [True, False]
    assert scene.hosts[0].stats.failures[FailureKind.RESET] == 1
    assert await scene.held() == NOTHING
    assert (await scene.line())["attempts"] == 1


@pytest.mark.parametrize("ours", [1, 2])
async def test_reset_stream_inside_the_body_is_a_503(
    ours: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The same of one HTTP/2 stream; the connection goes on."""
    resetting = plays(early=(1.0,), h2=(1.0, Reset()))
    scene = await start_scene(nursery, 2, 2, reliability=EVERYTHING, set_up=resetting)
    client = await scene.client(ours)
    await client.begin(None)
    await client.put(PIECE * 2)
    answer = await client.answer()

    assert (answer.status, len(scene.calls)) == (503, 1)
    assert isinstance(scene.backend, H2Backend)
    assert scene.backend.open_sessions == 1
    assert await scene.held() == NOTHING


@pairs
async def test_answer_before_the_break_counts(
    ours: int, theirs: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A backend that says why it stops reading is heard."""
    answer_bytes = b'{"too":"long"}'
    said = reply(413, answer_bytes) if theirs == 1 else answer_bytes
    scene = await start_scene(nursery, theirs, set_up=stopping(Act.CLOSE, said))
    if isinstance(scene.backend, H2Backend):
        scene.backend.plays = ((Head(413), answer_bytes),)
    client = await scene.client(ours)
    await client.begin(LONG)
    await client.put(PIECE * 2)
    answer = await client.answer()

    assert (answer.status, answer.body) == (413, answer_bytes)
    assert await scene.held() == NOTHING


@pairs
async def test_upload_goes_elsewhere_while_none_of_it_is_gone(
    ours: int, theirs: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Of endpoints that can't be connected to; the whole body reaches the one that can."""
    scene = await start_scene(nursery, theirs, theirs, reliability=EVERYTHING)
    scene.router.network.forget(scene.backend.port)
    client = await scene.client(ours)
    await client.begin(None)
    await upload(client)
    await client.finish()
    answer = await client.answer()

    assert answer.status == 200
    assert scene.body == PIECE * 9
    assert (await scene.line())["attempts"] == 2
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("theirs", [1, 2])
async def test_failing_answer_to_an_upload_is_not_tried_again(
    theirs: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Though a short body would be."""
    busy = plays(late=(reply(503, b"{}"),), h2=(Head(503), b"{}"))
    scene = await start_scene(nursery, theirs, theirs, reliability=EVERYTHING, set_up=busy)
    client = await scene.client(1)
    await client.begin(LONG)
    await upload(client)

    assert (await client.answer()).status == 503
    assert len(scene.calls) == 1
    short = await scene.client(1)
    await short.begin(10)
    await short.put(b"0123456789")
    await short.answer()
    assert len(scene.calls) > 2


@pairs
@pytest.mark.parametrize(
    ("limit", "at"), [("total_timeout: 5s", 40 + 5), ("per_try_timeout: 3s", 40 + 3)]
)
async def test_time_begins_with_the_end_of_the_body(
    ours: int,
    theirs: int,
    limit: str,
    at: float,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A slow upload is not the backend's, but what it takes from then on is: a 504 to its blame."""
    scene = await start_scene(
        nursery, theirs, theirs, reliability=f"{limit}, consecutive_5xx: 1", set_up=SILENT
    )
    client = await scene.client(ours)
    await client.begin(LONG)
    await upload(client, 5)
    answer = await client.answer()
    ended_at = scene.hosts[0].stats

    assert answer.status == 504
    line = await scene.line()
    assert line["duration_ms"] == pytest.approx(1000 * at, abs=1)
    assert [host.is_ejected for host in scene.hosts] == [True, False]
    assert ended_at.failures[FailureKind.TIMEOUT] == 1
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("theirs", [1, 2])
async def test_time_after_an_early_answer_is_limited(
    theirs: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its body must come within the total timeout, whatever the client still wants to send."""
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nbegun"
    begun = plays(
        early=(10.0, head, Act.HANG),
        h2=(10.0, Head(200, ((b"content-length", b"10"),)), b"begun", H2Act.HANG),
    )
    scene = await start_scene(nursery, theirs, reliability="total_timeout: 5s", set_up=begun)
    client = await scene.client(1)
    await client.begin(LONG)
    await client.put(PIECE)
    answer = await client.answer()

    assert answer.status == 504
    assert trio.current_time() == 10 + 5
    assert await scene.held() == NOTHING


@pairs
async def test_backend_that_takes_no_bytes_is_a_504(
    ours: int, theirs: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """After `idle_timeout` without room for a piece, though its client goes on sending."""

    def set_up(backend: Backend) -> None:
        if isinstance(backend, UploadBackend):
            backend.stops_at = 1
        else:
            backend.gives_credit = False

    scene = await start_scene(
        nursery, theirs, theirs, set_up=set_up, reliability="idle_timeout: 7s, consecutive_5xx: 1"
    )
    client = await scene.client(ours)
    await client.begin(2**20)

    async def send() -> None:
        for _ in range(180):
            await client.put(PIECE)
        await trio.sleep_forever()

    async with trio.open_nursery() as tasks:
        tasks.start_soon(send)
        answer = await client.answer()
        tasks.cancel_scope.cancel()

    assert answer.status == 504
    line = await scene.line()
    assert line["duration_ms"] == pytest.approx(7000, abs=1)
    assert not scene.hosts[0].is_ejected, "idle times are not observed, as of answers"
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("theirs", [1, 2])
async def test_backend_may_take_its_time_while_it_takes_some(
    theirs: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What was collected first leaves piece by piece: the limit is of silence, not of all of it."""
    scene = await start_scene(nursery, theirs, reliability="idle_timeout: 7s", replay_bytes=400_000)
    backend = scene.backend
    taken = trio.Event()
    if isinstance(backend, UploadBackend):
        backend.early = (6.0,)
    else:
        backend.gives_credit = False
        nursery.start_soon(_give_slowly, backend, taken)
    client = await scene.client(1)
    await client.begin(None)
    for _ in range(405):
        await client.put(PIECE)
    await client.finish()
    answer = await client.answer()

    assert answer.status == 200
    assert scene.body == PIECE * 405


async def _give_slowly(backend: H2Backend, taken: trio.Event) -> None:
    given = 0
    while not taken.is_set():
        await trio.sleep(5)
        if not backend.calls:
            continue
        call, session = backend.calls[0], backend.sessions[0]
        size, given = len(call.body) - given, len(call.body)
        if size:
            session._credit(call.stream_id, size)
            await session.flush()
            session._tell()


async def test_response_that_breaks_http_behind_its_head_is_told_at_once(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Also where it comes before the body's end: nobody waits for more of it."""
    broken = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"
    scene = await start_scene(nursery, 1, set_up=plays(early=(broken,), h2=()))
    client = await scene.client(1)
    await client.begin(LONG)
    await client.put(PIECE)
    answer = await client.answer()

    assert (answer.status, trio.current_time()) == (502, 0)
    assert await scene.held() == NOTHING


async def test_answer_of_a_breaker_leaves_the_client_its_body(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A full model refuses before anything is asked for."""
    limits = "max_connections: 1, max_pending: 1, max_requests: 1"
    scene = await start_scene(nursery, 1, set_up=SILENT, reliability=limits)
    first, second = await scene.client(1), await scene.client(1)
    await first.begin(LONG)
    await first.put(PIECE)
    await trio.testing.wait_all_tasks_blocked()
    await second.begin(LONG, [(b"expect", b"100-continue")])
    answer = await second.answer()
    first.leave()

    assert (answer.status, second.informational()) == (503, [])
    assert await scene.held() == NOTHING
