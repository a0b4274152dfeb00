"""Algorithms that ask several models: what their blocks give the built-in graphs."""

from typing import Any

from tests.config.looper_documents import MIB, call_of, checked

SHARED = {"models", "output_contract", "output_contract_spec", "looper"}
"""What every algorithm gives."""


def params(kind: str, block: str = "") -> dict[str, Any]:
    """Return what the block gives, without what every algorithm gives."""
    call = call_of(checked(kind, block))
    assert set(call.params) > SHARED
    return {key: value for key, value in call.params.items() if key not in SHARED}


CONFIDENCE = {
    "confidence_method": "avg_logprob",
    "threshold": -1.0,
    "escalation_order": "size",
    "cost_quality_tradeoff": 0.3,
    "token_filter": "all",
    "hybrid_weights": {"logprob_weight": 0.5, "margin_weight": 0.5},
    "on_error": "skip",
    "verifier_server_url": None,
    "verifier_timeout_seconds": 60,
    "max_response_bytes": 32 * MIB,
}
REMOM = {
    "rounds": [4, 2, 1],
    "model_distribution": "weighted",
    "temperature": None,
    "include_reasoning": False,
    "compaction_strategy": "full",
    "compaction_tokens": 1000,
    "synthesis_template": None,
    "synthesis_model": None,
    "max_concurrent": None,
    "max_completion_tokens": None,
    "dropped": None,
    "round_timeout_seconds": None,
    "min_successful_responses": None,
    "on_error": "skip",
    "shuffle_seed": 0,
    "include_intermediate_responses": False,
    "max_responses_per_round": None,
    "is_json_action": False,
    "json_action": None,
    "reference_id_format": None,
    "reference_sources": ["content"],
}
GROUNDING = {
    "enabled": False,
    "reference": "hybrid",
    "policy": "weight",
    "min_score": 0.0,
    "min_keep": 1,
    "nli_contradiction_penalty": 1.0,
    "on_error": None,
}
FUSION: dict[str, Any] = {
    "model": None,
    "analysis_models": [],
    "analysis_mode": "separate",
    "analysis_overrides": [],
    "max_concurrent": None,
    "max_completion_tokens": None,
    "round_timeout_seconds": None,
    "min_successful_responses": None,
    "temperature": None,
    "include_analysis": True,
    "include_intermediate_responses": True,
    "on_error": "skip",
    "quorum_failure_policy": "fail",
    "quorum_fallback_target": None,
    "analysis_template": None,
    "synthesis_template": None,
    "judge_prompt_version": "fusion-v1",
    "grounding": GROUNDING,
}
WORKFLOWS = {
    "mode": "dynamic",
    "template": "micro_agent",
    "roles": [],
    "final": {"model": None, "prompt": None},
    "planner": {"model": "a", "max_completion_tokens": 2048},
    "max_steps": 3,
    "max_parallel": 2,
    "max_completion_tokens": None,
    "round_timeout_seconds": None,
    "min_successful_responses": None,
    "temperature": None,
    "include_intermediate_responses": True,
    "on_error": "fail",
}


def test_confidence_has_defaults_by_method() -> None:
    """A field of 0 is one that was left out."""
    assert params("confidence") == CONFIDENCE
    assert params("confidence", "threshold: 0, cost_quality_tradeoff: 0") == CONFIDENCE
    methods = {"margin": 0.5, "hybrid": 0.5, "self_verify": 0.7}
    for method, threshold in methods.items():
        given = params("confidence", f"confidence_method: {method}")
        assert given == {**CONFIDENCE, "confidence_method": method, "threshold": threshold}


def test_confidence_keeps_what_is_written() -> None:
    """The older word for the order by size is that order."""
    block = (
        "confidence_method: automix_entailment, threshold: 0.4, escalation_order: small_to_large, "
        "cost_quality_tradeoff: 0.6, token_filter: tool_call_args, on_error: fail, "
        "verifier_server_url: 'http://v.test:8000/x', verifier_timeout_seconds: 3, "
        "max_response_bytes: 7"
    )

    given = params("confidence", block)

    assert given == {
        **CONFIDENCE,
        "confidence_method": "automix_entailment",
        "threshold": 0.4,
        "cost_quality_tradeoff": 0.6,
        "token_filter": "tool_call_args",
        "on_error": "fail",
        "verifier_server_url": "http://v.test:8000/x",
        "verifier_timeout_seconds": 3,
        "max_response_bytes": 7,
    }


def test_weights_of_hybrid_are_the_effective_ones() -> None:
    """0 counts as a half."""
    block = "confidence_method: hybrid, hybrid_weights: {logprob_weight: 0, margin_weight: 0.5}"

    assert params("confidence", block)["hybrid_weights"] == CONFIDENCE["hybrid_weights"]
    block = "confidence_method: hybrid, hybrid_weights: {logprob_weight: 0.3, margin_weight: 0.7}"
    weights = params("confidence", block)["hybrid_weights"]
    assert weights == {"logprob_weight": 0.3, "margin_weight": 0.7}


def test_ratings_ask_all_at_once_unless_told() -> None:
    """The limit is the number of candidates."""
    assert params("ratings") == {"max_concurrent": 2, "on_error": "skip"}
    given = params("ratings", "max_concurrent: 1, on_error: fail")
    assert given == {"max_concurrent": 1, "on_error": "fail"}


def test_remom_without_a_block_runs_as_its_words_say() -> None:
    """But a block that leaves a field out has that field's own default."""
    without = {
        **REMOM,
        "rounds": [4, 1],
        "temperature": 1.0,
        "shuffle_seed": 42,
        "include_intermediate_responses": True,
    }

    assert params("remom") == without
    assert params("remom", "breadth_schedule: [4, 2]") == REMOM
    assert params("remom", "breadth_schedule: [4, 2], compaction_tokens: 0") == REMOM


def test_remom_keeps_what_is_written() -> None:
    """Every field of it; a token limit takes the place of the client's, by either name."""
    written = {
        "breadth_schedule": [4, 2],
        "model_distribution": "equal",
        "temperature": 0.5,
        "include_reasoning": True,
        "compaction_strategy": "last_n_tokens",
        "compaction_tokens": 7,
        "synthesis_template": "text",
        "synthesis_model": "b",
        "max_concurrent": 3,
        "max_completion_tokens": 9,
        "round_timeout_seconds": 4,
        "min_successful_responses": 2,
        "on_error": "fail",
        "shuffle_seed": 7,
        "include_intermediate_responses": True,
        "max_responses_per_round": 5,
    }
    block = ", ".join(f"{key}: {value}" for key, value in written.items())

    given = params("remom", block)

    made = {"rounds": [4, 2, 1], "dropped": ["max_tokens"]}
    del written["breadth_schedule"]
    assert given == {**REMOM, **written, **made}


def test_fusion_leaves_unset_what_the_panel_decides() -> None:
    """A request may bring another panel, whose size and first member then count."""
    assert params("fusion") == FUSION
    given = params(
        "fusion",
        "analysis_models: [b, ' b ', '', a], model: law, max_concurrent: 9, "
        "min_successful_responses: 1",
    )
    assert given == {
        **FUSION,
        "model": "law",
        "analysis_models": ["b", "a"],
        "max_concurrent": 9,
        "min_successful_responses": 1,
    }


def test_fusion_needs_no_candidates_if_it_names_a_panel() -> None:
    """The only algorithm that does without."""
    call = call_of(checked("fusion", "analysis_models: [a]", refs="[]"))

    assert (call.params["analysis_models"], call.params["models"]) == (["a"], ())


def test_fusion_keeps_what_is_written() -> None:
    """Overrides of models that are not asked, too, with a warning: a request may ask them."""
    block = (
        "analysis_overrides: [{model: a, temperature: 0, max_completion_tokens: 0}, {model: b}], "
        "temperature: 0, include_analysis: false, include_intermediate_responses: false, "
        "on_error: fail, quorum_failure_policy: fallback, quorum_fallback_target: b, "
        "analysis_mode: one_call, synthesis_template: s, judge_prompt_version: v2, "
        "max_completion_tokens: 8, round_timeout_seconds: 5, max_concurrent: 1, "
        "grounding: {enabled: true, policy: filter, min_score: 0.5, min_keep: 2, reference: panel}"
    )

    result = checked("fusion", block)

    given = call_of(result).params
    assert {key: given[key] for key in FUSION} == {
        **FUSION,
        "analysis_mode": "one_call",
        "analysis_overrides": [
            {"model": "a", "temperature": 0.0, "max_completion_tokens": None},
            {"model": "b", "temperature": None, "max_completion_tokens": None},
        ],
        "max_concurrent": 1,
        "max_completion_tokens": 8,
        "round_timeout_seconds": 5,
        "temperature": 0.0,
        "include_analysis": False,
        "include_intermediate_responses": False,
        "on_error": "fail",
        "quorum_failure_policy": "fallback",
        "quorum_fallback_target": "b",
        "synthesis_template": "s",
        "judge_prompt_version": "v2",
        "grounding": {
            **GROUNDING,
            "enabled": True,
            "reference": "panel",
            "policy": "filter",
            "min_score": 0.5,
            "min_keep": 2,
        },
    }
    [warning] = result.warnings
    assert warning.what.startswith("names no model of the panel")


def test_workflow_has_defaults() -> None:
    """A planner's answers have a limit of their own."""
    assert params("workflows", "mode: dynamic, planner: {model: a}") == WORKFLOWS
    given = params("workflows", "mode: dynamic, planner: {model: a}, max_steps: 0, max_parallel: 0")
    assert given == WORKFLOWS


def test_roles_of_a_workflow_become_steps() -> None:
    """Who may be read is named by step or agent; nobody is not the same as everybody."""
    block = (
        "roles: [{name: ' Problem_Solver A', models: [a, b], prompt: do}, "
        "{name: Critic, models: [b], access_list: [Problem_Solver A, 'problem-solver-a:1:b']}, "
        "{name: alone, models: [a], access_list: []}], "
        "final: {model: b, prompt: end}, on_error: skip, temperature: 0"
    )

    given = params("workflows", block.replace("' Problem_Solver A'", "Problem_Solver A"))

    assert given == {
        **WORKFLOWS,
        "mode": "static",
        "planner": {"model": None, "max_completion_tokens": 2048},
        "roles": [
            {
                "id": "problem-solver-a",
                "name": "Problem_Solver A",
                "models": ["a", "b"],
                "prompt": "do",
                "access_list": None,
            },
            {
                "id": "critic",
                "name": "Critic",
                "models": ["b"],
                "prompt": None,
                "access_list": ["problem-solver-a", "problem-solver-a:1:b"],
            },
            {
                "id": "alone",
                "name": "alone",
                "models": ["a"],
                "prompt": None,
                "access_list": [],
            },
        ],
        "final": {"model": "b", "prompt": "end"},
        "on_error": "skip",
        "temperature": 0.0,
    }
