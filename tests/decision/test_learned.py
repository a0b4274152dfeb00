"""Signals that take a model to judge: asked once, together, and unknown where not answered."""

import json

import msgspec
import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd
from tests.engine.extensions import LEARNED_SIGNALS, WITH_LEARNED_SIGNALS
from tests.engine.stepped_backend import Act, SteppedBackend
from tests.engine.wired import OPENAI, PAIRS, Pair, Wired, document, whole
from tests.fakes.router import as_snapshot, start_router
from tests.fakes.runtime import ScriptedRuntime
from vsr.codec.chat import ChatRequest, read_chat
from vsr.decision.evaluate import compile_program
from vsr.errors import SignalUnknown
from vsr.network.memory import MemoryNetwork
from vsr.resources.program import (
    And,
    Decision,
    Leaf,
    ModelRef,
    Not,
    OnUnknown,
    Or,
    Program,
    Rule,
)
from vsr.resources.snapshot import Snapshot

MATH, LAW, RUDE = Leaf("domain", "math"), Leaf("domain", "law"), Leaf("tone", "rude")


def chat(text: str) -> ChatRequest:
    """Return a request that says `text`."""
    return read_chat(
        json.dumps({"model": "auto", "messages": [{"role": "user", "content": text}]}).encode()
    )


def program(*rules: Rule) -> Program:
    """Return a program with one decision per rule, the first with the highest priority."""
    return Program(
        "p",
        decisions=tuple(
            Decision(f"d{at}", rule, priority=-at, model_refs=(ModelRef("alpha"),))
            for at, rule in enumerate(rules)
        ),
    )


def test_asks_of_all_signals_in_use_are_one_bundle() -> None:
    """Signals without a leaf in a decision ask nothing; one that needs no model does neither."""
    both = compile_program(program(And((MATH, RUDE))), LEARNED_SIGNALS)
    one = compile_program(program(RUDE), LEARNED_SIGNALS)

    assert both.asks(chat("prove")) == {
        "domain:math": b"prove",
        "domain:law": b"prove",
        "tone:rude": b"prove",
    }
    assert set(both.asks(chat("hello"))) == {"domain:math", "domain:law"}
    assert set(one.asks(chat("prove"))) == {"tone:rude"}
    assert both.is_learned


def test_program_without_learned_signals_asks_nothing() -> None:
    """Neither does one whose decisions use none, or that has no decisions."""
    evaluators = [
        compile_program(program(Leaf("keyword", "k")), LEARNED_SIGNALS),
        compile_program(Program("p"), LEARNED_SIGNALS),
    ]

    assert [it.asks(chat("prove")) for it in evaluators] == [{}, {}]
    assert not any(it.is_learned for it in evaluators)


def test_blank_request_asks_nothing() -> None:
    """There is nothing that a model could read."""
    evaluator = compile_program(program(MATH), LEARNED_SIGNALS)

    assert evaluator.asks(read_chat(b'{"model":"auto","messages":[]}')) == {}


@pytest.mark.parametrize(
    ("answers", "decision", "confidence", "signals"),
    [
        ({"domain:math": b"0.9", "domain:law": b"0.5"}, "d0", 0.9, {"domain": ["math", "law"]}),
        ({"domain:law": b"0.6"}, "d0", 0.6, {"domain": ["law"]}),
        ({"tone:rude": b"0.7"}, "d1", 0.7, {"tone": ["rude"]}),
        ({"domain:math": b"0.4"}, None, 0.0, {}),
        ({}, None, 0.0, {}),
        ({"other": b"1"}, None, 0.0, {}),
    ],
)
def test_verdict_follows_the_answers(
    answers: dict[str, bytes],
    decision: str | None,
    confidence: float,
    signals: dict[str, list[str]],
) -> None:
    """What was not answered matches no rule; what was, matches with its own confidence."""
    evaluator = compile_program(program(Or((MATH, LAW)), RUDE), LEARNED_SIGNALS)

    verdict = evaluator.evaluate(chat("prove"), answers)

    assert (verdict.decision and verdict.decision.name) == decision
    assert verdict.confidence == confidence
    assert verdict.signals == signals


def test_unknown_holds_a_negation() -> None:
    """An ask without an answer is a rule that does not match, like any other."""
    evaluator = compile_program(program(Not(MATH)), LEARNED_SIGNALS)

    unknown = evaluator.evaluate(chat("prove"), {})
    known = evaluator.evaluate(chat("prove"), {"domain:math": b"0.9"})

    assert unknown.decision is not None
    assert known.decision is None


def learned_snapshot(alpha_port: int, claude_port: int) -> Snapshot:
    """Return a document's resources with two learned decisions put into its default recipe."""
    snapshot = as_snapshot(document(alpha_port, claude_port, routing="{}"))
    decided = (
        Decision("math", MATH, priority=2, model_refs=(ModelRef("claude"),)),
        Decision("rude", RUDE, priority=1, model_refs=(ModelRef("claude"),)),
    )
    programs = tuple(
        msgspec.structs.replace(it, decisions=decided) if it.name == "default" else it
        for it in snapshot.programs
    )
    return msgspec.structs.replace(snapshot, programs=programs)


async def start(nursery: trio.Nursery, runtime: ScriptedRuntime) -> Wired:
    """Start a Router that asks `runtime`: mathematics go to `claude`, all else to `alpha`."""
    network = MemoryNetwork()
    alpha = await SteppedBackend(network, whole(200, OPENAI.answer)).start(nursery)
    claude = await SteppedBackend(network, whole(200, PAIRS[1].answer)).start(nursery)
    router = await start_router(
        nursery,
        network,
        learned_snapshot(alpha.port, claude.port),
        extensions=WITH_LEARNED_SIGNALS,
        runtime=runtime,
    )
    return Wired(router, alpha, claude)


@pytest.mark.parametrize(
    ("answers", "decision", "model"),
    [
        ({"domain:math": b"0.9", "tone:rude": b"0.9"}, b"math", b"claude"),
        ({"tone:rude": b"0.9"}, b"rude", b"claude"),
        ({"domain:math": b"0.1"}, b"", b"alpha"),
        ({}, b"", b"alpha"),
    ],
)
@pytest.mark.parametrize("pair", PAIRS)
async def test_runtime_is_asked_once_per_request(
    pair: Pair,
    answers: dict[str, bytes],
    decision: bytes,
    model: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """In one bundle, for either client; answers that are missing are unknown."""
    runtime = ScriptedRuntime(answers, delay_s=0.02)
    wired = await start(nursery, runtime)

    got = await wired.ask(pair, pair.body("prove", model="auto"))

    assert (got.status, trio.current_time()) == (200, 0.02)
    assert runtime.bundles == [
        {"domain:math": b"prove", "domain:law": b"prove", "tone:rude": b"prove"}
    ]
    assert got.line(b"x-vsr-selected-decision") == decision
    assert got.line(b"x-vsr-selected-model") == model


async def test_runtime_is_not_asked_about_a_named_model(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Nor about a request that cannot be served, or that needs no routing."""
    runtime = ScriptedRuntime()
    wired = await start(nursery, runtime)

    named = await wired.ask(OPENAI, OPENAI.body("prove"))
    unknown = await wired.ask(OPENAI, OPENAI.body("prove", model="nobody"))
    other = await wired.router.ask(b"{}", target=b"/v1/embeddings")

    assert (named.status, unknown.status, other.status) == (200, 400, 200)
    assert runtime.bundles == []


async def test_requests_ask_the_runtime_each_for_itself(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """While one waits, others are served, and no answer gets mixed up."""
    runtime = ScriptedRuntime({"domain:math": b"0.9"}, delay_s=1.0)
    wired = await start(nursery, runtime)
    decided: list[bytes] = []

    async def one(text: str) -> None:
        got = await wired.ask(OPENAI, OPENAI.body(text, model="auto"))
        decided.append(got.line(b"x-vsr-selected-decision"))

    async with trio.open_nursery() as asking:
        for at in range(5):
            asking.start_soon(one, f"prove {at}")

    assert trio.current_time() == 1.0
    assert sorted(bundle["domain:math"] for bundle in runtime.bundles) == [
        b"prove %d" % at for at in range(5)
    ]
    assert decided == [b"math"] * 5


async def test_runtimes_question_ends_when_the_client_leaves(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report C1: no backend is called for it, nothing is held, and the log says why."""
    runtime = ScriptedRuntime(delay_s=60.0)
    wired = await start(nursery, runtime)
    client = await wired.router.connect()
    body = OPENAI.body("prove", model="auto")
    await client.send(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: r\r\ncontent-length: %d\r\n\r\n%b"
        % (len(body), body)
    )
    await trio.sleep(3)

    client.close()
    await trio.testing.wait_all_tasks_blocked()

    [line] = await wired.router.log()
    assert runtime.cancelled_at == [3]
    assert (line["outcome"], line["cause"]) == ("cancelled", "client_gone")
    assert wired.alpha.seen == []
    assert await wired.router.held() == (0, 0)


async def test_failing_runtime_leaves_every_ask_unknown(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """As in the reference, where a classifier that fails matches nothing: the default serves."""
    runtime = ScriptedRuntime({"domain:math": b"0.9"}, failure=OSError("canary"))
    wired = await start(nursery, runtime)

    got = await wired.ask(OPENAI, OPENAI.body("prove", model="auto"))

    assert (got.end, got.status) == (AnswerEnd.WHOLE, 200)
    assert got.line(b"x-vsr-selected-decision") == b""
    assert b"canary" not in got.raw


async def test_silent_runtime_holds_no_request_for_ever(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The listener's timeout bounds a request from its head on, not only its call."""
    runtime = ScriptedRuntime(delay_s=1e6)
    wired = await start(nursery, runtime)
    wired.alpha.steps = [Act.HANG]

    got = await wired.router.ask(OPENAI.body("prove", model="auto"), patience_s=2000)

    assert got.end is AnswerEnd.WHOLE
    assert got.status in {200, 504}


@pytest.mark.parametrize(
    ("on_unknown", "decision"),
    [(None, None), (OnUnknown.NO_MATCH, None), (OnUnknown.MATCH, "d")],
)
def test_rules_say_what_an_unanswered_ask_means(
    on_unknown: OnUnknown | None, decision: str | None
) -> None:
    """It is no name of a rule that matched in any case."""
    only = Decision("d", MATH, on_unknown=on_unknown, model_refs=(ModelRef("alpha"),))
    evaluator = compile_program(Program("p", decisions=(only,)), LEARNED_SIGNALS)

    verdict = evaluator.evaluate(chat("prove"), {"domain:law": b"0.9"})

    assert (verdict.decision and verdict.decision.name) == decision
    assert verdict.signals == {"domain": ["law"]}


def failing_program() -> Program:
    """Return a program whose second decision must know of mathematics."""
    first, second = program(Leaf("keyword", "k"), MATH).decisions
    first = msgspec.structs.replace(first, rules=And())
    second = msgspec.structs.replace(second, on_unknown=OnUnknown.FAIL_REQUEST)
    return Program("p", decisions=(first, second))


def test_rules_may_fail_the_request_though_a_decision_before_them_matches() -> None:
    """Its author wants nothing served that was not looked at."""
    evaluator = compile_program(failing_program(), LEARNED_SIGNALS)

    with pytest.raises(SignalUnknown):
        evaluator.evaluate(chat("prove"), {})
    known = evaluator.evaluate(chat("prove"), {"domain:math": b"0.1"})

    assert known.decision is not None


async def test_client_is_told_that_a_signal_is_unknown(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A failing runtime is a failure of ours for a while, and no model is called."""
    network = MemoryNetwork()
    alpha = await SteppedBackend(network, whole(200, OPENAI.answer)).start(nursery)
    claude = await SteppedBackend(network, whole(200, PAIRS[1].answer)).start(nursery)
    snapshot = learned_snapshot(alpha.port, claude.port)
    programs = (msgspec.structs.replace(failing_program(), name="default"),)
    router = await start_router(
        nursery,
        network,
        msgspec.structs.replace(snapshot, programs=programs),
        extensions=WITH_LEARNED_SIGNALS,
        runtime=ScriptedRuntime(failure=OSError("canary")),
    )

    got = await Wired(router, alpha, claude).ask(OPENAI, OPENAI.body("prove", model="auto"))

    assert (got.status, json.loads(got.body)["error"]["code"]) == (503, "signal_unknown")
    assert b"canary" not in got.raw
    assert alpha.seen == []
