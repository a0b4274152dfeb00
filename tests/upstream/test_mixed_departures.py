"""A client may leave at any moment of a call that goes from kind to kind of backends."""

from itertools import count
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.h2_backend import REFUSED, STREAM_HEAD
from tests.faults.test_every_step import AfterStep
from tests.upstream.h2_scene import read_on
from tests.upstream.mixed_scene import NOTHING, MixedScene, start_mixed
from tests.upstream.raw_backend import reply

STRIDE = 3
"""Steps between the moments that are tried; each has neighbours of its kind."""
BUSY = reply(503, b'{"error":{"message":"busy"}}')
STREAMED = (STREAM_HEAD, b": 1\n\n", 0.01, b": 2\n\n")


async def _leave_behind_step(folder: Path, step: int, claude_ca: str) -> tuple[bool, bytes]:
    """Make one call that is left behind a step; return whether it lived that long, and its answer.

    The first backend fails by its status, the second refuses the stream, the third is not trusted
    or answers.
    """
    async with trio.open_nursery() as nursery:
        scene = await start_mixed(nursery, folder, REFUSED, STREAMED, claude_ca=claude_ca)
        scene.plain.answer = BUSY
        client = await scene.router.connect()
        body = chat_body(model="auto", stream=True)
        await trio.testing.wait_all_tasks_blocked()
        instrument = AfterStep(step, client.abort)
        trio.lowlevel.add_instrument(instrument)
        await client.send(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: r\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n%b" % (len(body), body)
        )
        got = await read_on(client)
        trio.lowlevel.remove_instrument(instrument)
        left_at = trio.current_time()
        await _check_nothing_is_left(scene)
        assert trio.current_time() == left_at
        nursery.cancel_scope.cancel()
    return instrument.count >= step, got


async def _check_nothing_is_left(scene: MixedScene) -> None:
    assert await scene.held() == NOTHING
    [line] = await scene.router.log()
    assert line["outcome"] in {"cancelled", "succeeded"}
    for call in scene.shared.calls:
        assert call.reset is not None or call.done
    for session in scene.shared.sessions:
        assert session.open_streams == 0
    spans = [span for span in scene.recorder.spans if span.name.endswith(".attempt")]
    assert len(spans) == line["attempts"]
    assert all(span.end_time is not None for span in spans)


@pytest.mark.parametrize(("claude_ca", "least"), [("ours.pem", 50), ("theirs.pem", 30)])
def test_client_may_leave_behind_any_step(claude_ca: str, least: int, tmp_path: Path) -> None:
    """Whatever was begun for it is over at once: attempts, dials, streams, slots, spans.

    The order in which tasks run makes it some steps more or fewer; `least` is far below.
    """
    for step in count(1, STRIDE):
        clock = trio.testing.MockClock(autojump_threshold=0)
        is_cut, got = trio.run(_leave_behind_step, tmp_path, step, claude_ca, clock=clock)
        if not is_cut:
            assert got.startswith(b"HTTP/1.1 200")
            assert step > least
            return
