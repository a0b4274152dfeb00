"""Clients that leave while they are told of a graph, or that do not read what they are told."""

import pytest
import trio
import trio.testing
from hyperframe.frame import SettingsFrame

from tests.fakes.h2_client import H2Client, credit_frames
from tests.fakes.router import read_large
from tests.gateway.commented import (
    AFTER_2S,
    KEEP_ALIVE,
    REQUEST,
    STREAM,
    TOLD,
    VERSIONS,
    routing,
    start,
)
from vsr.demo.script import Script
from vsr.gateway.commented_exchange import MAX_HELD_BYTES

ROUNDS = 1500
LINES_OF_A_ROUND = 6
MANY_STEPS = (
    f"{{id: rounds, type: loop, times: {ROUNDS}, do: "
    "[{id: said, type: transform, transformer: prompt, template: hi}, "
    "{id: call, type: call, model: alpha}]}, "
    "{id: last, type: call, model: beta}, {type: respond, from: $last}"
)


@VERSIONS
@pytest.mark.parametrize("half_seconds", range(17))
async def test_client_that_leaves_at_any_step_leaves_nothing(
    half_seconds: int, version: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Within 50 ms no lease and no connection to a backend is held."""
    text = routing("{progress: true, keep_alive_after: 1s}")
    scene = await start(nursery, text, Script(latency_s=4), Script(latency_s=5))
    connection = await scene.router.connect()
    if version == "h2":
        client = await H2Client(connection).start(nursery)
        await client.request(STREAM)
    else:
        await connection.send(REQUEST)
    await trio.sleep(0.1 + half_seconds / 2)

    connection.close()
    await trio.sleep(0.05)
    leases = scene.router.generation.leases

    assert leases == 0
    assert await scene.router.held() == (0, 0)
    [line] = await scene.router.log()
    told = [line[key] for key in ("outcome", "cause", "response_flags")]
    assert told == ["cancelled", "client_gone", "DC"]


@pytest.mark.parametrize("fails", [False, True])
async def test_client_that_does_not_read_holds_up_nothing(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, *, fails: bool
) -> None:
    """The graph goes on, few comments are held, and what is read at last is sound."""
    scene = await start(
        nursery, routing(TOLD, MANY_STEPS), beta=Script(fault=500 if fails else None)
    )
    connection = await scene.router.connect()
    await connection.send(REQUEST)
    await trio.sleep(5)

    called, held = len(scene.beta.calls), connection.held_bytes
    is_whole, body = await read_large(connection)

    assert called == 1
    assert is_whole
    assert body.count(b": vsr step=") < ROUNDS * LINES_OF_A_ROUND
    assert len(body) < held + 2 * MAX_HELD_BYTES
    blocks = body.removesuffix(b"\n\n").split(b"\n\n")
    assert all(block.startswith((b": vsr step=", b"data: {")) for block in blocks[:-1])
    assert blocks[-1].startswith(b'data: {"error"') if fails else blocks[-1] == b"data: [DONE]"
    assert await scene.router.held() == (0, 0)


async def test_client_that_does_not_read_is_cut_off_at_the_deadline(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What is out in part can't be gone on with: nobody knows how much of it is."""
    text = routing(TOLD, MANY_STEPS, limits="{timeout: 90s}")
    scene = await start(nursery, text, beta=Script(latency_s=600))
    connection = await scene.router.connect()
    await connection.send(REQUEST)
    await trio.sleep(120)

    is_whole, body = await read_large(connection)

    assert not is_whole
    assert b'"error"' not in body
    [line] = await scene.router.log()
    assert (line["response_code"], line["outcome"]) == (504, "failed")
    assert await scene.router.held() == (0, 0)


async def test_small_window_of_an_http2_client_cuts_no_comment(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A comment that waits for credit when the graph fails goes out before the error event."""
    text = routing(AFTER_2S, limits="{timeout: 5s}")
    scene = await start(nursery, text, Script(latency_s=60))
    client = H2Client(
        await scene.router.connect(),
        settings={SettingsFrame.INITIAL_WINDOW_SIZE: 10},
        gives_credit=False,
    )
    await client.start(nursery)
    answer = await client.request(STREAM)
    await trio.sleep(6)
    before = bytes(answer.body)

    await client.send(*credit_frames(1, 1000))
    await answer.done.wait()

    assert before == KEEP_ALIVE[:10]
    assert answer.is_whole
    assert answer.body.startswith(KEEP_ALIVE + b'data: {"error":')
    assert answer.body.endswith(b"}\n\n")
