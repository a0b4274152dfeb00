"""A client's body in pieces: what is collected, what is handed out, and what ends it."""

from collections.abc import Sequence
from typing import cast

import attrs
import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from vsr.errors import BodyTooLarge, RequestTimedOut
from vsr.gateway.client_body import ClientBody
from vsr.gateway.exchange import Exchange
from vsr.gateway.request_scope import RequestScope
from vsr.network.port import ConnectionBroken
from vsr.routing.outcome import Cause

ENDED_AT = 42.0


@attrs.define
class Pieces:
    """The part of an exchange that is read: these pieces, then a failure or the end."""

    left: list[bytes]
    failure: Exception | None = None

    async def read_piece(self) -> bytes:
        """Return the next piece."""
        if self.left:
            return self.left.pop(0)
        if self.failure is not None:
            raise self.failure
        return b""

    def now(self) -> float:
        """Return the same time always."""
        return ENDED_AT


def source_of(
    pieces: Sequence[bytes],
    *,
    length: int | None = None,
    limit_bytes: int = 10_000,
    failure: Exception | None = None,
) -> ClientBody:
    """Return the body that comes in these pieces."""
    exchange = cast("Exchange", Pieces(list(pieces), failure))
    return ClientBody(exchange, RequestScope(trio.CancelScope()), limit_bytes, length)


async def read_all(source: ClientBody) -> bytes:
    """Read to the end."""
    parts = []
    while piece := await source.read():
        parts.append(piece)
    return b"".join(parts)


cut = st.lists(st.binary(min_size=1, max_size=20), max_size=12)


@given(cut, st.integers(0, 100), st.booleans())
def test_body_is_collected_or_handed_out_whole(
    pieces: list[bytes],
    most: int,
    is_declared: bool,  # noqa: FBT001  # drawn
) -> None:
    """However it is cut: up to the bound it is returned, beyond it every byte is read in order."""
    body = b"".join(pieces)
    source = source_of(pieces, length=len(body) if is_declared else None)
    told: list[float] = []
    source.on_end(told.append)

    async def run() -> None:
        whole = await source.gather(most)
        assert not source.is_begun
        assert whole == (body if len(body) <= most else None)
        assert told == []
        if whole is None:
            assert await read_all(source) == body
            assert source.is_begun
            assert source.has_ended
            assert told == [ENDED_AT]
            assert await source.read() == b""
            assert told == [ENDED_AT], "told once"

    trio.run(run)


@given(cut, st.integers(0, 100), st.integers(0, 100))
def test_limit_holds_to_the_byte(pieces: list[bytes], limit: int, most: int) -> None:
    """Whether more is collected or read; nothing beyond the limit is handed out."""
    body = b"".join(pieces)
    source = source_of(pieces, limit_bytes=limit)
    got: list[bytes] = []

    async def run() -> None:
        whole = await source.gather(most)
        if whole is not None:
            got.append(whole)
            return
        while piece := await source.read():
            got.append(piece)

    if len(body) > limit:
        with pytest.raises(BodyTooLarge):
            trio.run(run)
        assert len(b"".join(got)) <= limit
        assert not source.has_ended
    else:
        trio.run(run)
        assert b"".join(got) == body


@given(cut, st.integers(0, 100))
def test_long_declared_body_is_not_read_to_be_collected(pieces: list[bytes], most: int) -> None:
    """Its length says enough, so a client that asks first is not told to go on yet."""
    source = source_of(pieces, length=most + 1)

    assert trio.run(source.gather, most) is None
    assert cast("Pieces", source._exchange).left == pieces


async def test_collected_body_leaves_in_pieces_of_one_size() -> None:
    """Neither all at once, whose sending would be one long wait, nor as small as it came."""
    source = source_of([b"x" * 100] * 1500, limit_bytes=200_000)

    assert await source.gather(140_000) is None
    sizes = [len(await source.read()) for _ in range(5)]
    assert sizes == [65_536, 65_536, 140_100 - 2 * 65_536, 100, 100]


@pytest.mark.parametrize("collects", [True, False])
async def test_client_that_is_gone_ends_the_request(
    collects: bool,  # noqa: FBT001  # a parameter of the table
) -> None:
    """It is not taken for the backend's connection, which fails in the same words."""
    source = source_of([b"ab"], failure=ConnectionBroken())
    scope = source._scope

    with scope.life:
        async with trio.open_nursery() as tasks:
            scope.tasks = tasks
            await source.gather(100 if collects else 1)
            await source.read()
            await source.read()
            raise AssertionError("it goes on")

    assert scope.cause is Cause.CLIENT_GONE
    assert scope.life.cancel_called


async def test_client_that_stops_is_told_of() -> None:
    """Whoever reads hears it."""
    source = source_of([b"ab"], failure=RequestTimedOut())

    assert await source.read() == b"ab"
    with pytest.raises(RequestTimedOut):
        await source.read()
    assert not source.has_ended
