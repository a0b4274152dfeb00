"""The access log: one line per request, its members, and what never stands in it."""

import json
from datetime import UTC, datetime

import pytest
import trio
import trio.testing

from tests.demo.raw_client import ask, chat_body
from tests.fakes.backend import start_backend
from tests.fakes.router import document_of, model_of, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.demo.faults import Fault
from vsr.demo.script import Script
from vsr.network.memory import MemoryNetwork
from vsr.routing.outcome import Terminal
from vsr.telemetry.access_log import _MAX_HELD_LINES, AccessLine, AccessLog

_REFERENCE = """
    component event start_time method path protocol response_code bytes_received bytes_sent
    duration_ms upstream_service_time x_forwarded_for user_agent request_id authority upstream_host
    """
_OURS = """
    response_flags outcome cause attempts listener recipe decision model config_version
    prompt_tokens completion_tokens first_byte_ms
    """
MEMBERS = [*_REFERENCE.split(), *_OURS.split()]
ROUTING = """{
    signals: {keywords: [{name: code, operator: OR, keywords: [python]}]},
    decisions: [{name: code, modelRefs: [{model: alpha}],
      rules: {operator: AND, conditions: [{type: keyword, name: code}]}}]}"""


async def test_line_has_the_references_members_and_ours(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Values as documented: milliseconds, body bytes, the id that the backend saw."""
    network = MemoryNetwork()
    backend = await start_backend(nursery, network, Script(latency_s=0.25))
    router = await start_router(
        nursery, network, document_of(model_of(backend.port), routing=ROUTING)
    )
    body = chat_body("python", model="auto")
    fields = [
        (b"user-agent", b"test/1"),
        (b"x-forwarded-for", b"10.1.1.1, 10.2.2.2"),
        (b"x-request-id", b"id-7"),
    ]

    got = await router.ask(body, target=b"/v1/chat/completions?a=%20b", lines=fields)

    [line] = await router.log()
    started = datetime.fromisoformat(line.pop("start_time")[:26] + "+00:00")
    assert abs((datetime.now(UTC) - started).total_seconds()) < 60
    assert [*MEMBERS[:2], "start_time", *list(line)[2:]] == MEMBERS
    assert line == {
        **dict.fromkeys(("duration_ms", "upstream_service_time", "first_byte_ms"), _ms(250)),
        "component": "gateway",
        "event": "access",
        "method": "POST",
        "path": "/v1/chat/completions?a=%20b",
        "protocol": "HTTP/1.1",
        "response_code": 200,
        "bytes_received": len(body),
        "bytes_sent": len(got.body),
        "x_forwarded_for": "10.1.1.1, 10.2.2.2",
        "user_agent": "test/1",
        "request_id": "id-7",
        "authority": "demo",
        "upstream_host": f"127.0.0.1:{backend.port}",
        "response_flags": "-",
        "outcome": "succeeded",
        "cause": None,
        "attempts": 1,
        "listener": "http",
        "recipe": "default",
        "decision": "code",
        "model": "alpha",
        "config_version": 1,
        "prompt_tokens": 2,
        "completion_tokens": 3,
    }
    assert backend.seen[0].headers.get(b"x-request-id") == b"id-7"


def _ms(milliseconds: float) -> object:
    return pytest.approx(milliseconds, abs=0.01)


async def test_stream_is_logged_when_it_ends(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """With the time of its first byte, and the usage that the Router asked for."""
    network = MemoryNetwork()
    script = Script(latency_s=0.2, chunks=10, chunk_interval_s=1)
    backend = await start_backend(nursery, network, script)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))

    got = await router.ask(chat_body(model="auto", stream=True))

    [line] = await router.log()
    assert line["duration_ms"] == pytest.approx(13_200)
    assert line["first_byte_ms"] == pytest.approx(200)
    assert line["upstream_service_time"] == pytest.approx(200)
    assert line["bytes_sent"] == len(got.body)
    assert b"total_tokens" not in got.body
    assert (line["prompt_tokens"], line["completion_tokens"]) == (3, 10)


async def test_every_request_but_a_probe_has_one_line(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Served, refused, answered by us or not at all, one connection or several."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    document = document_of(model_of(backend.port), listener="api_keys: [k], max_body_bytes: 200")
    router = await start_router(nursery, network, document)
    key = [(b"api-key", b"k")]
    client = await router.connect()

    await ask(client, chat_body(model="auto"), lines=key)
    await ask(client, method=b"GET", target=b"/health")
    await ask(client, method=b"GET", target=b"/v1/models", lines=key)
    await ask(client, chat_body(model="nope"), lines=key)
    await ask(client, method=b"GET", target=b"/ready")
    await ask(client, method=b"GET", target=b"/x", lines=key)
    await ask(client, method=b"GET", target=b"/y")
    await ask(client, b"x" * 201, target=b"/z", lines=key)

    lines = await router.log()
    shown = [(line["path"], line["response_code"], line["outcome"]) for line in lines]
    assert shown == [
        ("/v1/chat/completions", 200, "succeeded"),
        ("/v1/models", 200, "succeeded"),
        ("/v1/chat/completions", 400, "failed"),
        ("/x", 200, "succeeded"),
        ("/y", 401, "failed"),
        ("/z", 413, "failed"),
    ]
    assert [line["upstream_host"] != "" for line in lines] == [True, False, False, True] + [
        False
    ] * 2
    assert [line["attempts"] for line in lines] == [1, 0, 0, 1, 0, 0]


@pytest.mark.parametrize("fault", [None, *Fault])
async def test_secrets_and_texts_never_stand_in_a_line(
    fault: Fault | None,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Field reports X1 and X3: canaries in every place, every error path, every sink."""
    network = MemoryNetwork()
    script = Script(fault=fault, reply="canary-reply {echo}")
    backend = await start_backend(nursery, network, script)
    ref = model_of(
        backend.port, api_key="canary-provider-key", extra_headers="{X-Team: canary-extra}"
    )
    document = document_of(ref, listener="api_keys: [canary-client-key]")
    router = await start_router(nursery, network, document)
    keys = [
        [(b"authorization", b"Bearer canary-client-key"), (b"cookie", b"canary-cookie")],
        [(b"authorization", b"Bearer canary-wrong-key"), (b"api-key", b"canary-wrong")],
    ]
    answers = []

    for lines in keys:
        for stream in (False, True):
            body = chat_body("canary-prompt", model="auto", stream=stream)
            answers.append(await router.ask(body, lines=lines, patience_s=900))
        answers += [
            await router.ask(chat_body("canary-prompt", model="canary-model"), lines=lines),
            await router.ask(b'{"canary-broken', lines=lines),
            await router.ask(b"canary", target=b"/v1/files", lines=lines, patience_s=900),
        ]

    text = await router.log_text()
    assert len(text.splitlines()) == 10
    assert b"canary" not in text
    assert "canary" not in caplog.text
    for got in answers:
        for secret in (b"canary-provider-key", b"canary-extra", b"canary-wrong", b"canary-client"):
            # Another path's echo of what the backend saw is the backend's own answer.
            assert secret not in got.raw or b'"headers":' in got.body
        if got.status >= 400 and got.status != 413:
            assert b"canary" not in got.body


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (b"user-agent", b'\xff\xfe caf\xc3\xa9 "quoted" \\ \t x'),
        (b"x-forwarded-for", b"\xe2\x80\xa8\x7f".replace(b"\x7f", b"")),
        (b"x-request-id", b'"},{"a":"'),
    ],
)
async def test_line_is_one_line_of_json_whatever_a_client_sends(
    field: bytes,
    value: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Nobody forges a second line or breaks the reader."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))

    await router.ask(chat_body(model="auto"), lines=[(field, value)])

    text = await router.log_text()
    assert text.count(b"\n") == 1
    line = json.loads(text)
    name = field.decode().replace("-", "_").replace("x_request", "request")
    assert line[name] == value.decode("latin-1")


def _line() -> AccessLine:
    return AccessLine(
        start_time="", method="GET", path="/", protocol="HTTP/1.1", outcome=Terminal.SUCCEEDED
    )


async def test_lines_leave_in_batches_and_in_order(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A burst is one write; nothing is written while nothing happens."""
    writes: list[tuple[float, bytes]] = []

    async def sink(data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        writes.append((trio.current_time(), data))

    log = AccessLog(sink)
    nursery.start_soon(log.run)
    await trio.sleep(10)
    for path in ("/1", "/2", "/3"):
        line = _line()
        line.path = path
        log.add(line)
    await trio.sleep(10)
    log.add(_line())
    await trio.sleep(10)

    assert [at for at, _ in writes] == [pytest.approx(10.2), pytest.approx(20.2)]
    shown = [json.loads(line)["path"] for line in writes[0][1].splitlines()]
    assert shown == ["/1", "/2", "/3"]
    assert all(data.endswith(b"\n") for _, data in writes)


def test_stuck_sink_costs_bounded_memory() -> None:
    """Beyond the bound lines are dropped and counted."""

    async def sink(_data: bytes) -> None:
        await trio.sleep_forever()

    log = AccessLog(sink)
    line = _line()
    for _ in range(_MAX_HELD_LINES + 10):
        log.add(line)

    assert log.dropped == 10
    assert len(log._held) == _MAX_HELD_LINES


def test_stamp_is_rfc_3339_in_utc_with_nanoseconds() -> None:
    """Also when the second changes, and back."""

    async def sink(_data: bytes) -> None:
        await trio.lowlevel.checkpoint()

    log = AccessLog(sink)

    assert log.stamp(1_700_000_000_000_000_001) == "2023-11-14T22:13:20.000000001Z"
    assert log.stamp(1_700_000_001_999_999_999) == "2023-11-14T22:13:21.999999999Z"
    assert log.stamp(1_700_000_000_500_000_000) == "2023-11-14T22:13:20.500000000Z"


async def test_lines_that_cannot_be_written_are_counted(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """And the log goes on; how it is doing is told by the class of the failure."""
    failures: list[OSError | None] = [OSError(28, "canary"), OSError(28, "canary"), None]
    seen = []

    async def sink(_data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        failure = failures.pop(0)
        if failure is not None:
            raise failure

    log = AccessLog(sink)
    for _ in range(3):
        log.add(_line())
        await log.flush()
        seen.append(log.losses)

    assert [(each.is_losing, each.times) for each in seen] == [(True, 1), (True, 2), (False, 2)]
    assert (log.dropped, log.losses.last) == (2, "OSError")
