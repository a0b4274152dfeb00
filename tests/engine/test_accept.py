"""A client that asks for a stream by `accept` alone."""

import json

import pytest
import trio
import trio.testing

from tests.engine.wired import PAIRS, Pair, chunked, wire

STREAM = (b"accept", b"text/event-stream")


@pytest.mark.parametrize("pair", PAIRS)
async def test_accept_makes_a_request_streaming(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The backend is asked for a stream, and the client gets one, in every protocol."""
    wired = await wire(nursery)
    wired.backend(pair).steps = chunked(200, *pair.pieces)

    got = await wired.ask(pair, lines=[STREAM])

    [(_, sent)] = wired.backend(pair).seen
    assert json.loads(sent)["stream"] is True
    assert got.line(b"content-type").startswith(b"text/event-stream")
    assert got.body.count(b"data: ") > 1


@pytest.mark.parametrize("pair", PAIRS)
async def test_body_that_says_no_comes_before_accept(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What the body says explicitly is what the client means."""
    wired = await wire(nursery)

    got = await wired.ask(pair, pair.body(stream=False), lines=[STREAM])

    [(_, sent)] = wired.backend(pair).seen
    assert json.loads(sent).get("stream", False) is False
    assert got.json()
