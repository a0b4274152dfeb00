"""Bodies that nobody reads: passed on as they come, between clients and backends of any version."""

import pytest
import trio
import trio.testing

from tests.fakes.h2_backend import Act as H2Act
from tests.fakes.h2_backend import Asked, H2Backend, Head
from tests.fakes.h2_client import data_frames
from tests.gateway.upload_backend import Received, UploadBackend
from tests.gateway.upload_scene import (
    IDLE_S,
    NOTHING,
    PAIRS,
    PIECE,
    SILENT,
    H1Uploader,
    H2Uploader,
    plays,
    start_scene,
)
from tests.upstream.raw_backend import reply
from vsr.http.h2_frames import ErrorCode
from vsr.routing.outcome import Cause

pairs = pytest.mark.parametrize(("ours", "theirs"), PAIRS)
BEGUN = 3 * PIECE
LONG = 9 * len(PIECE)


def declared(call: Received | Asked) -> bytes:
    """Return what a call's head says of the length; empty where it comes in chunks or frames."""
    if isinstance(call, Asked):
        return call.field(b"content-length")
    fields = call.head.fields
    assert (b"content-length" in fields) != (fields.get(b"transfer-encoding") == b"chunked")
    return fields.get(b"content-length", b"")


@pairs
@pytest.mark.parametrize("is_declared", [True, False])
async def test_long_body_goes_on_while_it_comes(
    ours: int,
    theirs: int,
    is_declared: bool,  # noqa: FBT001  # a parameter of the table
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Every piece reaches the backend before the next, in the framing that its length allows."""
    scene = await start_scene(nursery, theirs)
    client = await scene.client(ours)
    await client.begin(LONG if is_declared else None)
    reached = []
    for _ in range(9):
        await client.put(PIECE)
        await trio.testing.wait_all_tasks_blocked()
        reached.append(len(scene.body) if scene.calls else 0)
    await client.finish()
    answer = await client.answer()

    assert (answer.status, answer.is_whole, answer.closes) == (200, True, False)
    held_back = 0 if is_declared else 1
    assert reached[held_back:] == [len(PIECE) * n for n in range(1 + held_back, 10)]
    assert scene.body == PIECE * 9
    [call] = scene.calls
    assert call.is_whole
    assert declared(call) == (b"%d" % LONG if is_declared else b"")
    assert await scene.held() == NOTHING
    line = await scene.line()
    assert (line["outcome"], line["response_code"], line["attempts"]) == ("succeeded", 200, 1)
    assert line["bytes_received"] == LONG


@pytest.mark.parametrize("ours", [1, 2])
async def test_tiny_pieces_are_joined(
    ours: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What arrives together leaves together: no client can make the Router write byte by byte."""
    scene = await start_scene(nursery, 1)
    client = await scene.client(ours)
    await client.begin(None)
    await client.put(PIECE * 2)
    await trio.testing.wait_all_tasks_blocked()
    if isinstance(client, H1Uploader):
        await client.connection.send(b"1\r\nx\r\n" * 2000)
    else:
        assert isinstance(client, H2Uploader)
        frames = data_frames(client._stream_id, b"x" * 2000, ends=False, size=1)
        await client.client.send(*frames)
    await client.finish()

    assert (await client.answer()).status == 200
    [call] = scene.calls
    assert isinstance(call, Received)
    assert call.body == PIECE * 2 + b"x" * 2000
    assert call.pieces < 50


@pairs
async def test_connection_carries_the_next_call(
    ours: int, theirs: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Behind a whole body and a whole answer both sides' connections are as good as new."""
    scene = await start_scene(nursery, theirs)
    client = await scene.client(ours)
    for length in (LONG, None, LONG):
        await client.begin(length)
        for _ in range(9):
            await client.put(PIECE)
        await client.finish()
        answer = await client.answer()
        assert (answer.status, answer.closes) == (200, False)

    backend = scene.backend
    opened = backend.accepted if isinstance(backend, UploadBackend) else len(backend.sessions)
    assert opened == 1
    assert [bytes(call.body) for call in scene.calls] == [PIECE * 9] * 3
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("length", [None, len(PIECE)])
async def test_short_body_is_collected(
    length: int | None, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Up to `replay_bytes`: no backend is called before it is whole, and its length is told."""
    scene = await start_scene(nursery, 1)
    client = await scene.client(1)
    await client.begin(length)
    await client.put(PIECE[:-1])
    await client.put(PIECE[-1:])
    await trio.testing.wait_all_tasks_blocked()
    called_before_the_end = length is None and bool(scene.calls)
    await client.finish()
    answer = await client.answer()

    assert (answer.status, called_before_the_end) == (200, False)
    assert declared(scene.calls[0]) == b"%d" % len(PIECE)
    assert scene.body == PIECE
    assert (await scene.line())["bytes_received"] == len(PIECE)


@pairs
@pytest.mark.parametrize("moment", ["before", "inside", "behind"])
async def test_leaving_client_ends_the_call_at_once(
    ours: int,
    theirs: int,
    moment: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Before its body, inside it, and behind it while the backend works."""
    scene = await start_scene(nursery, theirs, set_up=SILENT)
    client = await scene.client(ours)
    await client.begin(LONG)
    if moment != "before":
        await client.put(BEGUN)
    if moment == "behind":
        await client.put(PIECE * 6)
    await trio.sleep(1)
    assert (await scene.held())["in use"] == 1

    client.leave()
    assert await scene.held() == NOTHING
    assert trio.current_time() == 1
    if theirs == 2 or moment != "behind":
        assert scene.left_at() == 1
    line = await scene.line()
    assert (line["outcome"], line["cause"]) == ("cancelled", Cause.CLIENT_GONE)


@pairs
async def test_client_that_leaves_a_full_backend_ends_the_call_at_once(
    ours: int, theirs: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The Router waits in a write then, and does not read the client."""

    def set_up(backend: UploadBackend | H2Backend) -> None:
        if isinstance(backend, UploadBackend):
            backend.stops_at = 1
        else:
            backend.gives_credit = False

    scene = await start_scene(nursery, theirs, set_up=set_up)
    client = await scene.client(ours)
    await client.begin(2**20)
    with trio.move_on_after(1):
        for _ in range(200):
            await client.put(bytes(1000))
        await trio.sleep_forever()
    assert (await scene.held())["in use"] == 1

    client.leave()
    assert await scene.held() == NOTHING
    assert trio.current_time() == 1
    assert (await scene.line())["cause"] == Cause.CLIENT_GONE


@pairs
@pytest.mark.parametrize("sent", [PIECE[:500], BEGUN])
async def test_client_that_stops_is_a_408_and_no_fault_of_the_endpoint(
    ours: int,
    theirs: int,
    sent: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Whether it is still collected or on its way already."""
    scene = await start_scene(nursery, theirs, theirs, reliability="consecutive_5xx: 1")
    client = await scene.client(ours)
    await client.begin(None)
    await client.put(sent)
    answer = await client.answer()

    assert (answer.status, answer.closes) == (408, True)
    assert not any(call.is_whole for call in scene.calls)
    assert len(scene.calls) == (len(sent) > 1000)
    if scene.calls:
        assert scene.left_at() == IDLE_S
    assert [host.is_ejected for host in scene.hosts] == [False, False]
    assert await scene.held() == NOTHING
    line = await scene.line()
    assert (line["outcome"], line["response_code"]) == ("failed", 408)


@pairs
async def test_malformed_body_is_a_400_and_no_fault_of_the_endpoint(
    ours: int, theirs: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The backend sees the request break off."""
    scene = await start_scene(nursery, theirs, theirs, reliability="consecutive_5xx: 1")
    client = await scene.client(ours)
    await client.begin(None)
    await client.put(BEGUN)
    await trio.testing.wait_all_tasks_blocked()
    await client.spoil()
    answer = await client.answer()

    assert (answer.status, answer.closes) == (400, True)
    assert scene.body == BEGUN
    assert (scene.calls[0].is_whole, scene.left_at()) == (False, 0)
    assert [host.is_ejected for host in scene.hosts] == [False, False]
    assert await scene.held() == NOTHING


@pairs
async def test_body_that_grows_too_long_is_a_413(
    ours: int, theirs: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The limit holds to the byte, and the backend never sees a whole request."""
    limit = f"max_body_bytes: {len(BEGUN)}"
    scene = await start_scene(
        nursery, theirs, theirs, listener=limit, reliability="consecutive_5xx: 1"
    )
    client = await scene.client(ours)
    await client.begin(None)
    await client.put(BEGUN)
    await trio.testing.wait_all_tasks_blocked()
    assert scene.body == BEGUN
    await client.put(b"x")
    answer = await client.answer()

    assert (answer.status, answer.closes) == (413, True)
    assert scene.body == BEGUN
    assert (scene.calls[0].is_whole, scene.left_at()) == (False, 0)
    assert [host.is_ejected for host in scene.hosts] == [False, False]
    assert await scene.held() == NOTHING


@pairs
@pytest.mark.parametrize("target", [b"/v1/files", b"/v1/chat/completions"])
async def test_body_declared_too_long_is_a_413_before_anything_is_sent(
    ours: int,
    theirs: int,
    target: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Nor is it asked for."""
    scene = await start_scene(nursery, theirs, listener=f"max_body_bytes: {len(BEGUN)}")
    client = await scene.client(ours)
    await client.begin(len(BEGUN) + 1, [(b"expect", b"100-continue")], target)
    answer = await client.answer()

    assert (answer.status, scene.calls, client.informational()) == (413, [], [])
    assert await scene.held() == NOTHING


@pairs
@pytest.mark.parametrize("status", [200, 413])
async def test_early_answer_ends_the_upload(
    ours: int,
    theirs: int,
    status: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It is passed on, no more is read, and neither side's connection is used again."""
    body = b'{"early":1}'
    early = plays(early=(1.0, reply(status, body)), h2=(1.0, Head(status), body, H2Act.NO_END))
    if theirs == 2:
        early = plays(early=(1.0,), h2=(1.0, Head(status), body))
    scene = await start_scene(nursery, theirs, set_up=early)
    client = await scene.client(ours)
    await client.begin(LONG)
    await client.put(PIECE)
    answer = await client.answer()
    await scene.held()

    assert (answer.status, answer.body, answer.is_whole) == (status, body, True)
    assert answer.closes
    if isinstance(client, H2Uploader):
        assert client.reset_code == ErrorCode.NO_ERROR
    [call] = scene.calls
    assert not call.is_whole
    assert scene.left_at() == 1
    assert await scene.held() == NOTHING
    assert (await scene.line())["response_code"] == status


@pairs
async def test_continue_is_sent_when_the_body_is_wanted(
    ours: int, theirs: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Once, behind the head to the backend."""
    scene = await start_scene(nursery, theirs)
    client = await scene.client(ours)
    await client.begin(LONG, [(b"expect", b"100-continue")])
    await trio.testing.wait_all_tasks_blocked()
    assert len(scene.calls) == 1
    for _ in range(9):
        await client.put(PIECE)
    answer = await client.answer()

    assert (answer.status, client.informational()) == (200, [100])
    [call] = scene.calls
    expect = call.field(b"expect") if isinstance(call, Asked) else call.head.fields.get(b"expect")
    assert not expect
    assert scene.body == PIECE * 9


@pytest.mark.parametrize("ours", [1, 2])
async def test_continue_is_not_sent_where_nobody_wants_the_body(
    ours: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The backend can't be reached, so the client keeps its body."""
    scene = await start_scene(nursery, 1)
    scene.router.network.forget(scene.backend.port)
    client = await scene.client(ours)
    await client.begin(LONG, [(b"expect", b"100-continue")])
    answer = await client.answer()

    assert (answer.status, client.informational()) == (503, [])
    assert await scene.held() == NOTHING


@pairs
@pytest.mark.parametrize("is_streamed", [True, False])
async def test_informational_heads_do_not_stop_the_sending(
    ours: int,
    theirs: int,
    is_streamed: bool,  # noqa: FBT001  # a parameter of the table
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Neither of a body that comes nor of a large one that is there."""
    hints = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
    set_up = plays(
        early=(hints,),
        h2=(Head(100, ()), Head(103, ((b"link", b"</x>"),)), 5.0, Head(), b"{}"),
    )
    size = 150_000
    replay_bytes = 1000 if is_streamed else size
    scene = await start_scene(nursery, theirs, set_up=set_up, replay_bytes=replay_bytes)
    client = await scene.client(ours)
    await client.begin(size)
    for _ in range(size // 1000):
        await client.put(PIECE)
        await trio.testing.wait_all_tasks_blocked()
    answer = await client.answer()

    assert (answer.status, answer.is_whole) == (200, True)
    assert scene.body == PIECE * (size // 1000)
    assert await scene.held() == NOTHING
