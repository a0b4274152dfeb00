"""What the access log tells of a request that a graph answers, however it ends."""

from typing import Any

import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.graph_scene import GraphScene, calls_of, said, start_graph
from tests.fakes.h2_client import reset
from tests.faults.moments import request_of
from tests.upstream.scenes import OK, SILENT, Play, failing
from vsr.engine.session import RoutingSession
from vsr.graph.nodes.respond import RespondNode
from vsr.network.memory import Fault
from vsr.routing.outcome import Outcome

PARALLEL = """
    {id: panel, type: parallel, over: [alpha, beta, gamma], as: model, on_error: skip,
        do: [{id: answer, type: call, model: $model}]},
    {id: first, type: aggregate, strategy: first_success, from: $panel},
    {type: respond, from: $first}"""
SEQUENCE = """
    {id: draft, type: call, model: alpha},
    {id: final, type: call, model: beta},
    {type: respond, from: $final}"""
TAIL = """
    {id: draft, type: call, model: alpha},
    {id: final, type: call, model: beta, stream: tail},
    {type: respond, from: $final}"""
LABEL = ("default", "hard", None)


def label_of(line: dict[str, Any]) -> tuple[object, ...]:
    """Return what the line calls the request."""
    return line["recipe"], line["decision"], line["model"]


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> list[Outcome]:
    """Return the outcomes that sessions, and so observers, are told of."""
    told: list[Outcome] = []
    finish = RoutingSession.finish

    def noting(session: RoutingSession, outcome: Outcome) -> None:
        told.append(outcome)
        finish(session, outcome)

    monkeypatch.setattr(RoutingSession, "finish", noting)
    return told


async def _leave(scene: GraphScene, nursery: trio.Nursery, http: int) -> None:
    """Ask over this version of HTTP, and leave after a second."""
    if http == 1:
        client = await scene.begin()
        await trio.sleep(1)
        client.close()
        return
    h2 = await scene.begin_h2(nursery)
    await trio.sleep(1)
    await h2.send(reset(1))


@pytest.mark.parametrize("http", [1, 2])
async def test_client_that_leaves_a_parallel_is_told_with_every_call(
    http: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    outcomes: list[Outcome],
) -> None:
    """What was answered keeps its usage; what was cut off is unknown, not zero."""
    scene = await start_graph(nursery, PARALLEL, [(said(),)], [SILENT], [failing(503)])

    await _leave(scene, nursery, http)

    line = await scene.line()
    assert (line["outcome"], line["cause"]) == ("cancelled", "client_gone")
    assert (line["response_flags"], line["attempts"]) == ("DC", 3)
    assert (label_of(line), line["algorithm"]) == (LABEL, "tested")
    assert calls_of(line, "step", "model", "outcome", "cause", "prompt_tokens") == [
        ("panel[0]/answer", "alpha", "succeeded", None, 3),
        ("panel[1]/answer", "beta", "cancelled", "client_gone", None),
        ("panel[2]/answer", "gamma", "failed", None, None),
    ]
    assert [each["attempts"] for each in line["calls"]] == [
        [_try("succeeded", status=200)],
        [_try("cancelled", "client_gone", error="cancelled")],
        [_try("failed", status=503)],
    ]
    assert (line["prompt_tokens"], line["completion_tokens"]) == (None, None)
    [outcome] = outcomes
    assert (outcome.terminal, outcome.cause) == ("cancelled", "client_gone")
    assert len(outcome.attempts) == 3


def _try(
    outcome: str, cause: str | None = None, *, status: int | None = None, error: str | None = None
) -> dict[str, object]:
    told = {"outcome": outcome, "cause": cause, "status": status, "error": error}
    return {"endpoint": "backend-1", **told}


async def test_graphs_deadline_in_a_sequential_call(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, outcomes: list[Outcome]
) -> None:
    """The client is told in time; the log says what a plain call's deadline says."""
    scene = await start_graph(
        nursery, SEQUENCE, [(said(),)], [SILENT], limits="limits: {timeout: 3s}"
    )

    got = await scene.ask()

    line = await scene.line()
    assert (got.status, line["response_code"], line["response_flags"]) == (504, 504, "UT")
    assert (line["outcome"], line["cause"], line["attempts"]) == ("timed_out", "deadline", 2)
    assert label_of(line) == LABEL
    assert calls_of(line, "step", "outcome", "error", "duration_ms") == [
        ("draft", "succeeded", None, 0),
        ("final", "timed_out", "deadline_exceeded", 3000),
    ]
    assert [(each.terminal, each.cause) for each in outcomes] == [("timed_out", "deadline")]


COMMENTED = "limits: {timeout: 5s}, stream: {progress: true, keep_alive_after: 1s}"


@pytest.mark.parametrize(
    ("second", "leaves_at_s", "told"),
    [
        (SILENT, 2.5, ("cancelled", "client_gone", "DC", 2, 200)),
        (SILENT, None, ("timed_out", "deadline", "UT", 2, 504)),
        (failing(503), None, ("failed", None, "-", 2, 502)),
        ((said(),), None, ("succeeded", None, "-", 2, 200)),
    ],
    ids=["client gone", "deadline", "failure", "answer"],
)
async def test_client_that_is_told_of_the_graph_is_accounted_for_all_the_same(
    second: Play,
    leaves_at_s: float | None,
    told: tuple[object, ...],
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    outcomes: list[Outcome],
) -> None:
    """Every call once, with its own end, though the graph runs behind the plan."""
    del autojump_clock
    scene = await start_graph(nursery, SEQUENCE, [(said(),)], [second], limits=COMMENTED)

    body = chat_body(model="auto", stream=True)
    if leaves_at_s is None:
        await scene.ask(body=body)
    else:
        client = await scene.router.connect()
        await client.send(request_of(body))
        await trio.sleep(leaves_at_s)
        client.close()

    line = await scene.line()
    names = ("outcome", "cause", "response_flags", "attempts", "response_code")
    assert tuple(line[name] for name in names) == told
    assert label_of(line)[:2] == LABEL[:2]
    assert calls_of(line, "step", "outcome")[0] == ("draft", "succeeded")
    assert calls_of(line, "step", "outcome")[1] == ("final", told[0])
    assert [outcome.terminal for outcome in outcomes] == [told[0]]


@pytest.mark.parametrize("http", [1, 2])
async def test_drain_that_has_no_patience_left(
    http: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    outcomes: list[Outcome],
) -> None:
    """It ends the call that is under way, and is its cause."""
    scene = await start_graph(nursery, SEQUENCE, [(said(),)], [SILENT])
    if http == 1:
        await scene.begin()
    else:
        await scene.begin_h2(nursery)
    await trio.sleep(1)

    scene.router.router.server.force_end()

    line = await scene.line()
    assert (line["outcome"], line["cause"], line["attempts"]) == ("cancelled", "drain", 2)
    assert label_of(line) == LABEL
    assert calls_of(line, "step", "outcome", "cause") == [
        ("draft", "succeeded", None),
        ("final", "cancelled", "drain"),
    ]
    assert [(each.terminal, each.cause) for each in outcomes] == [("cancelled", "drain")]


async def test_budget_that_refuses_a_call(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, outcomes: list[Outcome]
) -> None:
    """The refused call was never started; what was spent before is known."""
    scene = await start_graph(nursery, SEQUENCE, [(said(),)], [OK], limits="limits: {max_hops: 1}")

    got = await scene.ask()

    line = await scene.line()
    assert got.status == 429
    assert (line["outcome"], line["cause"], line["attempts"]) == ("failed", "budget", 1)
    assert (label_of(line), line["prompt_tokens"]) == (LABEL, 3)
    assert calls_of(line, "step", "outcome") == [("draft", "succeeded")]
    assert [(each.terminal, each.cause) for each in outcomes] == [("failed", "budget")]


async def test_call_that_fails_the_graph(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """With its status and code; each try of it stands there."""
    scene = await start_graph(
        nursery,
        SEQUENCE,
        [failing(503)],
        reliability="{retry_count: 1, retry_on: 5xx, retry_back_off_base: 1ms}",
    )

    await scene.ask()

    line = await scene.line()
    assert (line["outcome"], line["cause"], line["attempts"]) == ("failed", None, 2)
    assert label_of(line) == LABEL
    assert calls_of(line, "step", "outcome", "status", "error") == [
        ("draft", "failed", 503, "call_failed")
    ]
    assert line["calls"][0]["attempts"] == [_try("failed", status=503)] * 2


async def test_bug_in_a_graph_is_told_with_the_calls_before_it(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
    outcomes: list[Outcome],
) -> None:
    """What fails without being a failure of ours loses no evidence either."""
    scene = await start_graph(nursery, SEQUENCE, [(said(),)], [(said(),)])
    _break_respond(monkeypatch)

    got = await scene.ask()

    line = await scene.line()
    assert (got.status, line["outcome"], line["attempts"]) == (500, "failed", 2)
    assert (label_of(line), line["prompt_tokens"]) == (LABEL, 6)
    assert calls_of(line, "outcome") == [("succeeded",), ("succeeded",)]
    assert [each.terminal for each in outcomes] == ["failed"]


def _break_respond(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(self: RespondNode, ctx: object) -> None:
        await trio.lowlevel.checkpoint()
        raise ZeroDivisionError

    monkeypatch.setattr(RespondNode, "run", run)


@pytest.mark.parametrize("has_usage", [True, False])
async def test_answer_tells_all_calls_and_their_sum(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, *, has_usage: bool
) -> None:
    """One backend that does not say what it used leaves the sum unknown."""
    scene = await start_graph(nursery, SEQUENCE, [(said(),)], [(said(has_usage=has_usage),)])

    got = await scene.ask()

    line = await scene.line()
    assert (got.status, line["outcome"], line["cause"]) == (200, "succeeded", None)
    assert label_of(line) == ("default", "hard", "beta")
    assert line["prompt_tokens"] == (6 if has_usage else None)
    assert calls_of(line, "prompt_tokens") == [(3,), (3 if has_usage else None,)]
    assert line["calls_dropped"] == 0


async def test_call_that_the_router_makes_for_a_graph_is_one_of_its_calls(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The line's tokens are those of all calls."""
    scene = await start_graph(nursery, TAIL, [(said(),)], [(said(),)])

    await scene.ask()

    line = await scene.line()
    assert (line["outcome"], line["attempts"], line["prompt_tokens"]) == ("succeeded", 2, 6)
    assert label_of(line) == ("default", "hard", "beta")
    assert calls_of(line, "step", "model", "outcome", "status") == [
        ("draft", "alpha", "succeeded", 200),
        ("final", "beta", "succeeded", 200),
    ]


async def test_client_that_leaves_the_last_call(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Which the Router makes: it is cancelled, what came before is kept."""
    scene = await start_graph(nursery, TAIL, [(said(),)], [SILENT])

    await _leave(scene, nursery, 1)

    line = await scene.line()
    assert (line["outcome"], line["cause"], line["attempts"]) == ("cancelled", "client_gone", 2)
    assert calls_of(line, "step", "outcome", "cause", "prompt_tokens") == [
        ("draft", "succeeded", None, 3),
        ("final", "cancelled", "client_gone", None),
    ]


async def test_backend_that_cannot_be_reached_has_surely_used_nothing(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """That is known, unlike what a backend used that does not say."""
    scene = await start_graph(
        nursery,
        "{id: draft, type: call, model: alpha, fallback: [beta]}, {type: respond, from: $draft}",
        [OK],
        [(said(),)],
    )
    scene.router.network.faults["alpha.test"] = Fault.UNKNOWN_HOST

    await scene.ask()

    line = await scene.line()
    assert calls_of(line, "outcome", "error", "prompt_tokens") == [
        ("failed", "no_healthy_endpoint", 0),
        ("succeeded", None, 3),
    ]
    assert line["prompt_tokens"] == 3


@pytest.mark.parametrize("is_cut", [True, False])
async def test_plain_request_has_no_calls(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock, *, is_cut: bool
) -> None:
    """Its line is what it was."""
    scene = await start_graph(nursery, SEQUENCE, [SILENT if is_cut else (said(),)])

    await scene.router.ask(chat_body(model="alpha"), patience_s=1)

    line = await scene.line()
    assert {"algorithm", "calls", "calls_dropped"}.isdisjoint(line)
    assert line["attempts"] == 1
