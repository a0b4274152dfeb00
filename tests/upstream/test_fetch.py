"""Questions to services that are no models."""

from collections.abc import Callable, Sequence
from itertools import count

import attrs
import pytest
import trio
import trio.testing

from tests.engine.stepped_backend import EVENT_STREAM, LAST_CHUNK, Act, chunk
from tests.faults.test_every_step import AfterStep
from tests.upstream.raw_backend import reply
from tests.upstream.scenes import OK, SILENT, Play, PlayingBackend, failing, start_backends
from tests.upstream.tls_scene import NAME, OURS, THEIRS, server_context, start_tls_backend
from vsr.config.egress import parse_rule
from vsr.deadline import NO_DEADLINE, Deadline
from vsr.errors import (
    CallFailed,
    DeadlineExceeded,
    EgressRefused,
    UpstreamAnswerTooLarge,
    UpstreamConnectFailure,
    UpstreamProtocolError,
    UpstreamReset,
    VsrError,
)
from vsr.network.memory import Fault, MemoryConnection, MemoryNetwork
from vsr.network.tls_client import client_context
from vsr.resources.egress import Egress
from vsr.routing.ports import CallAnswer
from vsr.upstream.dialer import TlsContexts
from vsr.upstream.fetch import HttpFetch

LIMIT_BYTES = 1_000
SLOW: Play = (EVENT_STREAM + chunk(b"one"), 2.0, chunk(b"two"), 2.0, LAST_CHUNK)
QUESTION = b'{"question":"q"}'

TRUSTING: TlsContexts = lambda _tls, _alpn: client_context(OURS.cert_pem.bytes())  # noqa: E731


class RecordingNetwork(MemoryNetwork):
    """A network that remembers our end of each connection that we have opened."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[MemoryConnection] = []

    async def connect(
        self,
        host: str,
        port: int,
        *,
        ipv4_only: bool = False,
        allows: Callable[[str], bool] | None = None,
    ) -> MemoryConnection:
        """Open a connection."""
        connection = await super().connect(host, port, ipv4_only=ipv4_only, allows=allows)
        self.opened.append(connection)
        return connection


@attrs.define(eq=False)
class Scene:
    """A service, and who asks it."""

    network: RecordingNetwork
    fetch: HttpFetch
    service: PlayingBackend

    async def ask(
        self,
        path: str = "/verify",
        deadline: Deadline = NO_DEADLINE,
        *,
        limit_bytes: int = LIMIT_BYTES,
    ) -> CallAnswer:
        """Ask a question."""
        url = f"http://{self.service.host}:{self.service.port}{path}"
        return await self.fetch(url, QUESTION, deadline, limit_bytes=limit_bytes)

    async def failed(self, error: type[VsrError], deadline: Deadline = NO_DEADLINE) -> float:
        """Ask a question, which fails and leaves nothing; return how long it took."""
        begun = trio.current_time()
        with pytest.raises(error):
            await self.ask(deadline=deadline)
        took_s = trio.current_time() - begun
        assert await self.held() == (0, 0)
        return took_s

    async def held(self) -> tuple[int, int]:
        """Return the connections in use and those that wait, once nothing moves."""
        await trio.testing.wait_all_tasks_blocked()
        return self.fetch.connections_in_use, self.fetch.idle_connections


async def begin(nursery: trio.Nursery, *plays: Play, egress: Egress | None = None) -> Scene:
    """Start a service that plays these, question by question."""
    network = RecordingNetwork()
    await nursery.start(network.run)
    [service] = await start_backends(nursery, network, [list(plays)])
    return Scene(network, HttpFetch(network, TRUSTING, egress), service)


@pytest.mark.parametrize("status", [200, 404, 503])
async def test_whole_answer_comes_back_whatever_its_status(
    status: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The question is a POST of JSON to the URL's very path, and brings no credential."""
    scene = await begin(nursery, (reply(status, b'{"a":1}', (b"x-own", b"yes")),))

    answer = await scene.ask("/base/verify")

    assert (answer.status, answer.body) == (status, b'{"a":1}')
    assert answer.headers.get(b"x-own") == b"yes"
    [asked] = scene.service.calls
    assert (asked.head.method, asked.head.target, asked.body) == (
        b"POST",
        b"/base/verify",
        QUESTION,
    )
    assert dict(asked.head.lines) == {
        b"host": f"b0.test:{scene.service.port}".encode(),
        b"content-type": b"application/json",
        b"accept": b"application/json",
        b"content-length": b"%d" % len(QUESTION),
    }


@pytest.mark.parametrize(
    ("path", "target"), [("", b"/"), ("/", b"/"), ("/a/", b"/a/"), ("/a//b", b"/a//b")]
)
async def test_path_is_asked_as_it_is_written(
    path: str, target: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A trailing slash may mean something to the service."""
    scene = await begin(nursery, OK)

    await scene.ask(path)

    assert scene.service.calls[0].head.target == target


async def test_connection_is_used_again(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Behind a whole answer; another one is closed when the configuration is gone."""
    scene = await begin(nursery, OK)

    await scene.ask()
    await scene.ask("/other")

    assert scene.service.accepted == 1
    assert await scene.held() == (0, 1)
    scene.fetch.close()
    assert await scene.held() == (0, 0)
    assert len(scene.service.gone_at) == 1


async def test_first_question_behind_the_end_of_its_configuration_keeps_nothing(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A request may still run then, and be the first to ask."""
    scene = await begin(nursery, OK)
    scene.fetch.close()

    assert (await scene.ask()).status == 200

    assert await scene.held() == (0, 0)


async def test_question_under_way_outlives_its_configuration(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It has its answer, and its connection is closed then; so is that of a later question."""
    scene = await begin(nursery, (0.5, reply(200, b"{}")))
    answers: list[CallAnswer] = []

    async def ask() -> None:
        answers.append(await scene.ask())

    async with trio.open_nursery() as questions:
        questions.start_soon(ask)
        await trio.sleep(0.1)
        scene.fetch.close()
    await ask()

    assert [answer.status for answer in answers] == [200, 200]
    assert await scene.held() == (0, 0)


@pytest.mark.parametrize("size_bytes", [LIMIT_BYTES, LIMIT_BYTES + 1])
@pytest.mark.parametrize("is_declared", [True, False])
async def test_limit_is_what_may_be(
    size_bytes: int,
    *,
    is_declared: bool,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """One byte more fails, and drops the connection."""
    body = b"x" * size_bytes
    play: Play = (reply(200, body),) if is_declared else (EVENT_STREAM, chunk(body), LAST_CHUNK)
    scene = await begin(nursery, play)

    if size_bytes > LIMIT_BYTES:
        await scene.failed(UpstreamAnswerTooLarge)
    else:
        assert len((await scene.ask()).body) == size_bytes


@pytest.mark.parametrize("play", [SILENT, SLOW], ids=["before the head", "in the body"])
async def test_deadline_ends_the_question(
    play: Play, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The body counts; the connection is closed at that instant."""
    scene = await begin(nursery, play)
    until = trio.current_time() + 1.5

    assert await scene.failed(DeadlineExceeded, Deadline(until)) == pytest.approx(1.5)

    assert scene.service.gone_at == [pytest.approx(until)]


async def test_nothing_is_asked_behind_the_deadline(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Not even where a connection waits for it."""
    scene = await begin(nursery, OK)
    await scene.ask()

    with pytest.raises(DeadlineExceeded):
        await scene.ask(deadline=Deadline(trio.current_time()))

    assert await scene.held() == (0, 1)
    assert len(scene.service.calls) == 1


@pytest.mark.parametrize(
    ("play", "error"),
    [
        ((Act.RESET,), UpstreamReset),
        ((EVENT_STREAM + chunk(b"one"), Act.CLOSE), UpstreamProtocolError),
        ((EVENT_STREAM, b"zz\r\n"), UpstreamProtocolError),
    ],
    ids=["reset", "cut off", "broken framing"],
)
async def test_answer_that_breaks_fails_and_is_not_asked_for_again(
    play: Play,
    error: type[VsrError],
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """What the step does without it is the graph's to say."""
    scene = await begin(nursery, play, OK)

    await scene.failed(error)

    assert len(scene.service.calls) == 1


async def test_service_that_is_not_there_fails(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """At once where the connection is refused, behind ten seconds where nobody says anything."""
    scene = await begin(nursery, OK)
    scene.network.faults["b0.test"] = Fault.SILENT
    assert await scene.failed(UpstreamConnectFailure) == pytest.approx(10)

    del scene.network.faults["b0.test"]
    scene.network.forget(scene.service.port)
    assert await scene.failed(UpstreamConnectFailure) == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize(("address", "is_allowed"), [("10.0.0.1", True), ("11.0.0.1", False)])
async def test_service_is_held_to_the_rules_of_egress(
    address: str,
    *,
    is_allowed: bool,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """By the address that its name is found at when the connection is made."""
    scene = await begin(nursery, OK, egress=Egress(allow=(parse_rule("10.0.0.0/8"),)))
    scene.network.addresses["b0.test"] = lambda: (address,)

    if is_allowed:
        assert (await scene.ask()).status == 200
    else:
        await scene.failed(EgressRefused)
        assert scene.service.accepted == 0


@pytest.mark.parametrize(
    "url",
    [
        "b0.test/verify",
        "ftp://b0.test/verify",
        "http://user:secret@b0.test/verify",
        "http://b0.test/verify?secret",
        "http:///verify",
        "http://b0.test:0/verify",
        "http://b0.test/ver ify",
    ],
)
async def test_what_is_no_url_fails(url: str, autojump_clock: trio.testing.MockClock) -> None:
    """Nothing of it is shown: it may hold a secret."""
    fetch = HttpFetch(MemoryNetwork(), TRUSTING)

    with pytest.raises(CallFailed, match="the service's URL cannot be used: ") as failed:
        await fetch(url, b"{}", NO_DEADLINE, limit_bytes=LIMIT_BYTES)

    assert "secret" not in str(failed.value)
    assert "b0" not in str(failed.value)


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_https_checks_the_certificate(
    *, is_trusted: bool, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Against the URL's host and who is trusted; its connection is used again, too."""
    network = MemoryNetwork()
    await nursery.start(network.run)
    issued = (OURS if is_trusted else THEIRS).issue_cert(NAME)
    service = await start_tls_backend(nursery, network, server_context(issued))
    fetch = HttpFetch(network, TRUSTING)
    url = f"https://{NAME}:{service.port}/verify"

    async def ask() -> int:
        return (await fetch(url, QUESTION, NO_DEADLINE, limit_bytes=LIMIT_BYTES)).status

    if is_trusted:
        assert [await ask(), await ask()] == [200, 200]
        assert len(service.accepted) == 1
    else:
        with pytest.raises(UpstreamConnectFailure):
            await ask()
        assert not service.seen
    assert fetch.connections_in_use == 0


PLAYS: dict[str, Sequence[Play]] = {
    "at once": [OK],
    "in pieces": [(EVENT_STREAM + chunk(b"one"), 0.01, chunk(b"two"), 0.01, LAST_CHUNK)],
    "an error": [failing(503)],
}


@pytest.mark.parametrize("name", PLAYS)
async def test_cancelled_question_leaves_nothing_behind(
    name: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Behind whichever step of any task: its connection is closed or given back whole."""
    for step in count(1):
        async with trio.open_nursery() as nursery:
            scene = await begin(nursery, *PLAYS[name])
            scope = trio.CancelScope()
            instrument = AfterStep(step, scope.cancel)
            trio.lowlevel.add_instrument(instrument)
            with scope:
                await scene.ask()
            trio.lowlevel.remove_instrument(instrument)
            in_use, idle = await scene.held()
            still_open = [each for each in scene.network.opened if not each.is_closed]
            assert (in_use, idle) == (0, len(still_open))
            nursery.cancel_scope.cancel()
        if not scope.cancelled_caught:
            break
    assert step > 2
