"""Programs compiled and evaluated."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.signals import fake_signals
from tests.strategies import MATCHES, RULES
from vsr.codec.chat import ChatRequest, read_chat
from vsr.decision.evaluate import Verdict, compile_program
from vsr.decision.rules import compile_rule
from vsr.errors import InvalidRequest
from vsr.resources.program import (
    And,
    ContextSignal,
    Decision,
    KeywordOperator,
    KeywordSignal,
    Leaf,
    Not,
    Program,
    Strategy,
)

NOT_UTF8 = b'{"model":"a","messages":[{"role":"user","content":"\xff"}]}'
KEYWORDS = (
    KeywordSignal("hi", KeywordOperator.OR, ("hi",)),
    KeywordSignal("ho", KeywordOperator.OR, ("ho",)),
)
CONTEXTS = (ContextSignal("any"),)


def chat(text: str) -> ChatRequest:
    """Return a request that says `text`."""
    body = {"model": "auto", "messages": [{"role": "user", "content": text}]}
    return read_chat(json.dumps(body).encode())


DECISIONS = st.lists(
    st.builds(
        Decision,
        name=st.sampled_from("pqrstuv"),
        rules=RULES,
        priority=st.integers(-1, 1),
        tier=st.sampled_from([0, 0, 0, 1, 2]),
    ),
    unique_by=lambda decision: decision.name,
    max_size=6,
).map(tuple)


@given(DECISIONS, MATCHES, st.sampled_from(Strategy))
def test_winner_is_the_least_by_the_order_of_the_rule(
    decisions: tuple[Decision, ...], matches: dict[str, float], strategy: Strategy
) -> None:
    """One tiered match brings tier and confidence to the front; else the strategy orders."""
    program = Program("p", strategy=strategy, decisions=decisions)
    found = [(it, match) for it in decisions if (match := compile_rule(it.rules)(matches))]
    if any(decision.tier for decision, _ in found):
        found.sort(key=lambda it: (it[0].tier, -it[1].confidence, -it[0].priority, it[0].name))
    elif strategy is Strategy.PRIORITY:
        found.sort(key=lambda it: (-it[0].priority, -it[1].confidence, it[0].name))
    else:
        found.sort(key=lambda it: (-it[1].confidence, -it[0].priority, it[0].name))

    verdict = compile_program(program, fake_signals(matches)).evaluate(chat("x"))

    if found:
        decision, match = found[0]
        assert verdict.decision is decision
        assert (verdict.confidence, verdict.matched_rules) == (match.confidence, match.labels)
    else:
        assert verdict.decision is None
        assert (verdict.confidence, verdict.matched_rules) == (0.0, ())


def test_verdict_reports_every_rule_of_the_types_in_use() -> None:
    """Rules that no decision names are reported too, as in the reference; unused types are not."""
    decisions = (Decision("d", Leaf("keyword", "ho")),)
    program = Program("p", keywords=KEYWORDS, contexts=CONTEXTS, decisions=decisions)

    verdict = compile_program(program).evaluate(chat("hi ho"))

    matches = {"keyword:hi": 1.0, "keyword:ho": 1.0}
    assert verdict == Verdict(
        decisions[0], 1.0, ("keyword:ho",), {"keyword": ["hi", "ho"]}, matches=matches
    )


def test_verdict_reports_signals_without_a_decision() -> None:
    """What matched is known even if no decision does."""
    rule = And((Leaf("Keyword", "ho"), Leaf("context", "any")))
    program = Program("p", keywords=KEYWORDS, contexts=CONTEXTS, decisions=(Decision("d", rule),))

    verdict = compile_program(program).evaluate(chat("hi"))

    matches = {"keyword:hi": 1.0, "context:any": 1.0}
    assert verdict == Verdict(signals={"keyword": ["hi"], "context": ["any"]}, matches=matches)


def test_a_program_without_decisions_reads_no_text() -> None:
    """Such a request goes to the default model unseen, even if it is no valid text."""
    program = Program("p", keywords=KEYWORDS, contexts=CONTEXTS)

    assert compile_program(program).evaluate(read_chat(NOT_UTF8)) == Verdict()


def test_a_text_that_is_not_utf8_is_the_clients_fault() -> None:
    """Reading it is the one typed error."""
    program = Program("p", keywords=KEYWORDS, decisions=(Decision("d", Leaf("keyword", "hi")),))

    with pytest.raises(InvalidRequest):
        compile_program(program).evaluate(read_chat(NOT_UTF8))


@pytest.mark.parametrize("messages", [[], [{"content": "hi"}]])
def test_a_blank_request_is_not_evaluated(messages: object) -> None:
    """Without text and facts not even a catch-all or a NOT holds."""
    body = json.dumps({"model": "auto", "messages": messages}).encode()
    program = Program(
        "p",
        keywords=KEYWORDS,
        decisions=(Decision("all"), Decision("not", Not(Leaf("keyword", "hi")))),
    )

    assert compile_program(program).evaluate(read_chat(body)) == Verdict()


def test_an_empty_text_with_facts_is_evaluated() -> None:
    """A conversation of tool results has no text, yet decisions apply."""
    body = b'{"model":"a","messages":[{"role":"tool","content":"hi"}]}'
    decision = Decision("not", Not(Leaf("keyword", "hi")))
    program = Program("p", keywords=KEYWORDS, decisions=(decision,))

    verdict = compile_program(program).evaluate(read_chat(body))

    assert verdict == Verdict(decision, 1.0)


def test_a_leaf_of_an_unknown_type_never_matches() -> None:
    """It has no signal that could match it."""
    decision = Decision("d", Leaf("astrology", "leo"))

    assert compile_program(Program("p", decisions=(decision,))).evaluate(chat("x")) == Verdict()


def test_verdicts_share_nothing() -> None:
    """Whoever changes the lists of one verdict changes no other."""
    program = Program("p", keywords=KEYWORDS, decisions=(Decision("d", Leaf("keyword", "hi")),))
    evaluator = compile_program(program)

    evaluator.evaluate(chat("hi")).signals["keyword"].append("changed")

    assert evaluator.evaluate(chat("hi")).signals == {"keyword": ["hi"]}
