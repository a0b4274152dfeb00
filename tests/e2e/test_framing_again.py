"""The framing corpus on one Router, over and over: what it has read before changes no answer."""

from collections.abc import Sequence
from contextlib import suppress

import pytest
import trio

from tests.e2e.corpus import SMUGGLED, Case, Got, Saw, get
from tests.e2e.standalone import Standalone, start_standalone
from tests.e2e.test_framing import CASES
from tests.e2e.wire import BrokenAnswer, RawClient, connect
from tests.http.refused_requests import REFUSED

ROUNDS = ("cold", "warm", "warmer")
PATIENCE_S = 10


@pytest.fixture
async def served(nursery: trio.Nursery) -> Standalone:
    """Serve two backends that echo what they get."""
    return await start_standalone(nursery)


@pytest.mark.parametrize("group", sorted({name.partition(":")[0] for name in CASES}))
async def test_corpus_holds_when_every_line_is_known(served: Standalone, group: str) -> None:
    """Each case on new connections, first when its lines are new and then when they are known."""
    cases = {name: case for name, case in CASES.items() if name.startswith(f"{group}:")}

    for round_ in ROUNDS:
        for name, case in cases.items():
            got, saw, is_open = await _play(served, case, case.pieces)

            assert got == [each.status for each in case.got], (round_, name)
            assert saw == [(each.method, each.target, each.body) for each in case.saw], (
                round_,
                name,
            )
            assert is_open is (case.is_open and not case.leaves), (round_, name)


@pytest.mark.parametrize("known_from", ["nothing", "sound cases"])
async def test_refused_requests_stay_refused(served: Standalone, known_from: str) -> None:
    """However often they come, whatever else is known, and whatever stands in front or behind."""
    if known_from == "sound cases":
        for case in CASES.values():
            await _play(served, case, case.pieces)

    for round_ in ROUNDS:
        for name, (request, status) in REFUSED.items():
            alone = await _play(
                served, Case((), (Got(status),), is_open=False), (request, SMUGGLED)
            )
            behind = await _play(
                served,
                Case((), (Got(200), Got(status)), is_open=False),
                (get(), request + SMUGGLED),
            )

            assert alone == ([status], [], False), (round_, name)
            assert behind == ([200, status], [(b"GET", b"/x", b"")], False), (round_, name)


@pytest.mark.parametrize("begun", [b"P", b"PUT", b"PUT ", b"GET ", b"x"])
async def test_request_behind_one_that_was_begun_is_none(served: Standalone, begun: bytes) -> None:
    """A read that happens to begin like a request is no request."""
    case = Case((), (Got(200), Got(400)), is_open=False)

    got, saw, is_open = await _play(served, case, (get() + begun, SMUGGLED))

    assert (got, is_open) == ([200, 400], False)
    assert saw == [(b"GET", b"/x", b"")]


async def _play(
    served: Standalone, case: Case, pieces: Sequence[bytes]
) -> tuple[list[int], list[tuple[bytes, bytes, bytes]], bool]:
    """Send `pieces` on a new connection; return statuses, what backends saw, and if it is open."""
    before = len(served.small.seen), len(served.large.seen)
    with trio.fail_after(PATIENCE_S):
        with await connect(served.port) as client:
            await client.send(*pieces)
            got = [await _status(client) for _ in case.got]
            is_open = not case.leaves and await _is_open(client, expected=case.is_open)
        await served.settled()
    seen: list[Saw] = [
        Saw(each.method, each.target, each.body)
        for each in [*served.small.seen[before[0] :], *served.large.seen[before[1] :]]
    ]
    return got, [(each.method, each.target, each.body) for each in seen], is_open


async def _status(client: RawClient) -> int:
    answer = await client.answer()
    return 0 if answer is None else answer.status


async def _is_open(client: RawClient, *, expected: bool) -> bool:
    """Return whether the connection serves a probe; one that should be closed must end by itself.

    Who sends on to a connection that has been closed gets a reset instead of its end.
    """
    if not expected:
        with suppress(BrokenAnswer):
            assert await client.rest() == b""
        return False
    await client.send(get(b"/health"))
    probe = await client.answer()
    return probe is not None and probe.body == b'{"status":"ok"}'
