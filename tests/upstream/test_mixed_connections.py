"""Backends of one model that differ in HTTP version, TLS, form and key at a time."""

import json
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.h2_backend import REFUSED, STREAM_HEAD, Act, Head, Reset
from tests.fakes.h2_client import H2Client
from tests.fakes.spans import context_of
from tests.upstream.h2_scene import read_on
from tests.upstream.mixed_scene import CHAT, CHAT_STREAM, NAMES, NOTHING, MixedScene, start_mixed
from tests.upstream.raw_backend import reply
from tests.upstream.test_metrics import read
from vsr.network.memory import MemoryNetwork
from vsr.upstream.h2_pool import H2Pool
from vsr.upstream.pool import Pool

BUSY = reply(503, b'{"error":{"message":"busy"}}')


async def test_each_backend_is_asked_in_its_own_way(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Form, key, HTTP version, trust and certificate; the client sees no difference."""
    scene = await start_mixed(nursery, tmp_path, CHAT, CHAT_STREAM)

    whole = [await scene.ask() for _ in NAMES]
    streamed = [await scene.ask(stream=True) for _ in NAMES]

    assert [got.status for got in (*whole, *streamed)] == [200] * 6
    assert {json.loads(got.body)["object"] for got in whole} == {"chat.completion"}
    assert all(got.body.endswith(b"data: [DONE]\n\n") for got in streamed)
    assert [len(scene.seen(name)) for name in NAMES] == [2, 2, 2]
    scene.check_forms()
    [session] = scene.shared.sessions
    [handshake] = scene.claude.shaken
    shown = session.connection._tls.getpeercert()  # type: ignore[attr-defined]  # over TLS
    assert ("DNS", "router.test") in shown["subjectAltName"]
    assert handshake._tls.getpeercert() is None
    keys = [fields.get(b"authorization") for _, fields, _ in scene.seen("shared")]
    assert keys == [b"Bearer shared-canary-key"] * 2
    assert await scene.held() == NOTHING


async def test_retries_go_from_kind_to_kind(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Each attempt is a span of its own and tells its backend so, over either HTTP version."""
    scene = await start_mixed(nursery, tmp_path, REFUSED)
    scene.plain.answer = BUSY

    got = await scene.ask()

    assert got.status == 200
    assert json.loads(got.body)["object"] == "chat.completion"
    assert [len(scene.seen(name)) for name in NAMES] == [1, 1, 1]
    scene.check_forms()
    attempts = [span for span in scene.recorder.spans if span.name.endswith(".attempt")]
    told = {f"{context_of(span).span_id:016x}".encode() for span in attempts}
    assert {parent.split(b"-")[2] for parent in scene.parents()} == told
    outcomes = [(span.attributes or {})["upstream.outcome"] for span in attempts]
    assert outcomes == ["5xx", "refused_stream", "2xx"]
    [line] = await scene.router.log()
    assert (line["attempts"], line["response_flags"]) == (3, "-")
    samples = read(scene.router)
    for name, outcome in zip(NAMES, outcomes, strict=True):
        labels = f'cluster="mix",endpoint="{name}",outcome="{outcome}"'
        assert samples[f"llm_upstream_attempts_total{{{labels}}}"] == 1
    assert await scene.held() == NOTHING


async def test_fallback_begins_where_all_kinds_have_failed(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """One failed by its status, one refused the stream, one has no certificate that we trust."""
    scene = await start_mixed(nursery, tmp_path, REFUSED, CHAT, REFUSED, claude_ca="ours.pem")
    scene.plain.answer = BUSY

    other = await scene.ask("auto")
    scene.take_turns("plain")
    nobody = await scene.ask("auto")

    assert (other.status, other.line(b"x-vsr-fallback-path")) == (200, b"mix,spare")
    assert other.json()["object"] == "chat.completion"
    assert nobody.status == 200
    assert b"nobody" in nobody.body
    keys = [fields.get(b"authorization") for _, fields, _ in scene.seen("shared")]
    assert keys == [b"Bearer shared-canary-key", b"Bearer spare-key"] * 2
    assert b"canary" not in repr(scene.seen("shared")[1]).encode()
    assert scene.seen("claude") == []
    attempts = [span for span in scene.recorder.spans if span.name.endswith(".attempt")]
    of_mix = ["5xx", "refused_stream", "connect_failure"]
    outcomes = [(span.attributes or {})["upstream.outcome"] for span in attempts]
    assert outcomes == [*of_mix, "2xx", *of_mix, "refused_stream"]
    told = {f"{context_of(span).span_id:016x}".encode() for span in attempts}
    assert len(scene.parents()) == 6
    assert {parent.split(b"-")[2] for parent in scene.parents()} < told
    assert await scene.held() == NOTHING


async def test_each_backend_is_checked_over_its_own_connections(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """One that fails its check is left out, whatever it speaks; the others serve."""
    scene = await start_mixed(
        nursery, tmp_path, reliability="health_check_path: /health, health_check_interval: 5s"
    )
    scene.shared.health = (Head(503), b"")
    await scene.ask()
    await trio.sleep(80)

    answers = [await scene.ask() for _ in range(4)]

    assert [got.status for got in answers] == [200] * 4
    assert len(scene.shared.checks) > 3
    assert len(scene.shared.sessions) == 1
    assert scene.shared.calls == []
    for backend in (scene.plain, scene.claude):
        assert sum(head.target == b"/health" for head, _ in backend.seen) > 3
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("name", NAMES)
async def test_backend_that_egress_refuses_leaves_the_call_to_the_others(
    name: str, nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """At once, without a connection; it is counted for that endpoint, over HTTP/2 as well."""
    network = MemoryNetwork()
    network.addresses[f"{name}.test"] = lambda: ["192.0.2.1"]
    scene = await start_mixed(nursery, tmp_path, egress="{deny: [192.0.2.0/24]}", network=network)

    answers = [await scene.ask() for _ in range(6)]

    assert [got.status for got in answers] == [200] * 6
    assert scene.seen(name) == []
    samples = read(scene.router)
    refused = {
        each: samples[f'llm_upstream_egress_refused_total{{cluster="mix",endpoint="{each}"}}']
        for each in NAMES
    }
    assert refused[name] > 0
    assert sum(refused.values()) == refused[name]
    assert await scene.held() == NOTHING


async def test_certificate_that_is_turned_down_over_http2_is_a_failed_connection(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Though TLS 1.3 tells it behind the handshake: no request is sent before the settings."""
    scene = await start_mixed(nursery, tmp_path, reliability="", stranger=True)
    scene.take_turns("shared")

    got = await scene.ask()

    assert got.status == 503
    assert b"remote connection failure" in got.body
    assert (scene.shared.calls, scene.shared.sessions) == ([], [])
    [line] = await scene.router.log()
    assert (line["response_flags"], line["attempts"]) == ("UF", 1)
    assert await scene.held() == NOTHING


async def test_reload_keeps_the_connections_of_what_is_unchanged(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """A new key goes out on the old ones; other authorities make new ones, of that backend."""
    scene = await start_mixed(nursery, tmp_path)
    for _ in NAMES:
        await scene.ask()
    first, pools = scene.router.generation, scene.pools()
    (tmp_path / "shared.txt").write_text("shared-canary-new\n")

    scene.router.activate(scene.load(), 2)
    first.retire()
    renewed, after_key = scene.pools(), [await scene.ask() for _ in NAMES]
    second = scene.router.generation
    both = (tmp_path / "ours.pem").read_bytes() + (tmp_path / "theirs.pem").read_bytes()
    (tmp_path / "both.pem").write_bytes(both)
    scene.router.activate(scene.load(claude_ca="both.pem"), 3)
    second.retire()
    await trio.testing.wait_all_tasks_blocked()
    open_after = scene.claude.open_connections
    after_ca = [await scene.ask() for _ in NAMES]

    assert [got.status for got in (*after_key, *after_ca)] == [200] * 6
    assert renewed == pools
    keys = [fields[b"authorization"][-3:] for _, fields, _ in scene.seen("shared")]
    assert keys == [b"key", b"new", b"new"]
    assert [isinstance(pools[name], Pool) for name in NAMES] == [True, False, False]
    kept = {name for name in NAMES if scene.pools()[name] is pools[name]}
    assert kept == {"plain", "shared"}
    assert open_after == 0
    accepted = len(scene.plain.accepted), len(scene.shared.sessions), len(scene.claude.shaken)
    assert accepted == (1, 1, 2)
    assert await scene.held() == NOTHING


async def test_last_stream_of_a_retired_configuration_closes_its_shared_connection(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """A stream under way goes on to its end; new calls take a connection of the new settings."""
    scene = await start_mixed(nursery, tmp_path, (STREAM_HEAD, b": 1\n\n", 50.0, b": 2\n\n"), CHAT)
    scene.take_turns("shared")
    client = await scene.router.connect()
    body = chat_body(model="mix", stream=True)
    await client.send(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: r\r\nconnection: close\r\n"
        b"content-length: %d\r\n\r\n%b" % (len(body), body)
    )
    await trio.testing.wait_all_tasks_blocked()
    first = scene.router.generation
    chain = (tmp_path / "ours.pem").read_bytes() + (tmp_path / "theirs.pem").read_bytes()
    (tmp_path / "ours.pem").write_bytes(chain)

    scene.router.activate(scene.load(), 2)
    first.retire()
    scene.take_turns("shared")
    got = await scene.ask()
    under_way = scene.shared.open_sessions
    await read_on(client)
    await trio.testing.wait_all_tasks_blocked()

    assert got.status == 200
    assert under_way == 2
    assert [session.is_closed for session in scene.shared.sessions] == [True, False]
    assert first.leases == 0
    assert await scene.held() == NOTHING


async def _h2_client(nursery: trio.Nursery, scene: MixedScene, *, credit: bool) -> H2Client:
    client = H2Client(await scene.router.connect(), gives_credit=credit)
    return await client.start(nursery)


async def test_slow_reader_over_http2_stops_its_backend_stream_alone(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """HTTP/2 on both sides: windows bound what is under way, others go on, leaving resets."""
    event = b"data: " + b"x" * 16_000 + b"\n\n"
    scene = await start_mixed(nursery, tmp_path, (STREAM_HEAD, *[event] * 200), CHAT)
    scene.take_turns("shared")
    client = await _h2_client(nursery, scene, credit=False)
    slow = await client.request(chat_body(model="mix", stream=True))
    await trio.testing.wait_all_tasks_blocked()
    scene.take_turns("shared")

    other = await scene.ask()
    stuck, relayed = scene.shared.calls[0], len(slow.body)
    was_done = stuck.done
    client.connection.abort()
    await trio.testing.wait_all_tasks_blocked()

    assert other.status == 200
    assert not was_done
    assert relayed <= 65_535
    assert stuck.reset == 8
    assert scene.shared.open_sessions == 1
    assert await scene.held() == NOTHING


@pytest.mark.parametrize("name", NAMES)
async def test_client_that_leaves_takes_its_call_along(
    name: str, nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Of a shared connection its stream alone."""
    scene = await start_mixed(nursery, tmp_path, (Act.HANG,))
    scene.plain.answer = scene.claude.answer = b""
    scene.take_turns(name)
    client = await _h2_client(nursery, scene, credit=True)
    await client.request(chat_body(model="mix"))
    await trio.testing.wait_all_tasks_blocked()
    assert len(scene.seen(name)) == 1

    client.connection.close()
    await trio.testing.wait_all_tasks_blocked()

    assert scene.plain.open_connections == scene.claude.open_connections == 0
    if name == "shared":
        assert scene.shared.calls[0].reset == 8
        assert scene.shared.open_sessions == 1
    assert await scene.held() == NOTHING
    [line] = await scene.router.log()
    assert (line["outcome"], line["attempts"]) == ("cancelled", 1)


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("name", NAMES)
async def test_body_that_nobody_reads_is_passed_on_as_it_comes(
    name: str,
    leaves: bool,  # noqa: FBT001  # a case
    nursery: trio.Nursery,
    tmp_path: Path,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Over either HTTP version, with that backend's path; half a body is no request there."""
    scene = await start_mixed(nursery, tmp_path)
    scene.plain.answer = scene.claude.answer = reply(200, b"{}")
    scene.take_turns(name)
    size = 5_000_000
    client = await scene.router.connect()
    head = b"POST /v1/embeddings HTTP/1.1\r\nhost: r\r\nconnection: close\r\n"
    await client.send(head + b"content-length: %d\r\n\r\n" % size + b"x" * 3_000_000)
    if leaves:
        client.close()
    else:
        await client.send(b"x" * 2_000_000)
        assert (await read_on(client)).startswith(b"HTTP/1.1 200")
    await trio.testing.wait_all_tasks_blocked()

    if name == "shared":
        [call] = scene.shared.calls
        assert call.field(b":path") == b"/shared-canary/embeddings"
        assert (call.is_whole, call.reset) == ((False, 8) if leaves else (True, None))
        assert leaves or len(call.body) == size
    else:
        backend = scene.plain if name == "plain" else scene.claude
        assert [len(body) for _, body in backend.seen] == ([] if leaves else [size])
        assert backend.open_connections == (0 if leaves else 1)
    for other in set(NAMES) - {name}:
        assert scene.seen(other) == []
    assert await scene.held() == NOTHING


async def test_drain_lets_streams_of_every_kind_finish(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Shared connections close with their last stream, and the drain ends at once."""
    scene = await start_mixed(nursery, tmp_path, (STREAM_HEAD, b": 1\n\n", 5.0, b": 2\n\n"))
    scene.take_turns("shared")
    client = await _h2_client(nursery, scene, credit=True)
    answers = []
    for _ in range(2):
        scene.take_turns("shared")
        answers.append(await client.request(chat_body(model="mix", stream=True)))
    await trio.testing.wait_all_tasks_blocked()

    await scene.router.router.server.drain()
    scene.router.generation.retire()
    await trio.testing.wait_all_tasks_blocked()

    assert trio.current_time() == pytest.approx(5, abs=1)
    assert all(answer.is_whole for answer in answers)
    assert scene.shared.open_sessions == 0
    assert isinstance(scene.pools()["shared"], H2Pool)
    assert await scene.held() == NOTHING


async def test_stream_that_breaks_is_not_repeated_elsewhere(
    nursery: trio.Nursery, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Behind the first byte nobody else is asked, whatever the others speak."""
    play = (STREAM_HEAD, b'data: {"id":"c","choices":[]}\n\n', 1.0, Reset())
    scene = await start_mixed(nursery, tmp_path, play)
    scene.take_turns("shared")

    await scene.ask(stream=True)

    assert [len(scene.seen(name)) for name in NAMES] == [0, 1, 0]
    assert await scene.held() == NOTHING
