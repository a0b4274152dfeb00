"""What backends are told of a trace, sampled or not; and that tracing harms nobody."""

from collections.abc import Callable

import attrs
import pytest
import trio
import trio.testing

from tests.demo.raw_client import CHAT, chat_body
from tests.fakes.router import document_of, model_of, start_router
from tests.fakes.spans import TRACED
from tests.fakes.traced import BUSY, CLIENT, FINE, SPAN_ID, TRACE_ID, start_traced
from tests.upstream.raw_backend import RawBackend
from vsr.http.h1_client import encode_request
from vsr.network.memory import MemoryNetwork
from vsr.routing.trace import parse_traceparent
from vsr.telemetry.losses import Losses
from vsr.telemetry.spans import SpanTree


async def test_each_retry_has_a_span_and_a_context_of_its_own(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A call that succeeds in the end has not failed, but its first attempt has."""
    answers = iter([BUSY, BUSY, FINE])
    bench = await start_traced(
        nursery, lambda *_: next(answers), reliability="{retry_count: 2, retry_on: 5xx}"
    )

    await bench.ask("alpha", *CLIENT)

    assert bench.recorder.tree() == [
        "request 200",
        "  upstream.request alpha 200",
        "    upstream.attempt alpha 1 backend-1 5xx 503 !status",
        "    upstream.attempt alpha 2 backend-1 5xx 503 !status",
        "    upstream.attempt alpha 3 backend-1 2xx 200",
    ]
    ids = bench.attempt_ids()
    assert len(set(ids)) == 3
    assert bench.parents() == [f"00-{TRACE_ID}-{each}-01" for each in ids]
    for head, _ in bench.backends[0].seen:
        assert [name for name, _ in head.lines].count(b"traceparent") == 1


@pytest.mark.parametrize("value", [b"nonsense", b"00-" + b"0" * 32 + b"-" + b"1" * 16 + b"-01"])
async def test_malformed_traceparent_begins_a_new_trace(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, value: bytes
) -> None:
    """The request is served; the backend sees neither the bad value nor the state behind it."""
    bench = await start_traced(nursery, FINE)

    got = await bench.ask("alpha", (b"traceparent", value), (b"tracestate", b"a=1"))

    assert got.status == 200
    assert bench.recorder.spans[0].parent is None
    [(head, _)] = bench.backends[0].seen
    assert b"tracestate" not in head.fields
    assert parse_traceparent(head.fields[b"traceparent"]) is not None


@pytest.mark.parametrize(
    ("sampling", "flags", "spans"),
    [
        ("{type: always_on}", b"00", 0),
        ("{type: always_on}", b"01", 3),
        ("{type: probabilistic, rate: 0}", b"", 0),
        ("{type: probabilistic, rate: 0}", b"01", 3),
        ("{type: probabilistic, rate: 1}", b"", 3),
        ("{type: always_off}", b"01", 0),
    ],
)
async def test_request_that_is_not_sampled_still_names_its_spans(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    sampling: str,
    flags: bytes,
    spans: int,
) -> None:
    """In a `traceparent` that says so: nobody behind us records a torso."""
    bench = await start_traced(
        nursery, FINE, tracing=f"{{exporter: {{type: stdout}}, sampling: {sampling}}}"
    )
    value = f"00-{TRACE_ID}-{SPAN_ID}-".encode() + flags

    await bench.ask("alpha", *([(b"traceparent", value)] if flags else []))

    assert len(bench.recorder.spans) == spans
    [sent] = bench.parents()
    parent = parse_traceparent(sent.encode())
    assert parent is not None
    assert parent.is_sampled is bool(spans)
    assert parent.span_id.decode() != SPAN_ID
    assert (parent.trace_id.decode() == TRACE_ID) is bool(flags)


async def test_retries_of_a_request_that_is_not_sampled_have_ids_of_their_own(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Propagation does not depend on who records."""
    bench = await start_traced(
        nursery,
        BUSY,
        reliability="{retry_count: 2, retry_on: 5xx}",
        tracing="{exporter: {type: stdout}, sampling: {type: always_off}}",
    )

    await bench.ask("alpha", *CLIENT)

    assert len(bench.parents()) == len(set(bench.parents())) == 3
    assert all(each.endswith("-00") for each in bench.parents())


async def test_without_tracing_the_clients_context_passes(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """As any header does, and nothing is opened."""
    bench = await start_traced(nursery, FINE, tracing="{enabled: false}")

    await bench.ask("alpha", *CLIENT)

    [(head, _)] = bench.backends[0].seen
    assert [(name, head.fields[name]) for name, _ in CLIENT] == CLIENT
    assert (bench.recorder.opened, bench.recorder.spans) == ([], ())


async def test_probe_is_not_traced(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It is no request of anybody's."""
    bench = await start_traced(nursery, FINE)

    for target in (b"/health", b"/ready"):
        assert (await bench.router.ask(target=target, method=b"GET")).status == 200
    await trio.testing.wait_all_tasks_blocked()

    assert bench.recorder.spans == ()


async def test_drain_reaches_the_gateway(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What stands before it passes that on: it is not ready any more."""
    bench = await start_traced(nursery, FINE)

    await bench.router.router.server.drain()

    assert bench.router.router.gateway.is_draining


@attrs.define
class BrokenSink:
    """A sink of which nothing works."""

    close: Callable[[], None]
    losses: Losses = attrs.field(factory=Losses)

    def add(self, tree: SpanTree) -> None:
        """Fail."""
        raise RuntimeError(tree)


@pytest.mark.parametrize("is_stuck", [False, True])
async def test_sink_that_fails_or_hangs_harms_nobody(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
    *,
    is_stuck: bool,
) -> None:
    """Requests are served, and the Router ends in time."""
    network = MemoryNetwork()
    backend = await RawBackend(network, FINE).start(nursery)

    def close() -> None:
        if is_stuck:
            trio.from_thread.run(trio.sleep_forever)
        raise OSError

    document = f"{document_of(model_of(backend.port))}\n{TRACED}"
    started_at = trio.current_time()
    async with trio.open_nursery() as life:
        router = await start_router(life, network, document, open_spans=lambda _: BrokenSink(close))
        answers = [await router.ask(chat_body(model="alpha")) for _ in range(2)]
        await router.log()
        life.cancel_scope.cancel()

    assert [each.status for each in answers] == [200, 200]
    assert trio.current_time() - started_at <= 2.5
    assert "a trace is lost" in caplog.text


async def test_waiting_client_bytes_are_those_of_an_untraced_router(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Tracing adds nothing to what clients get."""
    texts = []
    for tracing in ("{enabled: false}", "{exporter: {type: stdout}}"):
        async with trio.open_nursery() as life:
            bench = await start_traced(life, FINE, tracing=tracing)
            connection = await bench.router.connect()
            body = chat_body(model="alpha")
            line = (b"x-request-id", b"r")
            await connection.send(encode_request(b"POST", CHAT, b"r", [line], len(body)) + body)
            texts.append(await connection.receive())
            life.cancel_scope.cancel()

    names = [[line.partition(b":")[0] for line in text.split(b"\r\n")] for text in texts]
    assert names[0] == names[1]
