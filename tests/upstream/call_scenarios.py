"""Random configurations, backends and clients for whole calls; plain data that shrinks."""

from collections.abc import Sequence
from enum import Enum, auto
from typing import TypeVar

import attrs
from hypothesis import strategies as st

from tests.engine.stepped_backend import EVENT_STREAM, LAST_CHUNK, Act, chunk
from tests.upstream.raw_backend import reply
from vsr.headers import HeaderLine
from vsr.resources.cluster import Cluster, Endpoint
from vsr.resources.reliability import (
    BreakerLimits,
    CallPolicy,
    CandidateBreaker,
    FallbackPolicy,
    FallbackTrigger,
    LastResort,
    LbPolicy,
    OutlierDetection,
    RetryBudget,
    RetryEvidence,
    RetryOn,
    RetryPolicy,
)

LISTENER_S = 5.0
"""Default of the total and idle timeouts."""
BACKENDS = 4
MODELS = ("alpha", "beta", "gamma")
FIRST_PORT = 1000
LARGE_BYTES = 150_000
"""Of a request that is not written at once."""
ID = b"@@@@"
"""Stands in a play for the number of the call that it answers."""
REFUSAL = b"sorry"


class Read(Enum):
    """How a backend takes a request."""

    WHOLE = auto()
    FIRST_PIECE = auto()
    """It answers without having read a large body."""
    NOTHING = auto()
    """It breaks off as soon as somebody connects."""


@attrs.frozen
class Play:
    """What a backend does with one call."""

    name: str
    steps: Sequence[bytes | float | Act]
    body: bytes | None = None
    """The whole body of its answer; None if the answer never is whole."""
    reads: Read = Read.WHOLE


_BODY = b'{"call":"' + ID + b'"}'
_LONG = ID * 40_000
_REFUSED = b'{"call":"' + ID + b'","text":"' + REFUSAL + b'"}'
_CUT = reply(200, _BODY)[:-1]
_CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def _says(status: int, *lines: HeaderLine) -> Play:
    name = " ".join([str(status), *[f"{key.decode()}={value.decode()}" for key, value in lines]])
    return Play(name, (reply(status, _BODY, *lines),), _BODY)


OK = Play("ok", (reply(200, _BODY),), _BODY)
_ALL = (
    OK,
    _says(503),
    _says(500),
    _says(502),
    _says(429),
    _says(409),
    _says(404),
    _says(503, (b"retry-after", b"1")),
    _says(429, (b"retry-after", b"0")),
    _says(503, (b"retry-after", b"60")),
    _says(503, (b"x-envoy-ratelimited", b"true")),
    Play("reset", (Act.RESET,)),
    Play("reset before the request", (Act.RESET,), reads=Read.NOTHING),
    Play("closed", (Act.CLOSE,)),
    Play("silent", (Act.HANG,)),
    Play("late", (0.3, reply(200, _BODY)), _BODY),
    Play("very late", (3.0, reply(200, _BODY)), _BODY),
    Play("late 503", (0.3, reply(503, _BODY)), _BODY),
    Play("ok, closes", (reply(200, _BODY, (b"connection", b"close")), Act.CLOSE), _BODY),
    Play("half a head", (b"HTTP/1.1 200 OK\r\nx: ", Act.RESET)),
    Play("stalls in the head", (b"HTTP/1.1 200 OK\r\nx: ", Act.HANG)),
    Play("bad head", (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",)),
    Play("not HTTP", (b"hello\r\n\r\n", Act.HANG)),
    Play("body breaks", (_CUT, Act.RESET)),
    Play("body ends early", (_CUT, 0.1, Act.CLOSE)),
    Play("body stalls", (_CUT, Act.HANG)),
    Play("body of 503 stalls", (reply(503, _BODY)[:-1], Act.HANG)),
    Play("late body", (_CUT, 0.4, _BODY[-1:]), _BODY),
    Play("no body yet", (reply(200, _BODY)[: -len(_BODY)], 0.4, _BODY), _BODY),
    Play(
        "trickles",
        (EVENT_STREAM, *[each for _ in range(8) for each in (chunk(ID), 0.2)], LAST_CHUNK),
        ID * 8,
    ),
    Play("chunked", (_CHUNKED + chunk(_BODY), LAST_CHUNK), _BODY),
    Play("bad chunk", (_CHUNKED + chunk(_BODY), 0.1, b"zz\r\n", Act.HANG)),
    Play("ends by closing", (b"HTTP/1.1 200 OK\r\n\r\n", 0.1, _BODY, 0.1, Act.CLOSE), _BODY),
    Play("large", (reply(200, _LONG),), _LONG),
    Play("refusal", (reply(200, _REFUSED),), _REFUSED),
    Play("says more than it should", (reply(200, _BODY) + b"HTTP/1.1 200 OK\r\n\r\n",), _BODY),
    Play("413 at once", (reply(413, _BODY), Act.CLOSE), _BODY, Read.FIRST_PIECE),
    Play("deaf", (Act.HANG,), reads=Read.FIRST_PIECE),
)
PLAYS = {each.name: each for each in _ALL}


class Reading(Enum):
    """What a client does with its answer."""

    WHOLE = auto()
    SLOWLY = auto()
    RELAYED = auto()
    RELAYED_IN_PART = auto()
    ONE_PIECE = auto()
    NOTHING = auto()


class Reach(Enum):
    """What connecting to a backend meets."""

    LISTENING = auto()
    REFUSING = auto()
    UNKNOWN = auto()
    UNREACHABLE = auto()
    SLOW = auto()


@attrs.frozen
class Ask:
    """A client comes."""

    model: int = 0
    chain: FallbackPolicy | None = None
    policy: CallPolicy | None = attrs.field(default=None)
    """In place of the cluster's own."""
    is_large: bool = False
    reading: Reading = Reading.WHOLE
    leaves_behind: int | None = None
    """Steps of any task behind which it leaves."""
    refused_at: int | None = None
    """Which further attempt, from 0, nothing may be spent on."""
    unpreparable: frozenset[str] = frozenset()
    """Models to which its request cannot be said."""
    has_tool_result: bool = False


@attrs.frozen
class Wait:
    """Time passes."""

    seconds: float


@attrs.frozen
class Leave:
    """One of those who are there leaves."""

    who: int


@attrs.frozen
class Turn:
    """A backend can be reached otherwise from now on."""

    backend: int
    reach: Reach


@attrs.frozen
class Reload:
    """Another of the configurations serves from now on."""

    number: int


Step = Ask | Wait | Leave | Turn | Reload
Configuration = tuple[Cluster, ...]


@attrs.frozen
class Scenario:
    """Everything that happens."""

    configurations: Sequence[Configuration]
    plays: Sequence[Sequence[str]]
    """Names of those of each backend, in turn and over again."""
    steps: Sequence[Step]
    seed: int = 7


def endpoint(backend: int, weight: int = 1) -> Endpoint:
    """Return the endpoint that stands for a backend."""
    return Endpoint(f"b{backend}", f"b{backend}.test", FIRST_PORT + backend, weight=weight)


def _maybe(*values: float) -> st.SearchStrategy[float | None]:
    return st.sampled_from([None, None, *values])


_Value = TypeVar("_Value")


@st.composite
def _mostly(
    draw: st.DrawFn, usual: st.SearchStrategy[_Value], *others: st.SearchStrategy[_Value]
) -> _Value:
    """Draw from the first two times out of three."""
    drawn: _Value = draw(usual if draw(st.integers(0, 2)) < 2 else st.one_of(*others))
    return drawn


_EVIDENCE = _mostly(st.just(RetryEvidence.ANY), st.just(RetryEvidence.KNOWN_ZERO))
_retries = st.builds(
    RetryPolicy,
    count=st.sampled_from([2, 0, 1, 3, 4]),
    on=_mostly(
        st.just(frozenset({RetryOn.FIVE_XX, RetryOn.RETRIABLE_STATUS_CODES})),
        st.frozensets(st.sampled_from(RetryOn), min_size=1, max_size=3),
    ),
    status_codes=st.sampled_from([frozenset(), frozenset({404, 429}), frozenset({200})]),
    back_off_base_s=st.sampled_from([0.025, 0.4]),
    back_off_max_s=st.sampled_from([0.25, 2.0]),
    retry_after_max_s=st.sampled_from([5.0, None]),
    evidence=_EVIDENCE,
)
_policies = st.builds(
    CallPolicy,
    per_try_s=_maybe(0.25, 1.0),
    first_byte_s=_maybe(0.2, 1.0),
    retry=_mostly(_retries, st.none()),
    total_s=st.sampled_from([None, 0.0, 0.5, 0.5, 2.0]),
    idle_s=_maybe(0.0, 0.15),
    evidence=_EVIDENCE,
)
_limits = _mostly(
    st.just(BreakerLimits()),
    st.builds(
        BreakerLimits,
        max_connections=st.integers(1, 4),
        max_pending=st.integers(0, 4),
        max_requests=st.sampled_from([4, 1, 2, 1024]),
        max_retries=st.integers(0, 3),
    ),
)
_outliers = st.builds(
    OutlierDetection,
    consecutive_5xx=st.integers(1, 3),
    base_ejection_s=st.sampled_from([0.5, 5.0]),
    max_ejection_s=st.just(10.0),
    max_ejection_percent=st.sampled_from([50, 0, 30, 34, 67, 100]),
    interval_s=st.just(1.0),
)
_endpoints = st.lists(
    st.builds(endpoint, st.integers(0, BACKENDS - 1), st.sampled_from([1, 1, 3])),
    min_size=1,
    max_size=4,
    unique_by=lambda each: each.name,
).map(tuple)


def _clusters(name: str) -> st.SearchStrategy[Cluster]:
    return st.builds(
        Cluster,
        name=st.just(name),
        endpoints=_endpoints,
        upstream_model=st.just(name),
        connect_timeout_s=st.sampled_from([10.0, 0.3]),
        calls=_policies,
        replay_bytes=st.sampled_from([4_194_304, 4_194_304, 100_000]),
        lb_policy=st.sampled_from(LbPolicy),
        breaker=_limits,
        retry_budget=_mostly(
            st.none(),
            st.builds(RetryBudget, st.sampled_from([20.0, 0.0, 100.0]), st.integers(0, 3)),
        ),
        outliers=st.none() | _outliers,
    )


_configuration: st.SearchStrategy[Configuration] = st.tuples(*map(_clusters, MODELS))


@st.composite
def _configurations(draw: st.DrawFn) -> list[Configuration]:
    """Draw configurations that have models in common."""
    found = [draw(_configuration)]
    for _ in range(draw(st.integers(0, 2))):
        other = draw(_configuration)
        stays = draw(st.lists(st.booleans(), min_size=len(MODELS), max_size=len(MODELS)))
        pairs = zip(found[0], other, stays, strict=True)
        found.append(tuple(old if same else new for old, new, same in pairs))
    return found


_chains = st.builds(
    FallbackPolicy,
    enabled=st.sampled_from([True] * 7 + [False]),
    max_attempts=st.sampled_from([3, 2, 4, 1]),
    total_timeout_s=st.sampled_from([30.0, 1.0, 0.3]),
    per_attempt_timeout_s=st.sampled_from([10.0, 0.25]),
    retryable_status_codes=st.sampled_from([frozenset({502, 503, 504}), frozenset({429})]),
    triggers=st.frozensets(st.sampled_from(FallbackTrigger), max_size=3),
    breaker=st.builds(
        CandidateBreaker,
        consecutive_failures=st.integers(0, 2),
        cooldown_s=st.sampled_from([1.0, 30.0]),
        half_open_probes=st.integers(1, 2),
    ),
    last_resort=st.sampled_from([None, LastResort()]),
)
_asks = st.builds(
    Ask,
    model=st.integers(0, len(MODELS) - 1),
    chain=st.none() | _chains,
    policy=_mostly(st.none(), _policies),
    is_large=st.sampled_from([False, False, False, True]),
    reading=st.sampled_from(Reading),
    leaves_behind=_mostly(st.none(), st.integers(1, 60)),
    refused_at=st.sampled_from([None, None, 0, 1]),
    unpreparable=st.sampled_from([frozenset(), frozenset(), frozenset({"beta"})]),
    has_tool_result=st.sampled_from([False, False, False, False, True]),
)
_others: st.SearchStrategy[Step] = st.one_of(
    st.builds(Wait, st.sampled_from([0.01, 0.1, 0.3])),
    st.builds(Wait, st.sampled_from([0.5, 1.0, 6.0])),
    st.builds(Leave, st.integers(0, 9)),
    st.builds(Turn, st.integers(0, BACKENDS - 1), st.sampled_from(Reach)),
    st.builds(Reload, st.integers(0, 2)),
)
_steps: st.SearchStrategy[Step] = _mostly(_asks, _others)
_plays = _mostly(
    st.sampled_from(["503", "reset", "ok", "503 retry-after=1", "late 503", "late"]),
    st.sampled_from(list(PLAYS)),
)
scenarios = st.builds(
    Scenario,
    configurations=_configurations(),
    plays=st.lists(
        st.lists(_plays, min_size=1, max_size=6),
        min_size=BACKENDS,
        max_size=BACKENDS,
    ),
    steps=st.lists(_steps, min_size=8, max_size=30),
    seed=st.integers(0, 9),
)
