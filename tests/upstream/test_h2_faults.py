"""Backends that refuse, reset, leave or talk nonsense over HTTP/2: what calls are told, and do."""

import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd
from tests.fakes.h2_backend import (
    EVENT,
    OK,
    REFUSED,
    STREAM_HEAD,
    Act,
    GoAway,
    Head,
    Play,
    Raw,
    Reset,
)
from tests.upstream.h2_scene import NOTHING, STREAM, start_h2_scene
from vsr.routing.outcome import NOTHING_USED, TransportFact
from vsr.upstream.policy.outcome import FailureKind

PREFIX = b"upstream connect error or disconnect/reset before headers. reset reason: "
RETRIED = b"upstream connect error or disconnect/reset before headers. retried and the latest "
WRITTEN, HEAD = TransportFact.REQUEST_WRITTEN, TransportFact.HEAD_RECEIVED

ROWS: list[tuple[str, Play, int, bytes, str, str, bool]] = [
    ("refused", REFUSED, 503, b"remote refused stream reset", "UR", "refused_stream", True),
    ("goaway", (GoAway(processed=False),), 503, b"remote refused stream reset", "UR",
     "refused_stream", True),
    ("reset", (Reset(2),), 503, b"remote reset", "UR", "upstream_reset", False),
    ("cancel", (Reset(8),), 503, b"remote reset", "UR", "upstream_reset", False),
    ("closed", (Act.CLOSE,), 503, b"connection termination", "UC", "upstream_reset", False),
    ("aborted", (Act.ABORT,), 503, b"connection termination", "UC", "upstream_reset", False),
    ("goaway, then closed", (GoAway(), Act.CLOSE), 503, b"connection termination", "UC",
     "upstream_reset", False),
    ("bad head", (Head(200, ((b"a", b"b"), (b"connection", b"x"))),), 502,
     b"protocol error (connection-specific field)", "UPE", "upstream_protocol_error", False),
    ("no frame", (Raw(b"\xff" * 20),), 502, b"protocol error (HTTP/2 connection error 6)", "UPE",
     "upstream_protocol_error", False),
]  # fmt: skip


@pytest.mark.parametrize(
    ("play", "status", "reason", "flag", "error", "is_zero"),
    [row[1:] for row in ROWS],
    ids=[row[0] for row in ROWS],
)
async def test_failure_before_the_head_is_a_local_reply(
    play: Play,
    status: int,
    reason: bytes,
    flag: str,
    error: str,
    is_zero: bool,  # noqa: FBT001  # a column
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Envoy's words and flags; only what was refused is known to have cost nothing."""
    scene = await start_h2_scene(nursery, play)

    got = await scene.ask()
    [line] = await scene.router.log()
    [attempt] = await scene.failing()

    assert (got.status, got.body, got.end) == (status, PREFIX + reason, AnswerEnd.WHOLE)
    assert (line["response_flags"], line["outcome"]) == (flag, "failed")
    assert (attempt.error, attempt.is_known_zero, attempt.fact) == (error, is_zero, WRITTEN)
    assert (attempt.usage is NOTHING_USED) is is_zero
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("play", [REFUSED, (GoAway(processed=False),)], ids=["reset", "goaway"])
async def test_refused_stream_is_repeated_at_once(
    play: Play, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """`refused-stream` alone asks for it, without a wait; with known-zero evidence as well."""
    scene = await start_h2_scene(
        nursery,
        play,
        OK,
        reliability="retry_count: 1, retry_on: refused-stream, retry_evidence: known_zero",
    )

    got = await scene.ask()
    stats = scene.cluster.state.stats

    assert (got.status, trio.current_time()) == (200, 0)
    assert len(scene.backend.calls) == 2
    assert dict(stats.retries) == {"refused_stream": 1}
    assert scene.cluster.state.hosts[0].stats.failures[FailureKind.REFUSED_STREAM] == 1
    assert await scene.held() == NOTHING


async def test_refused_stream_goes_to_another_backend(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """By default, as after a failed connection."""
    scene = await start_h2_scene(
        nursery, REFUSED, reliability="retry_count: 2", more=[[(Head(), b'{"b":1}')]]
    )

    got = await scene.ask()

    assert (got.status, got.body) == (200, b'{"b":1}')
    assert [len(backend.calls) for backend in scene.backends] == [1, 1]


@pytest.mark.parametrize(
    ("retry_on", "evidence", "calls"),
    [
        ("refused-stream", "any", 1),
        ("reset", "any", 2),
        ("reset", "known_zero", 1),
        ("connect-failure", "any", 1),
    ],
)
async def test_other_reset_is_repeated_if_asked_for(
    retry_on: str,
    evidence: str,
    calls: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It is a `reset`, whose work is not known."""
    reliability = f"retry_count: 1, retry_on: {retry_on}, retry_evidence: {evidence}"
    scene = await start_h2_scene(nursery, (Reset(2),), OK, reliability=reliability)

    got = await scene.ask()

    assert len(scene.backend.calls) == calls
    assert got.status == (200 if calls == 2 else 503)


async def test_refused_streams_eject_their_endpoint(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """They count as 503, as every failure does that is the backend's."""
    scene = await start_h2_scene(
        nursery, REFUSED, reliability="consecutive_5xx: 3, max_ejection_percent: 100", more=[[OK]]
    )

    for _ in range(8):
        await scene.ask()

    assert len(scene.backend.calls) == 3
    assert [host.is_ejected for host in scene.cluster.state.hosts] == [True, False]


async def test_goaway_lets_calls_under_way_go_on(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Streams up to its last one are served, those above were refused, new ones go elsewhere."""
    scene = await start_h2_scene(
        nursery,
        (4.0, Head(), b'{"n":1}'),
        (Act.HANG,),
        (Head(), b'{"n":3}'),
        reliability="retry_count: 1, retry_on: refused-stream",
    )
    first, second = await scene.begin(), await scene.begin()
    old = scene.session

    await old.say_goaway(1)
    answer = await second.receive()
    third = await scene.ask()
    early = trio.current_time()
    old_is_open = not old.is_closed
    last = await first.receive()
    await trio.testing.wait_all_tasks_blocked()

    assert b'{"n":3}' in answer
    assert (third.body, early) == (b'{"n":3}', 0)
    assert b'{"n":1}' in last
    assert trio.current_time() == pytest.approx(4)
    assert (old_is_open, old.is_closed) == (True, True), "closed with its last stream"
    assert [call.connection for call in scene.backend.calls] == [0, 0, 1, 1]
    assert await scene.held() == NOTHING


async def test_goaway_on_an_idle_connection_closes_it(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nothing is left of it, and the next call dials."""
    scene = await start_h2_scene(nursery)
    await scene.ask()

    await scene.session.say_goaway(1)
    await trio.testing.wait_all_tasks_blocked()
    idle = (scene.pool.idle, scene.backend.open_sessions)
    got = await scene.ask()

    assert (idle, got.status, len(scene.backend.sessions)) == ((0, 0), 200, 2)


async def test_backend_that_closes_an_idle_connection_costs_no_call(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It is seen at once, not by the next call."""
    scene = await start_h2_scene(nursery)
    await scene.ask()

    scene.session.close()
    await trio.testing.wait_all_tasks_blocked()
    idle = scene.pool.idle
    got = await scene.ask()

    assert (idle, got.status) == (0, 200)


async def test_lost_connection_ends_all_its_streams(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Each is a reset of its own; one whose head has come is broken off."""
    scene = await start_h2_scene(nursery, (Act.HANG,), (Act.HANG,), (STREAM_HEAD, EVENT, Act.HANG))
    clients = [await scene.begin(), await scene.begin(), await scene.begin(STREAM)]
    begun = await clients[2].receive()

    scene.session.close(abort=True)
    answers = [await client.receive() for client in clients]

    assert [answer[:12] for answer in answers[:2]] == [b"HTTP/1.1 503"] * 2
    assert (EVENT in begun, b"upstream_reset" in answers[2]) == (True, True)
    stats = scene.cluster.state.hosts[0].stats
    assert stats.failures[FailureKind.RESET] == 2
    assert stats.broken[FailureKind.RESET] == 1
    assert await scene.held() == NOTHING


MANY = EVENT * 4_000
"""More than is collected before a client gets any of it."""


def of_length(size: int) -> Head:
    """Return the head of a stream that says how long it is."""
    lines = [(b"content-type", b"text/event-stream"), (b"content-length", b"%d" % size)]
    return Head(200, lines)


BODIES: list[tuple[str, Play]] = [
    ("reset", (STREAM_HEAD, EVENT, 1.0, Reset(2))),
    ("refused too late", (STREAM_HEAD, EVENT, 1.0, Reset(7))),
    ("closed", (STREAM_HEAD, EVENT, 1.0, Act.CLOSE)),
    ("goaway below it", (STREAM_HEAD, EVENT, 1.0, GoAway(processed=False))),
    ("nonsense", (STREAM_HEAD, EVENT, 1.0, Raw(b"\xff" * 20))),
    ("too long", (of_length(len(MANY)), MANY, 1.0, EVENT)),
    ("too short", (of_length(len(MANY)), EVENT, 1.0, Act.END)),
]  # fmt: skip


@pytest.mark.parametrize("play", [row[1] for row in BODIES], ids=[row[0] for row in BODIES])
async def test_body_that_breaks_is_broken_for_the_client(
    play: Play, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What has come goes on, then the answer breaks off; no call is made again."""
    scene = await start_h2_scene(nursery, play, reliability="retry_count: 3, retry_on: 5xx")

    got = await scene.ask(STREAM)
    [line] = await scene.router.log()

    assert (got.status, got.end) == (200, AnswerEnd.CUT)
    assert trio.current_time() == pytest.approx(1)
    assert (len(scene.backend.calls), line["outcome"], line["response_flags"]) == (
        1,
        "failed",
        "UPE",
    )
    assert scene.cluster.state.hosts[0].stats.broken[FailureKind.RESET] == 1
    assert await scene.held() == NOTHING
