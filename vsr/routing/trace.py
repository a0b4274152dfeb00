"""The trace that a request is part of: its context in headers, the ids of its spans, sampling.

Source: W3C Trace Context (level 1), sections 3.2 `traceparent` and 3.3 `tracestate`.
"""

import random
import re
from collections.abc import Sequence

import attrs
import msgspec

from vsr.headers import HeaderLine
from vsr.routing.outcome import Attempt

TRACEPARENT = b"traceparent"
TRACESTATE = b"tracestate"
_CONTEXT = frozenset({TRACEPARENT, TRACESTATE})
_PARENT = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]*)?")
_MEMBER = re.compile(
    rb"[ \t]*(?:[a-z0-9][a-z0-9_*/@-]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,256})?[ \t]*"
)
"""One member of a `tracestate`, or the empty one that is allowed between commas."""
_MAX_MEMBERS = 32
_MAX_STATE_BYTES = 2048
"""Ours: the RFC wants 512 kept at least."""
_NO_VERSION = b"ff"
_FIRST_VERSION = b"00"
_SAMPLED = 1
_ID_SPACE = 1 << 64


class Parent(msgspec.Struct, frozen=True, gc=False):
    """The span that a request came from, as its client says."""

    trace_id: bytes
    """32 hexadecimal digits."""
    span_id: bytes
    """16 hexadecimal digits."""
    is_sampled: bool


class TracedAttempt(msgspec.Struct, gc=False):
    """An attempt of a sampled request, and the id of its span."""

    attempt: Attempt
    span_id: bytes


class TracedCall(msgspec.Struct):
    """One call to a model with its attempts, of a sampled request."""

    cluster: str
    span_id: bytes
    started_at: float
    """Monotonic seconds."""
    attempts: list[TracedAttempt] = []


class Trace(msgspec.Struct, eq=False):
    """One request's part of a trace."""

    trace_id: bytes
    """32 hexadecimal digits."""
    span_id: bytes
    """Of the request's own span, 16 hexadecimal digits."""
    is_sampled: bool
    rng: random.Random
    """Gives the ids of further spans."""
    parent_id: bytes = b""
    """The client's span; empty where the trace begins here."""
    state: bytes = b""
    """The client's `tracestate`."""
    calls: list[TracedCall] = []
    """Of a request that is sampled; empty otherwise."""

    def branch(self) -> "Trace":
        """Return the part of a call that is made beside others, whose attempts are its own."""
        return Trace(
            self.trace_id, self.span_id, self.is_sampled, self.rng, self.parent_id, self.state
        )

    def begin_call(self, cluster: str, now: float) -> None:
        """Take note of a call that is about to be sent; its attempts follow."""
        if self.is_sampled:
            self.calls.append(TracedCall(cluster, new_span_id(self.rng), now))

    def attempt_lines(self, attempt: Attempt, lines: list[HeaderLine]) -> list[HeaderLine]:
        """Return an attempt's header lines with the context of its own span, and no other."""
        span_id = new_span_id(self.rng)
        if self.is_sampled:
            self.calls[-1].attempts.append(TracedAttempt(attempt, span_id))
        if _CONTEXT.isdisjoint(dict(lines)):
            carried = lines.copy()
        else:
            carried = [line for line in lines if line[0] not in _CONTEXT]
        flags = b"01" if self.is_sampled else b"00"
        carried.append((TRACEPARENT, b"00-%b-%b-%b" % (self.trace_id, span_id, flags)))
        if self.state:
            carried.append((TRACESTATE, self.state))
        return carried


@attrs.frozen
class Sampler:
    """Decides which requests are sampled.

    Source: OpenTelemetry specification, Trace SDK, `ParentBased` and `TraceIdRatioBased`.
    """

    rate: float
    """From 0 to 1; of requests that begin a trace."""
    heeds_parent: bool = True
    """Whether a trace that has begun elsewhere is sampled here as it is there."""
    _bound: int = attrs.field(init=False)

    @_bound.default
    def _first_not_sampled(self) -> int:
        return round(self.rate * _ID_SPACE)

    def takes(self, trace_id: int) -> bool:
        """Return whether a trace is sampled: its id decides, so that all with this rate agree."""
        return trace_id % _ID_SPACE < self._bound

    def takes_on(self, parent: Parent) -> bool:
        """Return whether a trace is sampled that has begun elsewhere."""
        return parent.is_sampled if self.heeds_parent else self.takes(int(parent.trace_id, 16))


def begin_trace(lines: Sequence[HeaderLine], sampler: Sampler, rng: random.Random) -> Trace:
    """Return the trace of a request with these header lines: the client's, or a new one."""
    parents = [value for name, value in lines if name == TRACEPARENT]
    parent = parse_traceparent(parents[0]) if len(parents) == 1 else None
    if parent is None:
        number = rng.getrandbits(128) or 1
        return Trace(b"%032x" % number, new_span_id(rng), sampler.takes(number), rng)
    states = [value for name, value in lines if name == TRACESTATE]
    return Trace(
        parent.trace_id,
        new_span_id(rng),
        sampler.takes_on(parent),
        rng,
        parent.span_id,
        join_tracestate(states) if states else b"",
    )


def parse_traceparent(value: bytes) -> Parent | None:
    """Return what a `traceparent` says, None if it is malformed.

    A version that we don't know is read as far as ours goes.
    """
    found = _PARENT.fullmatch(value)
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == _NO_VERSION or (version == _FIRST_VERSION and more is not None):
        return None
    if not (trace_id.strip(b"0") and span_id.strip(b"0")):
        return None
    return Parent(trace_id, span_id, is_sampled=bool(int(flags, 16) & _SAMPLED))


def join_tracestate(values: Sequence[bytes]) -> bytes:
    """Return the lines of a `tracestate` as one; empty if any member is malformed."""
    state = b",".join(values)
    if len(state) > _MAX_STATE_BYTES:
        return b""
    members = [each for each in state.split(b",") if each.strip(b" \t")]
    if len(members) > _MAX_MEMBERS or not all(map(_MEMBER.fullmatch, members)):
        return b""
    return state if members else b""


def new_span_id(rng: random.Random) -> bytes:
    """Return 16 hexadecimal digits, not all of them 0."""
    # Faster than a range that leaves 0 out; that it comes up is as likely as a collision.
    return b"%016x" % (rng.getrandbits(64) or 1)
