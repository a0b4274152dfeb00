"""HTTP/2 clients that leave while their call waits or tries again: each stream for itself."""

from collections.abc import Callable

import pytest
import trio
import trio.testing

from tests.fakes.h2_client import Answer, H2Client, reset
from tests.upstream.scenes import (
    AT_ONCE_S,
    BODY,
    NOTHING,
    OK,
    STREAM,
    Play,
    Scene,
    start_scene,
    streaming,
)
from tests.upstream.test_departures_in_retries import (
    LEAVES_AT_S,
    MOMENTS,
    ONE_SLOT,
    SETTINGS,
    TRY_LATER,
)

Leave = Callable[[H2Client], None]
MOMENTS_SENT_WHOLE = [name for name, each in MOMENTS.items() if len(each.body) < 16_384]
"""A request that is larger than a window is sent in turns, which is not what these are about."""


async def connect(scene: Scene, nursery: trio.Nursery) -> H2Client:
    """Open a connection and let it get ready."""
    client = await H2Client(await scene.router.connect()).start(nursery)
    await trio.testing.wait_all_tasks_blocked()
    return client


def reset_stream(client: H2Client) -> None:
    """Let the client give its first stream up, and keep the connection."""
    client.connection.try_send(reset(1).serialize())


def close(client: H2Client) -> None:
    """Let the client close the connection."""
    client.connection.close()


def abort(client: H2Client) -> None:
    """Let the client reset the connection."""
    client.connection.abort()


LEAVES = [reset_stream, close, abort]


@pytest.mark.parametrize("leave", LEAVES)
@pytest.mark.parametrize("name", MOMENTS_SENT_WHOLE)
async def test_stream_that_is_left_ends_its_attempts_at_once(
    name: str, leave: Leave, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report C1, over HTTP/2: in a back-off, while connecting, wherever it was."""
    moment = MOMENTS[name]
    scene = await start_scene(nursery, SETTINGS + moment.more, *moment.plays)
    moment.arrange(scene)
    client = await connect(scene, nursery)
    await client.request(moment.body)
    await trio.sleep_until(LEAVES_AT_S)
    assert await scene.held() == {**NOTHING, "leases": 1, **moment.held}
    calls = len(scene.calls)

    leave(client)
    held = await scene.held()
    assert trio.current_time() <= LEAVES_AT_S + AT_ONCE_S
    await trio.sleep(60)

    assert held == NOTHING
    left_at = [at for backend in scene.backends for at in backend.gone_at]
    assert all(at <= LEAVES_AT_S + AT_ONCE_S for at in left_at)
    assert len(scene.calls) == calls
    [line] = await scene.router.log()
    assert (line["outcome"], line["attempts"]) == ("cancelled", moment.attempts)
    assert (line["response_flags"], line["protocol"]) == ("DC", "HTTP/2")
    last = scene.journal()[-1]
    assert (last.error, last.stage) == ("" if last.status else "cancelled", "")
    assert client.goaways == []


@pytest.mark.parametrize("leave", LEAVES)
@pytest.mark.parametrize("attempts", [0, 1])
async def test_stream_that_is_left_gives_its_place_in_line_up(
    attempts: int, leave: Leave, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Those of the same connection that wait behind it move up, or go with it."""
    plays: list[Play] = [*[TRY_LATER] * attempts, streaming(20.0), OK]
    scene = await start_scene(nursery, SETTINGS + ONE_SLOT, plays)
    client = await connect(scene, nursery)
    if attempts:
        await client.request(BODY)
        await trio.sleep(1)
    holder = await scene.begin(STREAM)
    await trio.sleep(1)
    if not attempts:
        await client.request(BODY)
    await trio.sleep(10)
    behind = await client.request(BODY)
    held = await scene.held()
    assert held == {
        **NOTHING,
        **dict.fromkeys(("active", "hosts", "connections"), 1),
        "waiting": 2,
        "leases": 3,
        "slots": attempts,
    }

    leave(client)

    stays = int(leave is reset_stream)
    left = {"waiting": stays, "leases": 1 + stays, "slots": 0}
    assert await scene.held() == {**held, **left}
    await trio.sleep(20)
    assert await scene.held() == NOTHING
    assert len(scene.calls) == 1 + attempts + stays
    assert (behind.is_whole, behind.status) == ((True, 200) if stays else (False, 0))
    assert not holder.is_gone


async def test_streams_of_one_connection_do_not_share_their_back_offs(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One in a back-off, one connecting, one in line: the first is left, the others are served."""
    plays: list[Play] = [TRY_LATER, (0.5, *OK), OK]
    scene = await start_scene(nursery, SETTINGS + ONE_SLOT, plays)
    client = await connect(scene, nursery)
    first = await client.request(BODY)
    await trio.sleep(1)
    answers: list[Answer] = [await client.request(BODY) for _ in range(2)]

    reset_stream(client)
    await trio.sleep(3)

    assert [(each.is_whole, each.status) for each in answers] == [(True, 200)] * 2
    assert not first.is_whole
    assert await scene.held() == NOTHING
    assert len(scene.calls) == 3
    assert sorted(line["outcome"] for line in await scene.router.log()) == [
        "cancelled",
        "succeeded",
        "succeeded",
    ]
