"""Configuration documents of looper fixtures."""

from typing import Any

import yaml

from tests.conformance.looper_case import Case, Turn
from tests.conformance.looper_document import called_models, document_of, native_names
from vsr.config.document.root import Document
from vsr.config.report import Report
from vsr.config.source import read_bytes

ASK = Turn({}, {"model": "auto"}, {"from-backend": [{"content": "x"}]}, (), {}, {})


def case(decision: dict[str, Any], **config: object) -> Case:
    """Return a case."""
    return Case(
        "one",
        {"decision": {"name": "d", **decision}, **config},
        is_seen_at_backend=False,
        turns=(ASK,),
    )


def document(of: Case) -> Document:
    """Return the document of a case; it is valid."""
    return read_bytes(document_of(of, 9001, 9002), {}, Report("document")).document


def test_every_model_that_may_be_called_is_configured() -> None:
    """From wherever in the decision it is named; an override calls nobody."""
    blocks = {
        "modelRefs": [{"model": "ref"}],
        "algorithm": {
            "fusion": {
                "model": "judge",
                "analysis_models": ["panel", " panel "],
                "analysis_overrides": [{"model": "ghost"}],
                "quorum_fallback_target": "stand-in",
            },
            "remom": {"synthesis_model": "synthesis"},
            "workflows": {
                "planner": {"model": "planner"},
                "final": {"model": "final"},
                "roles": [{"name": "r", "models": ["worker"]}],
            },
        },
    }

    assert called_models(case(blocks, models={"fact": {}, "ref": {}})) == [
        "fact",
        "ref",
        "judge",
        "panel",
        "stand-in",
        "synthesis",
        "planner",
        "final",
        "worker",
        "from-backend",
    ]


def test_facts_of_a_model_are_in_the_document() -> None:
    """Each where this version of the document has it."""
    facts = {
        "param_size": "7b",
        "pricing": {"prompt_per_1m": 2},
        "quality_score": 0.5,
        "access_key": "k",
        "reasoning_family": "qwen3",
        "external_model_ids": {"vllm": "native"},
    }
    of = case({"modelRefs": [{"model": "a"}]}, models={"a": facts})

    made = document(of)

    model, other = made.providers.models
    [ref] = model.backend_refs
    assert (ref.endpoint, ref.api_key, ref.provider) == ("127.0.0.1:9001", "k", "vllm")
    assert model.pricing is not None
    assert (model.pricing.prompt_per_1m, model.pricing.completion_per_1m) == (2, 0)
    assert model.reasoning is not None
    assert model.reasoning.family == "qwen3"
    assert model.external_model_ids == {"vllm": "native"}
    assert [(card.name, card.param_size) for card in made.routing.modelCards] == [("a", "7b")]
    assert made.evaluation is not None
    [record] = made.evaluation.records
    assert (record.model, record.metrics) == ("a", {"score": 0.5})
    assert (other.name, other.backend_refs[0].api_key) == ("from-backend", None)
    assert native_names(of) == {"native": "a"}


def test_known_model_has_price_and_card_and_an_unknown_one_neither() -> None:
    """Both are callable."""
    made = document(case({"modelRefs": [{"model": "b"}, {"model": "a"}]}, models={"a": {}}))

    prices = {model.name: model.pricing for model in made.providers.models}
    assert prices["a"] is not None
    assert prices["a"].prompt_per_1m == 0
    assert prices["b"] is None
    assert [card.name for card in made.routing.modelCards] == ["a"]


def test_adapter_belongs_to_its_model() -> None:
    """It is no model of its own, though calls name it."""
    refs = [{"model": "a", "lora_name": "from-backend"}]

    made = document(case({"modelRefs": refs}))

    assert [model.name for model in made.providers.models] == ["a"]
    assert [[lora.name for lora in card.loras] for card in made.routing.modelCards] == [
        ["from-backend"]
    ]


def test_decision_always_matches_and_has_what_the_case_says() -> None:
    """The verifier is where it listens, the excerpt of the settings where it belongs."""
    block = {"confidence_method": "automix_entailment", "verifier_server_url": "{{verifier}}"}
    of = case(
        {
            "modelRefs": [{"model": "a"}],
            "algorithm": {"type": "confidence", "confidence": block},
            "output_contract": "Be brief.",
        },
        looper={"timeout_seconds": 5, "headers": {"x-a": "1"}},
    )

    made = document(of)

    [decision] = made.routing.decisions
    assert (decision.name, decision.rules.conditions) == ("d", ())
    assert decision.output_contract == "Be brief."
    assert decision.algorithm is not None
    assert decision.algorithm.confidence is not None
    assert decision.algorithm.confidence.verifier_server_url == "http://127.0.0.1:9002"
    assert made.global_.integrations.looper is not None
    assert made.global_.integrations.looper.timeout_seconds == 5
    assert made.global_.integrations.looper.headers == {"x-a": "1"}


def test_flow_leaves_nothing_on_disk() -> None:
    """Unless the case says where its state goes."""
    algorithm = {"type": "workflows", "workflows": {"roles": [{"name": "r", "models": ["a"]}]}}
    decision = {"modelRefs": [{"model": "a"}], "algorithm": algorithm}

    def backend_of(**config: object) -> str:
        looper = document(case(decision, **config)).global_.integrations.looper
        assert looper is not None
        assert looper.flow is not None
        assert looper.flow.state is not None
        return looper.flow.state.store_backend

    assert backend_of() == "memory"
    assert backend_of(looper={"flow": {"state": {"store_backend": "redis"}}}) == "redis"


def test_cases_at_the_backend_share_their_document() -> None:
    """Models and backends are the same for all, whatever a case calls."""
    decision = {"name": "looper_route", "modelRefs": [{"model": "model-b"}]}
    of = Case(
        "one", {"decision": decision, "document": "shared"}, is_seen_at_backend=True, turns=(ASK,)
    )

    text = document_of(of, 9001, 9002)
    read_bytes(text, {}, Report("document"))

    made = yaml.safe_load(text)
    assert made["listeners"] == [
        {"name": "http-8899", "address": "0.0.0.0", "port": 8899, "timeout": "30s"}
    ]
    models = made["providers"]["models"]
    assert [model["name"] for model in models] == ["model-a", "model-b", "model-c", "judge"]
    assert [model["backend_refs"][0]["name"] for model in models] == [
        "fake-a",
        "fake-b",
        "fake-c",
        "fake-judge",
    ]
    assert [model.get("reasoning") for model in models] == [{"family": "qwen3"}, None, None, None]
    assert made["routing"]["decisions"] == [
        {"priority": 10, "rules": {"operator": "AND", "conditions": []}, **decision}
    ]
    assert made["global"] == {"integrations": {"looper": {"timeout_seconds": 30}}}
