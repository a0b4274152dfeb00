"""Two ways to drive a session, and the same record from both."""

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.graph import FakeTasks
from tests.fakes.phase_driver import PhaseDriver, Split, cut, mutated, rendered
from tests.routing.scripted_session import Script, ScriptedEngine, refusal
from vsr.errors import RoutingFailed
from vsr.headers import HeaderLine, Headers
from vsr.routing.effect import (
    MAX_EDITS,
    MAX_HEAD_BYTES,
    Effect,
    HeaderEdit,
    ImmediateResponse,
    apply_headers,
    render_immediate,
)
from vsr.routing.parity.case import Canned, Case
from vsr.routing.parity.in_process import record_in_process
from vsr.routing.parity.normalize import normalized
from vsr.routing.parity.record import Phase, Record
from vsr.routing.parity.result import (
    CaseResult,
    EffectResult,
    EvidenceResult,
    PhaseResults,
    ResponseResult,
    UpstreamResult,
    joined,
    result_of,
)
from vsr.routing.parity.tap import Tap, TappedSession
from vsr.routing.ports import Journal

LENGTH = b"content-length"
STREAM = Effect(stream_response=True)
WHOLE = Canned(200, ((b"x-up", b"1"),), (b"whole answer",))
CUT = Canned(200, (), (b"one ", b"two ", b"three"), is_stream=True, has_length=False)


def case_of(canned: Canned | None = WHOLE, body: bytes = b"question", *lines: HeaderLine) -> Case:
    """Return a request to be answered with `canned`."""
    return Case("c", b"POST", b"/p?q", lines, body, canned)


def edits(*pairs: tuple[bytes, bytes]) -> tuple[HeaderEdit, ...]:
    """Return sets from names and values."""
    return tuple(HeaderEdit(*pair) for pair in pairs)


def scripted(phase: Phase, effect: Effect) -> Script:
    """Return the script in which one phase answers `effect`."""
    script = Script()
    setattr(script, phase, effect)
    return script


async def both(script: Script, case: Case, split: Split | None = None) -> tuple[Record, Record]:
    """Return the record of each driver; each closed its session once."""
    engine = ScriptedEngine(script)
    records = (
        await record_in_process(engine, case, FakeTasks()),
        await PhaseDriver(engine, FakeTasks(), split or Split()).record(case),
    )
    assert script.closed == 2
    return records


async def agreed(script: Script, case: Case | None = None) -> CaseResult:
    """Return the one result that both drivers come to."""
    first, second = [normalized(result_of(each)) for each in await both(script, case or case_of())]
    assert first == second
    return first


def response_of(result: CaseResult) -> ResponseResult:
    """Return the response, which must be there."""
    assert result.response is not None
    return result.response


async def test_case_without_effects_passes_through() -> None:
    """Both messages, lengths included; the key is the client's, the evidence the session's."""
    result = await agreed(Script(), case_of(WHOLE, b"question", (b"x-selected-model", b"own")))

    assert result == CaseResult(
        route="own",
        phases=PhaseResults(EffectResult(), EffectResult(), EffectResult()),
        upstream=UpstreamResult(
            [
                [":authority", "localhost:8899"],
                [":method", "POST"],
                [":path", "/p?q"],
                [":scheme", "http"],
                ["x-selected-model", "own"],
                ["content-length", "<own>"],
                ["x-forwarded-proto", "http"],
                ["x-request-id", "parity-c"],
            ],
            "question",
        ),
        response=ResponseResult(200, [["x-up", "1"], ["content-length", "<own>"]], "whole answer"),
        evidence=EvidenceResult(model="scripted"),
    )


async def test_effects_of_request_phases_make_the_upstream_message() -> None:
    """In turn; the length that completes the second counts its body."""
    script = Script(
        request_headers=Effect(frozenset({b"x-a"}), edits((b"x-c", b"1"))),
        request_body=Effect(
            frozenset({LENGTH}), edits((b":path", b"/new"), (b"x-c", b"2")), last=(LENGTH, b"")
        ).completed(b"6", body=b"answer"),
    )

    result = await agreed(script, case_of(None, b"question", (b"x-a", b"1"), (b"x-b", b"1")))

    assert result.response is None
    assert result.upstream == UpstreamResult(
        [
            [":authority", "localhost:8899"],
            [":method", "POST"],
            [":path", "/new"],
            [":scheme", "http"],
            ["x-b", "1"],
            ["x-forwarded-proto", "http"],
            ["x-request-id", "parity-c"],
            ["x-c", "2"],
            ["content-length", "<own>"],
        ],
        "answer",
    )


@pytest.mark.parametrize(
    ("first", "second", "route"),
    [
        (Effect(), Effect(edits=edits((b"x-selected-model", b"new"))), "own"),
        (Effect(), Effect(clear_route_cache=True), "own"),
        (Effect(edits=edits((b"x-selected-model", b"a"))), Effect(clear_route_cache=True), "own"),
        (
            Effect(),
            Effect(edits=edits((b"x-selected-model", b"new")), clear_route_cache=True),
            "new",
        ),
        (
            Effect(frozenset({b"x"}), clear_route_cache=True),
            Effect(edits=edits((b"x-selected-model", b"new"))),
            "new",
        ),
        (Effect(), Effect(frozenset({b"x-selected-model"}), clear_route_cache=True), ""),
    ],
)
async def test_route_is_read_again_only_once_cleared(
    first: Effect, second: Effect, route: str
) -> None:
    """By an effect that changes headers, too; then the last headers count."""
    script = Script(request_headers=first, request_body=second)

    result = await agreed(script, case_of(WHOLE, b"q", (b"x-selected-model", b"own")))

    assert result.route == route


@pytest.mark.parametrize("phase", list(Phase))
async def test_immediate_answer_ends_the_case_in_any_phase(phase: Phase) -> None:
    """Later phases do not run; before the response, no call is made."""
    result = await agreed(scripted(phase, refusal(418, b"no")))

    ran = [each for each in Phase if getattr(result.phases, each) is not None]
    assert ran == list(Phase)[: list(Phase).index(phase) + 1]
    assert (result.upstream is None) is phase.startswith("request")
    assert response_of(result) == ResponseResult(
        418, [["content-type", "text/plain"], ["content-length", "<own>"]], "no"
    )


async def test_request_without_body_has_no_body_phase() -> None:
    """A phase that did not run is absent."""
    result = await agreed(Script(request_body=refusal(400)), case_of(WHOLE, b""))

    assert result.phases.request_body is None
    assert response_of(result).status == 200


async def test_response_phases_make_the_clients_response() -> None:
    """Headers of both phases, status and whole body."""
    script = Script(
        response_headers=Effect(edits=edits((b":status", b"201"), (b"x-a", b"1"))),
        response_body=Effect(frozenset({LENGTH}), edits((b"x-b", b"2")), b"new"),
    )

    result = await agreed(script)

    assert response_of(result) == ResponseResult(
        201, [["x-up", "1"], ["x-a", "1"], ["x-b", "2"]], "new"
    )
    assert result.phases.response_body == EffectResult(
        [["x-b", "2"]], ["content-length"], body="new"
    )


async def test_streamed_response_is_delivered_chunk_by_chunk() -> None:
    """One effect per chunk and one for the end; a set length is not let through."""
    effect = Effect(edits=edits((LENGTH, b"9"), (b"x", b"1")), stream_response=True)

    result = await agreed(Script(response_headers=effect), case_of(CUT))

    bodies = ["ONE ", "TWO ", "THREE", "<end>"]
    assert result.phases.response_body == [EffectResult(body=body) for body in bodies]
    assert response_of(result) == ResponseResult(200, [["x", "1"]], chunks=bodies)


async def test_stream_that_is_not_asked_for_comes_whole() -> None:
    """The session sees all of it at once."""
    first, second = await both(Script(), case_of(CUT))

    for record in (first, second):
        assert [call.given for call in record.effects(Phase.RESPONSE_BODY)] == [b"one two three"]
        assert record.response is not None
        assert record.response.chunks == [b"one two three"]


@pytest.mark.parametrize("effect", [STREAM, Effect()])
async def test_session_that_wants_no_body_is_not_shown_it_in_process(effect: Effect) -> None:
    """A proxy may show it all the same; what comes out is not touched."""
    script = Script(response_headers=effect, wants_response_body=False)

    first, second = await both(script, case_of(CUT))

    assert first.effects(Phase.RESPONSE_BODY) == []
    assert second.effects(Phase.RESPONSE_BODY)
    assert joined(result_of(first)).response == ResponseResult(200, body="one two three")


@pytest.mark.parametrize(
    ("method", "canned"), [(b"HEAD", WHOLE), (b"POST", Canned(204, (), (b"",), has_length=False))]
)
async def test_response_without_body_has_no_body_phase(method: bytes, canned: Canned) -> None:
    """Even if the session asked for the stream."""
    case = Case("c", method, b"/", (), canned=canned)

    result = await agreed(Script(response_headers=STREAM), case)

    assert result.phases.response_body is None
    assert (response_of(result).status, response_of(result).body) == (canned.status, "")


@pytest.mark.parametrize(
    ("phase", "effect"),
    [
        (Phase.REQUEST_BODY, Effect(frozenset(b"x-%d" % n for n in range(MAX_EDITS + 1)))),
        (Phase.REQUEST_BODY, Effect(body=b"longer than the client's")),
        (Phase.RESPONSE_HEADERS, Effect(edits=edits((b"x", b"a" * MAX_HEAD_BYTES)))),
        (Phase.RESPONSE_BODY, Effect(body=b"longer than the backend's")),
    ],
)
async def test_effect_that_cannot_be_applied_is_recorded_as_a_failure(
    phase: Phase, effect: Effect
) -> None:
    """With what came before it; nothing is delivered."""
    result = await agreed(scripted(phase, effect))

    assert result.error == "routing_error"
    assert result.response is None
    assert result.evidence == EvidenceResult(model="scripted")


async def test_session_is_opened_before_the_body_is_known() -> None:
    """By the phase driver: it sees the body whole in its phase, whatever pieces it came in."""
    script = Script()

    await PhaseDriver(ScriptedEngine(script), FakeTasks(), Split((1, 5))).record(case_of())

    assert script.bodies == [b"", b"question"]


async def test_listening_in_leaves_the_engine_as_it_was() -> None:
    """Other sessions of it are not noted."""
    engine = ScriptedEngine(Script())
    record = await record_in_process(engine, case_of(), FakeTasks())
    noted = len(record.calls)

    await engine.plan(case_of().request(b"other"), FakeTasks(), Journal())

    assert "open" not in vars(engine)
    assert len(record.calls) == noted


async def test_what_else_a_session_has_is_reached_through_the_tap() -> None:
    """An engine may use more of its own sessions than the port names."""
    tap = Tap(ScriptedEngine(Script(closed=7)), Record("c"))

    plan = await tap.engine.plan(case_of().request(b"body"), FakeTasks(), Journal())

    assert isinstance(plan.session, TappedSession)
    assert plan.session.script == tap.engine.script  # type: ignore[attr-defined]  # the double's own
    with pytest.raises(AttributeError):
        plan.session.nothing  # noqa: B018  # the access is the act


_places = st.lists(st.integers(0, 20), max_size=5)


@given(_places, _places)
def test_split_of_the_bodies_does_not_show(request: list[int], response: list[int]) -> None:
    """But in how much is delivered at a time."""
    script = Script(response_headers=STREAM)
    results = []

    async def run() -> None:
        driver = PhaseDriver(ScriptedEngine(script), FakeTasks(), Split(request, response))
        results.append(joined(result_of(await driver.record(case_of(CUT)))))

    trio.run(run)

    assert script.bodies == [b"", b"question"]
    assert response_of(results[0]) == ResponseResult(200, body="ONE TWO THREE<end>")


@given(st.binary(max_size=12), _places)
def test_pieces_make_up_the_body_and_none_is_empty(body: bytes, places: list[int]) -> None:
    """A proxy delivers no empty piece but the last."""
    pieces = cut(body, places)

    assert b"".join(pieces) == body
    assert all(pieces)
    assert len(pieces) <= len(places) + 1


_names = st.sampled_from(
    [b"x-a", b"x-b", b"x-c", b"host", b":path", b":method", b":status", b"x-envoy-a", LENGTH]
)
_values = st.sampled_from([b"", b"1", b"200", b"199"])
_effects = st.builds(
    Effect,
    st.frozensets(_names),
    st.lists(st.builds(HeaderEdit, _names, _values, st.booleans()), max_size=6).map(tuple),
)
_plain = st.tuples(_names.filter(lambda name: name[:1] != b":"), _values)


@given(effect=_effects, lines=st.lists(_plain, max_size=8), is_streamed=st.booleans())
@settings(max_examples=300)
def test_proxy_applies_an_effect_as_routing_does(
    effect: Effect, lines: list[HeaderLine], *, is_streamed: bool
) -> None:
    """The rules are written twice, and say the same."""
    before = [(b":method", b"GET"), (b":path", b"/"), (b":scheme", b"http"), *lines]
    headers = Headers(before.copy())

    apply_headers(headers, effect, streaming=is_streamed)

    assert mutated(before, effect, is_streamed=is_streamed) == headers.lines


@pytest.mark.parametrize(
    "effect",
    [
        Effect(frozenset(b"x-%d" % index for index in range(MAX_EDITS + 1))),
        Effect(edits=tuple(HeaderEdit(b"x", b"") for _ in range(MAX_EDITS + 1))),
        Effect(edits=edits((b"x", b"a" * MAX_HEAD_BYTES))),
        Effect(edits=tuple(HeaderEdit(b"x-%d" % index, b"") for index in range(MAX_EDITS))),
    ],
)
def test_proxy_refuses_what_routing_refuses(effect: Effect) -> None:
    """Too many changes, too many lines, too many bytes."""
    lines = [(b"y", b"1")]

    with pytest.raises(RoutingFailed):
        apply_headers(Headers(lines.copy()), effect)
    with pytest.raises(RoutingFailed):
        mutated(lines, effect)


@given(
    status=st.integers(0, 599),
    effect=_effects,
    body=st.sampled_from([b"", b"body"]),
    has_type=st.booleans(),
)
def test_proxy_renders_an_immediate_answer_as_routing_does(
    status: int, effect: Effect, body: bytes, *, has_type: bool
) -> None:
    """Its length and type by its own body."""
    kind = (HeaderEdit(b"content-type", b"a/b"),) if has_type else ()
    answer = ImmediateResponse(status, (*effect.edits, *kind), body)

    shown = rendered(answer)

    assert (shown.status, shown.lines) == render_immediate(answer)
    assert shown.chunks == [body]
