"""The trace that a request is part of: what headers say, what backends get, what is sampled."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.sampling import Decision, TraceIdRatioBased
from opentelemetry.trace import get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from vsr.routing.outcome import Attempt
from vsr.routing.trace import (
    Parent,
    Sampler,
    Trace,
    begin_trace,
    join_tracestate,
    new_span_id,
    parse_traceparent,
)

TRACE_ID = b"4bf92f3577b34da6a3ce929d0e0e4736"
SPAN_ID = b"00f067aa0ba902b7"
VALID = b"00-%b-%b-01" % (TRACE_ID, SPAN_ID)
ALWAYS = Sampler(1)
HEX = "0123456789abcdef"
ATTEMPT = Attempt("alpha", "one", "127.0.0.1:1", 0)


def begin(*parents: bytes, states: tuple[bytes, ...] = (), sampler: Sampler = ALWAYS) -> Trace:
    """Return the trace of a request with these header values."""
    lines = [(b"host", b"r"), *((b"traceparent", each) for each in parents)]
    lines += [(b"tracestate", each) for each in states]
    return begin_trace(lines, sampler, random.Random(7))  # noqa: S311  # ids, not secrets


@pytest.mark.parametrize(
    ("value", "is_sampled"),
    [
        (VALID, True),
        (VALID[:-2] + b"00", False),
        (VALID[:-2] + b"02", False),
        (VALID[:-2] + b"ff", True),
        (b"cc" + VALID[2:], True),
        (b"cc" + VALID[2:] + b"-what-the-future-holds", True),
        (b"cc" + VALID[2:] + b"-", True),
    ],
)
def test_traceparent_is_read(value: bytes, *, is_sampled: bool) -> None:
    """Only the last bit of the flags counts; a later version is read as far as ours goes."""
    assert parse_traceparent(value) == Parent(TRACE_ID, SPAN_ID, is_sampled)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"ff" + VALID[2:],
        VALID + b"-00",
        VALID + b"-",
        VALID + b"\n",
        b" " + VALID,
        VALID[:-1],
        VALID + b"0",
        b"cc" + VALID[2:] + b".x",
        VALID.replace(b"-", b"_"),
        VALID.replace(b"f9", b"F9"),
        VALID.replace(b"f9", b"g9"),
        VALID.replace(TRACE_ID, b"0" * 32),
        VALID.replace(SPAN_ID, b"0" * 16),
        VALID + b", " + VALID,
    ],
)
def test_malformed_traceparent_is_none(value: bytes) -> None:
    """Source: W3C Trace Context, 3.2.2 and 4.1."""
    assert parse_traceparent(value) is None


@given(
    st.text(HEX, min_size=32, max_size=32),
    st.text(HEX, min_size=16, max_size=16),
    st.integers(0, 255),
    st.integers(0, 255),
)
def test_every_well_formed_traceparent_is_read(
    trace_id: str, span_id: str, version: int, flags: int
) -> None:
    """And every id of zeros, and the forbidden version, is not."""
    value = f"{version:02x}-{trace_id}-{span_id}-{flags:02x}".encode()

    parent = parse_traceparent(value)

    if version == 0xFF or not int(trace_id, 16) or not int(span_id, 16):
        assert parent is None
    else:
        assert parent == Parent(trace_id.encode(), span_id.encode(), bool(flags & 1))


@given(
    st.binary(max_size=70)
    | st.from_regex(rb"\A[0-9a-fF]{2}-[0-9a-f]{31,33}-[0-9a-f]{15,17}-[0-9a-f]{1,3}[-0a]{0,3}\Z")
)
def test_traceparent_is_read_as_by_opentelemetry(value: bytes) -> None:
    """Whatever the bytes: what is accepted is, and means the same; nothing raises."""
    text = value.decode("latin-1")
    # Its expression is not anchored as RFC tokens are, and takes white space around it.
    context = TraceContextTextMapPropagator().extract({"traceparent": text})
    theirs = get_current_span(context).get_span_context()

    parent = parse_traceparent(value)

    if parent is not None:
        assert theirs.is_valid
        assert (theirs.trace_id, theirs.span_id) == (
            int(parent.trace_id, 16),
            int(parent.span_id, 16),
        )
        assert theirs.trace_flags.sampled == parent.is_sampled


def test_request_goes_on_with_its_clients_trace() -> None:
    """Its span is new, the trace and the state are the client's."""
    trace = begin(VALID, states=(b"a=1", b"b=2"))

    assert (trace.trace_id, trace.parent_id, trace.state) == (TRACE_ID, SPAN_ID, b"a=1,b=2")
    assert trace.span_id not in {SPAN_ID, b""}


@pytest.mark.parametrize("parents", [(), (b"nonsense",), (VALID, VALID)])
def test_request_without_one_valid_parent_begins_a_trace(parents: tuple[bytes, ...]) -> None:
    """And its `tracestate` is not looked at. Source: W3C Trace Context, 3.3.1 and 4.3."""
    trace = begin(*parents, states=(b"a=1",))

    assert trace.trace_id != TRACE_ID
    assert len(trace.trace_id) == 32
    assert (trace.parent_id, trace.state) == (b"", b"")


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ([b"rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"], b"rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
        ([b"a=1 , b=2", b"c=3"], b"a=1 , b=2,c=3"),
        ([b"fw529a3039@dt=FfAbc", b""], b"fw529a3039@dt=FfAbc,"),
        ([b"a=1,nonsense"], b""),
        ([b"A=1"], b""),
        ([b"a=1=2"], b""),
        ([b"a=\xff"], b""),
        ([b" , ,"], b""),
        (
            [b",".join(b"k%d=v" % at for at in range(32))],
            b",".join(b"k%d=v" % at for at in range(32)),
        ),
        ([b",".join(b"k%d=v" % at for at in range(33))], b""),
        ([b"a=" + b"x" * 256] * 9, b""),
    ],
)
def test_tracestate_is_kept_whole_or_dropped(values: list[bytes], state: bytes) -> None:
    """Source: W3C Trace Context, 3.3.1."""
    assert join_tracestate(values) == state


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 1.0])
def test_traces_are_sampled_as_by_opentelemetry(rate: float) -> None:
    """By their id: every process with this rate takes the same ones."""
    theirs, ours = TraceIdRatioBased(rate), Sampler(rate)
    rng = random.Random(7)  # noqa: S311  # ids, not secrets
    ids = [rng.getrandbits(128) for _ in range(1000)]

    taken = [ours.takes(each) for each in ids]

    decisions = [theirs.should_sample(None, each, "x").decision for each in ids]
    assert taken == [each is Decision.RECORD_AND_SAMPLE for each in decisions]
    assert abs(sum(taken) / len(ids) - rate) < 0.05


@pytest.mark.parametrize("rate", [0.0, 1.0])
@pytest.mark.parametrize("is_sampled", [False, True])
def test_client_that_traces_decides(rate: float, *, is_sampled: bool) -> None:
    """Unless nothing is sampled at all, whoever asks."""
    parent = VALID[:-2] + (b"01" if is_sampled else b"00")

    assert begin(parent, sampler=Sampler(rate)).is_sampled is is_sampled
    assert not begin(parent, sampler=Sampler(0, heeds_parent=False)).is_sampled


@pytest.mark.parametrize(("rate", "flags"), [(0, b"00"), (1, b"01")])
def test_attempt_carries_the_context_of_its_own_span(rate: float, flags: bytes) -> None:
    """In place of any other context, behind all other lines, which stay as they are."""
    lines = [
        (b"traceparent", VALID),
        (b"accept", b"x"),
        (b"tracestate", b"z=9"),
        (b"baggage", b"k=v"),
        (b"traceparent", VALID),
    ]
    trace = begin(VALID[:-2] + flags, states=(b"a=1",))
    trace.begin_call("alpha", 0)

    first, second = trace.attempt_lines(ATTEMPT, lines), trace.attempt_lines(ATTEMPT, lines)

    assert first[:2] == [(b"accept", b"x"), (b"baggage", b"k=v")]
    assert [name for name, _ in first[2:]] == [b"traceparent", b"tracestate"]
    assert first[3] == (b"tracestate", b"a=1")
    sent = [parse_traceparent(each[2][1]) for each in (first, second)]
    spans = {each.span_id for each in sent if each is not None}
    assert len(spans | {SPAN_ID, trace.span_id}) == 4
    assert first[2][1].endswith(flags)
    assert len(lines) == 5
    of_call = [each.span_id for call in trace.calls for each in call.attempts]
    assert set(of_call) == (spans if rate else set())


def test_attempt_of_a_client_without_context_gets_its_own_list() -> None:
    """The lines belong to every attempt of the call."""
    lines = [(b"accept", b"x")]
    trace = begin(sampler=Sampler(0))

    carried = trace.attempt_lines(ATTEMPT, lines)

    assert lines == [(b"accept", b"x")]
    assert [name for name, _ in carried] == [b"accept", b"traceparent"]


def test_ids_are_never_zero() -> None:
    """Zeros mean that there is no span."""

    class Zeros(random.Random):  # noqa: S311  # ids, not secrets
        def getrandbits(self, k: int, /) -> int:
            return 0 * k

    assert int(new_span_id(Zeros()), 16)
    assert int(begin_trace((), ALWAYS, Zeros()).trace_id, 16)


def test_calls_side_by_side_keep_their_attempts_apart() -> None:
    """Each on a part of its own, whatever the order in which they go on; the trace is one."""
    trace = begin(b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01", states=(b"vendor=x",))
    one, other = trace.branch(), trace.branch()
    attempts = [Attempt("alpha", "e", "a:1", 0.0) for _ in range(3)]

    one.begin_call("alpha", 1.0)
    other.begin_call("beta", 1.0)
    lines = [
        part.attempt_lines(each, []) for part, each in zip((one, other, one), attempts, strict=True)
    ]

    assert [[each.attempt for each in part.calls[0].attempts] for part in (one, other)] == [
        [attempts[0], attempts[2]],
        [attempts[1]],
    ]
    assert trace.calls == []
    told = [dict(each) for each in lines]
    assert {each[b"traceparent"][:35] for each in told} == {b"00-" + b"a" * 32}
    assert len({each[b"traceparent"] for each in told}) == 3
    assert {each[b"tracestate"] for each in told} == {b"vendor=x"}
