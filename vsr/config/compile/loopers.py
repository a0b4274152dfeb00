"""Algorithms that ask several models, as calls of the built-in graphs that do their work.

Source of every default: the reference, 0.4.0 where it differs. Numbers that mean "unset" there
become None here, so that a graph need not know them.
"""

from collections.abc import Callable, Mapping

from vsr.config.compile.contracts import contract_of
from vsr.config.compile.graphs import call_budget
from vsr.config.compile.remom_contract import remom_contract
from vsr.config.document.algorithms import Algorithm
from vsr.config.document.decisions import Decision
from vsr.config.document.integrations import (
    LooperConfig,
    WorkflowStateRedisConfig,
    WorkflowStateRuntimeConfig,
)
from vsr.config.document.looper_algorithms import (
    ConfidenceAlgorithmConfig,
    FusionAlgorithmConfig,
    FusionGroundingConfig,
    HybridWeightsConfig,
    RatingsAlgorithmConfig,
    ReMoMAlgorithmConfig,
    WorkflowFinalConfig,
    WorkflowPlannerConfig,
    WorkflowRoleConfig,
    WorkflowsAlgorithmConfig,
)
from vsr.config.looper_panels import has_candidates, unique_names
from vsr.config.looper_roles import DEFAULT_MAX_PARALLEL, DEFAULT_MAX_STEPS, Sources, step_id
from vsr.config.names import BUILT_IN, names_of
from vsr.resources.graph import GraphCall
from vsr.resources.looper import LooperSettings, RedisStore, StateBackend, StateStore
from vsr.resources.program import ModelRef

Params = dict[str, object]

_MIB = 1_048_576
_DEFAULT_RESPONSE_MIB = 32
_UNSET_TIMEOUT_S = 30
_THRESHOLDS = {
    "avg_logprob": -1.0,
    "margin": 0.5,
    "hybrid": 0.5,
    "self_verify": 0.7,
    "automix_entailment": 0.7,
}
_PLANNER_TOKENS = 2_048
# What a run does without any block; one that omits a field has the default of that field.
_REMOM_WITHOUT_BLOCK = ReMoMAlgorithmConfig(
    breadth_schedule=(4,),
    temperature=1.0,
    shuffle_seed=42,
    include_intermediate_responses=True,
)


def looper_call(
    decision: Decision, refs: tuple[ModelRef, ...], looper: LooperConfig
) -> GraphCall | None:
    """Return the call of the graph behind a decision's algorithm; None if one model answers.

    Args:
        decision: a valid one, with an algorithm that has a built-in graph.
        refs: its candidates.
        looper: settings of all such algorithms.
    """
    algorithm = decision.algorithm
    if algorithm is None or not has_candidates(decision):
        return None
    settings = looper_settings(looper)
    params: Params = {
        **_PARAMS[algorithm.type](decision, algorithm),
        "models": refs,
        "output_contract": (decision.output_contract or "").strip(),
        "output_contract_spec": contract_of(decision.output_contract_spec),
        "looper": {
            "timeout_seconds": settings.call_timeout_s,
            "max_response_bytes": settings.max_response_bytes,
            "names": list(names_of(algorithm.type, looper)),
        },
    }
    return GraphCall(BUILT_IN + algorithm.type, params, call_budget(algorithm.budget))


def looper_settings(looper: LooperConfig) -> LooperSettings:
    """Return the settings of all algorithms that ask several models."""
    flow = looper.flow
    state = None if flow is None else flow.state
    return LooperSettings(
        call_timeout_s=float(_positive(looper.timeout_seconds) or _UNSET_TIMEOUT_S),
        max_response_bytes=_MIB * (looper.max_response_bytes_mb or _DEFAULT_RESPONSE_MIB),
        headers=looper.headers,
        state=_state_store(state or WorkflowStateRuntimeConfig()),
    )


def _state_store(state: WorkflowStateRuntimeConfig) -> StateStore:
    directory = None if state.file is None else (state.file.directory or "").strip()
    return StateStore(
        backend=StateBackend(state.store_backend),
        ttl_s=float(state.ttl_seconds or StateStore().ttl_s),
        directory=directory or None,
        redis=_redis(state.redis or WorkflowStateRedisConfig()),
    )


def _redis(redis: WorkflowStateRedisConfig) -> RedisStore:
    default = RedisStore()
    return RedisStore(
        address=redis.address or default.address,
        db=redis.db or default.db,
        password=redis.password,
        use_tls=redis.use_tls,
        tls_skip_verify=redis.tls_skip_verify,
        max_retries=redis.max_retries or default.max_retries,
        pool_size=redis.pool_size or default.pool_size,
        key_prefix=redis.key_prefix or default.key_prefix,
    )


def _confidence(_decision: Decision, algorithm: Algorithm) -> Params:
    block = algorithm.confidence or ConfidenceAlgorithmConfig()
    weights = block.hybrid_weights or HybridWeightsConfig()
    method = block.confidence_method or "avg_logprob"
    order = block.escalation_order or "size"
    return {
        "confidence_method": method,
        "threshold": block.threshold or _THRESHOLDS[method],
        "escalation_order": "size" if order == "small_to_large" else order,
        "cost_quality_tradeoff": block.cost_quality_tradeoff or 0.3,
        "token_filter": block.token_filter or "all",
        "hybrid_weights": {
            "logprob_weight": weights.logprob_weight or 0.5,
            "margin_weight": weights.margin_weight or 0.5,
        },
        "on_error": block.on_error or "skip",
        "verifier_server_url": block.verifier_server_url,
        "verifier_timeout_seconds": block.verifier_timeout_seconds or 60,
        "max_response_bytes": block.max_response_bytes or _MIB * _DEFAULT_RESPONSE_MIB,
    }


def _ratings(decision: Decision, algorithm: Algorithm) -> Params:
    block = algorithm.ratings or RatingsAlgorithmConfig()
    return {
        "max_concurrent": block.max_concurrent or len(decision.modelRefs),
        "on_error": block.on_error or "skip",
    }


def _remom(decision: Decision, algorithm: Algorithm) -> Params:
    block = algorithm.remom or _REMOM_WITHOUT_BLOCK
    return {
        **remom_contract(decision.output_contract_spec),
        "rounds": [*block.breadth_schedule, 1],
        "model_distribution": block.model_distribution or "weighted",
        "temperature": block.temperature or None,
        "include_reasoning": block.include_reasoning,
        "compaction_strategy": block.compaction_strategy or "full",
        "compaction_tokens": block.compaction_tokens or 1_000,
        "synthesis_template": block.synthesis_template or None,
        "synthesis_model": block.synthesis_model or None,
        "max_concurrent": block.max_concurrent or None,
        "max_completion_tokens": block.max_completion_tokens or None,
        "dropped": ["max_tokens"] if block.max_completion_tokens else None,
        "round_timeout_seconds": block.round_timeout_seconds or None,
        "min_successful_responses": block.min_successful_responses or None,
        "on_error": block.on_error or "skip",
        "shuffle_seed": block.shuffle_seed,
        "include_intermediate_responses": block.include_intermediate_responses,
        "max_responses_per_round": block.max_responses_per_round or None,
    }


def _fusion(_decision: Decision, algorithm: Algorithm) -> Params:
    """What depends on the panel stays unset: the client's request may bring another panel."""
    block = algorithm.fusion or FusionAlgorithmConfig()
    return {
        "model": block.model or None,
        "analysis_models": list(unique_names(block.analysis_models)),
        "analysis_mode": block.analysis_mode or "separate",
        "analysis_overrides": [
            {
                "model": each.model.strip(),
                "temperature": each.temperature,
                "max_completion_tokens": each.max_completion_tokens or None,
            }
            for each in block.analysis_overrides
        ],
        "max_concurrent": block.max_concurrent or None,
        "max_completion_tokens": block.max_completion_tokens or None,
        "round_timeout_seconds": block.round_timeout_seconds or None,
        "min_successful_responses": block.min_successful_responses or None,
        "temperature": block.temperature,
        "include_analysis": block.include_analysis is not False,
        "include_intermediate_responses": block.include_intermediate_responses is not False,
        "on_error": block.on_error or "skip",
        "quorum_failure_policy": block.quorum_failure_policy or "fail",
        "quorum_fallback_target": block.quorum_fallback_target or None,
        "analysis_template": block.analysis_template or None,
        "synthesis_template": block.synthesis_template or None,
        "judge_prompt_version": block.judge_prompt_version or "fusion-v1",
        "grounding": _grounding(block.grounding or FusionGroundingConfig()),
    }


def _grounding(block: FusionGroundingConfig) -> Params:
    return {
        "enabled": block.enabled,
        "reference": block.reference or "hybrid",
        "policy": block.policy or "weight",
        "min_score": block.min_score or 0.0,
        "min_keep": block.min_keep or 1,
        "nli_contradiction_penalty": block.nli_contradiction_penalty or 1.0,
        "on_error": block.on_error or None,
    }


def _workflows(_decision: Decision, algorithm: Algorithm) -> Params:
    block = algorithm.workflows or WorkflowsAlgorithmConfig()
    planner = block.planner or WorkflowPlannerConfig()
    final = block.final or WorkflowFinalConfig()
    return {
        "mode": block.mode or "static",
        "template": block.template or "micro_agent",
        "roles": _roles(block.roles),
        "final": {"model": final.model or None, "prompt": final.prompt or None},
        "planner": {
            "model": planner.model or None,
            "max_completion_tokens": planner.max_completion_tokens or _PLANNER_TOKENS,
        },
        "max_steps": block.max_steps or DEFAULT_MAX_STEPS,
        "max_parallel": block.max_parallel or DEFAULT_MAX_PARALLEL,
        "max_completion_tokens": block.max_completion_tokens or None,
        "round_timeout_seconds": block.round_timeout_seconds or None,
        "min_successful_responses": block.min_successful_responses or None,
        "temperature": block.temperature,
        "include_intermediate_responses": block.include_intermediate_responses is not False,
        "on_error": block.on_error or "fail",
    }


def _roles(roles: tuple[WorkflowRoleConfig, ...]) -> list[Params]:
    earlier = Sources()
    steps: list[Params] = []
    for role in roles:
        access = role.access_list
        steps.append(
            {
                "id": step_id(role.name),
                "name": role.name,
                "models": list(unique_names(role.models)),
                "prompt": role.prompt or None,
                "access_list": None
                if access is None
                else list(dict.fromkeys(filter(None, map(earlier.resolve, access)))),
            }
        )
        earlier.add(role)
    return steps


def _positive(number: int) -> int | None:
    return number if number > 0 else None


_PARAMS: Mapping[str, Callable[[Decision, Algorithm], Params]] = {
    "confidence": _confidence,
    "ratings": _ratings,
    "remom": _remom,
    "fusion": _fusion,
    "workflows": _workflows,
}
"""By algorithm, what its block gives the graph; of every one of `LOOPERS`."""
