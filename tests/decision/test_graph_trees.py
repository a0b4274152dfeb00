"""Rule trees in the conditions of a decision's graph."""

import json
from collections.abc import Mapping, Sequence

import attrs
import pytest

from tests.engine.extensions import LEARNED_SIGNALS
from vsr.codec.chat import ChatRequest, read_chat
from vsr.decision.evaluate import Evaluator, compile_program
from vsr.decision.graph_trees import compile_trees, types_of
from vsr.decision.signals.signal import SignalMatch
from vsr.errors import SignalUnknown
from vsr.resources.program import (
    And,
    Decision,
    KeywordOperator,
    KeywordSignal,
    Leaf,
    Not,
    OnUnknown,
    Or,
    Program,
    RuleTree,
)

ALWAYS = And()
CODE, MATH, RUDE = Leaf("keyword", "code"), Leaf("domain", "math"), Leaf("tone", "rude")


def chat(text: str) -> ChatRequest:
    """Return a request that says `text`."""
    body = {"model": "auto", "messages": [{"role": "user", "content": text}]}
    return read_chat(json.dumps(body).encode())


def evaluator(*trees: RuleTree, rules: And | Leaf | Not = ALWAYS) -> Evaluator:
    """Return a program with a decision that a graph with these trees answers for."""
    keywords = (KeywordSignal("code", KeywordOperator.OR, ("python",)),)
    program = Program("p", keywords=keywords, decisions=(Decision("d", rules),))
    return compile_program(program, LEARNED_SIGNALS, {"d": trees})


def answered(
    it: Evaluator, text: str, answers: Mapping[str, bytes] | None = None
) -> tuple[bool, ...]:
    """Return what a request says to the trees."""
    conditions = it.evaluate(chat(text), answers or {}).conditions
    assert conditions is not None
    return conditions.find()


def test_trees_are_answered_in_their_order() -> None:
    """By signals of decisions and by their own, plain and learned."""
    trees = [RuleTree(each) for each in (CODE, MATH, Not(CODE), And((CODE, MATH)))]
    for rules in (ALWAYS, Not(Leaf("keyword", "nothing"))):
        it = evaluator(*trees, rules=rules)

        assert answered(it, "python", {"domain:math": b"0.9"}) == (True, True, False, True)
        assert answered(it, "hello") == (False, False, True, False)


def test_signals_of_trees_alone_are_not_those_of_the_verdict() -> None:
    """Clients are told by what a request was routed."""
    verdict = evaluator(RuleTree(CODE)).evaluate(chat("python"))

    assert verdict.signals == {}


def test_decision_without_trees_has_no_conditions() -> None:
    """Nor has a request that no decision gets."""
    assert evaluator().evaluate(chat("python")).conditions is None
    assert evaluator(RuleTree(CODE), rules=CODE).evaluate(chat("hello")).conditions is None


def test_open_tree_does_as_its_root_says() -> None:
    """Once it is asked, and not before."""
    match = evaluator(RuleTree(MATH, OnUnknown.MATCH), RuleTree(MATH))
    fail = evaluator(RuleTree(MATH, OnUnknown.FAIL_REQUEST))

    assert answered(match, "prove") == (True, False)
    conditions = fail.evaluate(chat("prove")).conditions
    assert conditions is not None
    with pytest.raises(SignalUnknown):
        conditions.find()


def test_asks_of_trees_join_those_of_decisions() -> None:
    """As far as the decision may still match: a keyword that is missing rules it out."""
    it = evaluator(RuleTree(Or((MATH, RUDE))), rules=CODE)

    assert it.is_learned
    assert set(it.asks(chat("python"))) == {"domain:math", "domain:law", "tone:rude"}
    assert it.asks(chat("prove")) == {}
    assert not evaluator(RuleTree(CODE), rules=CODE).is_learned


@attrs.define
class Counting:
    """A signal that counts its evaluations."""

    count: int = 0

    def __call__(self, chat: ChatRequest) -> Sequence[SignalMatch]:
        """Match nothing."""
        del chat
        self.count += 1
        return ()


def test_signal_that_helped_to_choose_the_asks_is_not_evaluated_again() -> None:
    """Neither for the decision nor for its graph."""
    signal, topic = Counting(), LEARNED_SIGNALS.get("domain").config(Program("p"))
    trees = {"d": compile_trees([RuleTree(MATH), RuleTree(CODE)], [("domain", topic)])}
    decision = Decision("d", Not(CODE))
    it = Evaluator([("keyword", signal)], [decision], Program("p").strategy, trees)
    request, heard = chat("prove"), dict[str, Sequence[SignalMatch]]()

    asks = it.asks(request, heard)
    conditions = it.evaluate(request, {"domain:math": b"1"}, heard).conditions

    assert set(asks) == {"domain:math", "domain:law"}
    assert conditions is not None
    assert conditions.find() == (True, False)
    assert signal.count == 1


def test_types_are_those_of_all_leaves() -> None:
    """As signals are named."""
    assert types_of([And((CODE, Not(MATH))), Leaf(" Tone ", "x")]) == {"keyword", "domain", "tone"}
