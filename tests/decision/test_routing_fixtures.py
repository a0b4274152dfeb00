"""The reference's routing fixtures, as far as their signals are served."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.fakes.signals import fake_signals
from tests.reference_dir import reference_dir
from vsr.codec.chat import read_chat
from vsr.codec.chat_messages import read_conversation
from vsr.codec.chat_tokens import measure
from vsr.decision.evaluate import Verdict, compile_program
from vsr.decision.selection.static import Static
from vsr.resources.program import (
    And,
    ContextSignal,
    Decision,
    KeywordMethod,
    KeywordOperator,
    KeywordSignal,
    Leaf,
    ModelRef,
    Not,
    Or,
    Program,
    Rule,
    Strategy,
)

FILES = [
    "01-keyword-and-or-nor",
    "02-keyword-literal-boundaries",
    "03-keyword-regex",
    "07-context-bands",
    "08-context-envelope-floor",
    "31-engine-boolean-tree",
    "32-engine-strategy-priority",
    "33-engine-strategy-confidence",
    "34-engine-tiers",
    "36-selection-static",
    "41-text-extraction-chat",
]
NOT_SERVED = {
    ("36-selection-static", "best domain score under the decision's own name"): "domain scores",
    ("36-selection-static", "one candidate, adapter name, effort from the global default"): "LoRA",
}


def rule_of(node: dict[str, Any] | None) -> Rule:
    """Return a fixture's rule node as ours."""
    if node is None:
        return And()
    if node.get("type"):
        return Leaf(node["type"], node["name"])
    conditions = tuple(rule_of(condition) for condition in node["conditions"])
    operator = node["operator"].upper()
    if operator == "NOT":
        return Not(conditions[0])
    return And(conditions) if operator == "AND" else Or(conditions)


def tokens_of(text: str | None) -> int | None:
    """Return the number that a limit such as `1.5K` means."""
    if text is None:
        return None
    factor = {"K": 1_000, "M": 1_000_000}.get(text[-1], 1)
    return int(float(text.rstrip("KM")) * factor)


def program_of(config: dict[str, Any]) -> Program:
    """Return a fixture's routing block as a program."""
    routing = config["routing"]
    signals = routing.get("signals", {})
    strategy = routing.get("strategy") or config.get("global", {}).get("router", {}).get("strategy")
    return Program(
        "default",
        Strategy(strategy or "priority"),
        tuple(
            KeywordSignal(
                it["name"],
                KeywordOperator(it["operator"]),
                tuple(it["keywords"]),
                KeywordMethod(it.get("method") or "literal"),
                it.get("case_sensitive", False),
            )
            for it in signals.get("keywords", [])
        ),
        tuple(
            ContextSignal(
                it["name"], tokens_of(it.get("min_tokens")) or 0, tokens_of(it.get("max_tokens"))
            )
            for it in signals.get("context", [])
        ),
        tuple(
            Decision(
                it["name"],
                rule_of(it.get("rules")),
                it.get("priority", 0),
                it.get("tier", 0),
                tuple(ModelRef(ref["model"]) for ref in it.get("modelRefs", [])),
            )
            for it in routing["decisions"]
        ),
    )


def check(
    expected: dict[str, Any], verdict: Verdict, default_model: str
) -> Iterator[tuple[str, object, object]]:
    """Yield each fact that the fixture pins: its name, ours, theirs."""
    decision = verdict.decision
    selected = Static()(decision.model_refs) if decision else None
    # `method` is left out: the parity records report `static` where the fixtures say `single`.
    ours = {
        "decision": decision and decision.name,
        "confidence": pytest.approx(verdict.confidence, abs=0.0005),
        "matched_rules": list(verdict.matched_rules),
        "matched_signals": verdict.signals,
        "model": decision.model_refs[selected.index].model
        if decision and selected
        else default_model,
    }
    for name in ours.keys() & expected.keys():
        yield name, ours[name], expected[name]


@pytest.mark.parametrize("file", FILES)
def test_fixture_cases_come_out_as_in_the_reference(file: str) -> None:
    """Matched signals, token counts, decision, confidence, matched rules and model."""
    fixture = yaml.safe_load((reference_dir() / "routing-fixtures" / f"{file}.yaml").read_text())
    program = program_of(fixture["config"])
    default_model = fixture["config"]["providers"]["defaults"]["default_model"]
    checked = 0
    for case in fixture["cases"]:
        if (file, case["name"]) in NOT_SERVED:
            continue
        stubs = case.get("stubs", {}).get("signals", {})
        confidences = stubs.get("confidences", {})
        matches = {
            f"{kind}:{name}": confidences.get(f"{kind}:{name}", 1.0)
            for kind, names in stubs.get("matched", {}).items()
            for name in names
        }
        is_stubbed = not fixture.get("validate", True)
        body = json.dumps(case["request"]["body"], separators=(",", ":"), ensure_ascii=False)
        request = read_chat(body.encode())
        expected = case["expect"]

        evaluator = compile_program(program, fake_signals(matches) if is_stubbed else None)
        verdict = evaluator.evaluate(request)

        for name, ours, theirs in check(expected, verdict, default_model):
            assert ours == theirs, (case["name"], name)
            checked += 1
        if "token_count" in expected:
            assert request.token_count == expected["token_count"], case["name"]
        members = request.envelope.members
        size = measure(read_conversation(members), members)
        for name, theirs in expected.get("token_parts", {}).items():
            ours = getattr(
                size,
                {"framing": "framing_tokens", "output_reserve": "output_reserve_tokens"}.get(
                    name, name
                ),
            )
            assert ours == theirs, (case["name"], name)
    assert checked
