"""The framing corpus on sockets: what the client gets, and what the backend sees."""

import json
import random
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from itertools import pairwise

import pytest
import trio

from tests.e2e.corpus import BODIES, HEADS, SMUGGLED, TOO_LONG, Case, Got, Saw, get
from tests.e2e.corpus_connections import ENDS, OLD_VERSIONS, PIPELINED, UPGRADES
from tests.e2e.standalone import Standalone, start_standalone
from tests.e2e.wire import BrokenAnswer, RawClient, connect
from tests.http.refused_requests import REFUSED

PATIENCE_S = 10
_CLOSED = Got(0)
_OF_FRAMING = ("bad_request", "invalid_request")


def _flat(**groups: Mapping[str, Case]) -> dict[str, Case]:
    return {
        f"{group}: {name}": case for group, cases in groups.items() for name, case in cases.items()
    }


CASES = _flat(
    body=BODIES,
    head=HEADS,
    limit=TOO_LONG,
    pipelined=PIPELINED,
    version=OLD_VERSIONS,
    upgrade=UPGRADES,
    client_leaves=ENDS,
)


@pytest.fixture
async def served(nursery: trio.Nursery) -> Standalone:
    """Serve two backends that echo what they get."""
    return await start_standalone(nursery)


@pytest.mark.parametrize("name", CASES)
async def test_bytes_mean_the_same_to_client_and_backend(served: Standalone, name: str) -> None:
    """Every answer is the expected one, and the backend sees exactly the expected requests."""
    case = CASES[name]

    got = await _play(served, case, case.pieces)

    assert got == list(case.got)
    assert _seen(served, case) == list(case.saw)
    _assert_backend_got_sound_messages(served)


@pytest.mark.parametrize("name", [name for name in CASES if not CASES[name].leaves])
async def test_bytes_mean_the_same_in_other_pieces(served: Standalone, name: str) -> None:
    """Where the kernel cuts a message changes nothing of what it means."""
    case = CASES[name]
    rng = random.Random(name)  # noqa: S311  # picks where to cut

    got = await _play_in_pieces(served, case, _cut(b"".join(case.pieces), rng))

    assert got == _final(case)
    assert _seen(served, case) == list(case.saw)
    _assert_backend_got_sound_messages(served)


@pytest.mark.parametrize("name", REFUSED)
async def test_refused_request_hides_no_other(served: Standalone, name: str) -> None:
    """It is answered once, whatever stands behind it, and the backend sees nothing."""
    request, status = REFUSED[name]
    case = Case((), (Got(status),), is_open=False)

    got = await _play(served, case, (request + SMUGGLED,))

    assert got == list(case.got)
    assert _seen(served, case) == []


@pytest.mark.parametrize("name", REFUSED)
async def test_refused_request_leaves_the_one_before_alone(served: Standalone, name: str) -> None:
    """Pipelined behind a sound request, it is refused once that one has its answer."""
    request, status = REFUSED[name]
    saw = (Saw(b"GET", b"/x"),)
    case = Case((), (Got(200), Got(status)), saw, is_open=False)

    got = await _play(served, case, (get() + request + SMUGGLED,))

    assert got == list(case.got)
    assert _seen(served, case) == list(case.saw)


@pytest.mark.parametrize("name", REFUSED)
async def test_refused_request_hides_no_other_that_comes_later(
    served: Standalone, name: str
) -> None:
    """What a client sends on behind a refusal is thrown away."""
    request, status = REFUSED[name]
    case = Case((), (Got(status),), is_open=False)

    got = await _play(served, case, (request[:-1], request[-1:], SMUGGLED, SMUGGLED))

    assert got == list(case.got)
    assert _seen(served, case) == []


async def test_absolute_target_decides_the_authority(served: Standalone) -> None:
    """The host in the target beats the field. Source: RFC 9112 section 3.2.2."""
    request = b"GET http://right:81/x HTTP/1.1\r\nHost: wrong\r\n\r\n"

    got = await _play(served, Case(()), (request,))

    assert got == [Got(200)]
    assert [line["authority"] for line in await served.log_lines()] == ["right:81"]


async def _play(served: Standalone, case: Case, pieces: Sequence[bytes]) -> list[Got]:
    """Send `pieces`, read the answers, and check what becomes of the connection."""
    with trio.fail_after(PATIENCE_S):
        with await connect(served.port) as client:
            await client.send(*pieces)
            got = [await _answer(client) for _ in case.got]
            if not case.leaves:
                await _check_end(client, is_open=case.is_open)
        await served.settled()
    return got


async def _play_in_pieces(served: Standalone, case: Case, pieces: Sequence[bytes]) -> list[Got]:
    """Do the same for a message whose body may come late enough to be asked for."""
    with trio.fail_after(PATIENCE_S), await connect(served.port) as client:
        await client.send(*pieces)
        got: list[Got] = []
        while len(got) < len(_final(case)):
            got += _without_interim([await _answer(client)])
        # Who sends on to a connection that has been closed gets a reset instead of its end.
        with nullcontext() if case.is_open else suppress(BrokenAnswer):
            await _check_end(client, is_open=case.is_open)
    return got


async def _answer(client: RawClient) -> Got:
    answer = await client.answer()
    if answer is None:
        return _CLOSED
    if answer.status < 400:
        return Got(answer.status)
    assert set(json.loads(answer.body)["error"]) == {"message", "type", "param", "code"}
    return Got(answer.status, answer.code if answer.code not in _OF_FRAMING else None)


async def _check_end(client: RawClient, *, is_open: bool) -> None:
    if not is_open:
        assert await client.rest() == b""
        return
    # A probe is answered by the Router alone, so only framing decides what comes of it.
    await client.send(get(b"/health"))
    probe = await client.answer()
    assert probe is not None
    assert probe.body == b'{"status":"ok"}'


def _final(case: Case) -> list[Got]:
    return _without_interim(case.got)


def _without_interim(got: Sequence[Got]) -> list[Got]:
    return [each for each in got if each.status != 100]


def _cut(data: bytes, rng: random.Random) -> list[bytes]:
    """Cut `data` at three places of its first and last hundred bytes."""
    ends = [*range(1, min(100, len(data))), *range(max(100, len(data) - 100), len(data))]
    cuts = sorted(rng.sample(ends, 3))
    return [data[start:end] for start, end in pairwise([0, *cuts, len(data)])]


def _seen(served: Standalone, case: Case) -> list[Saw]:
    """Return what the backends saw, with those fields that the case is about."""
    seen = [*served.small.seen, *served.large.seen]
    names: list[set[bytes]] = [set(saw.fields) for saw in case.saw]
    names += [set()] * (len(seen) - len(names))
    return [
        Saw(
            each.method,
            each.target,
            each.body,
            {name: [v for key, v in each.headers if key == name] for name in wanted},
        )
        for each, wanted in zip(seen, names, strict=False)
    ]


def _assert_backend_got_sound_messages(served: Standalone) -> None:
    """Whatever framing the client chose, the backend gets one length and no coding."""
    assert not served.small.malformed
    for seen in served.small.seen:
        names = [name for name, _ in seen.headers]
        assert b"transfer-encoding" not in names
        lengths = [value for name, value in seen.headers if name == b"content-length"]
        assert lengths in ([b"%d" % len(seen.body)], [] if not seen.body else None)
        assert seen.is_complete
        assert names.count(b"host") == 1
