"""The transformers that ship with the Router, by name: where each stands."""

from typing import TYPE_CHECKING

from vsr.registry import Place, places

if TYPE_CHECKING:
    from vsr.graph.transform.transformer import Transformer

BUILTIN_TRANSFORMERS: "tuple[Place[Transformer], ...]" = places(
    "vsr.graph.transform",
    {
        "choice_contract": "choice_contract:CHOICE_CONTRACT",
        "confidence_score": "confidence_score:CONFIDENCE_SCORE",
        "confidence_settings": "confidence_score:CONFIDENCE_SETTINGS",
        "contract_specs": "contract_specs:CONTRACT_SPECS",
        "contract_text": "contract_text:CONTRACT_TEXT",
        "distribute_calls": "distribute_calls:DISTRIBUTE_CALLS",
        "failure_text": "failure_text:FAILURE_TEXT",
        "first_given": "first_given:FIRST_GIVEN",
        "fusion_analysis": "fusion.analysis:FUSION_ANALYSIS",
        "fusion_analysis_prompt": "fusion.prompts:FUSION_ANALYSIS_PROMPT",
        "fusion_fallback_prompt": "fusion.prompts:FUSION_FALLBACK_PROMPT",
        "fusion_final_prompt": "fusion.prompts:FUSION_FINAL_PROMPT",
        "fusion_grounding": "fusion.grounding:FUSION_GROUNDING",
        "fusion_grounding_asks": "fusion.grounding_asks:FUSION_GROUNDING_ASKS",
        "fusion_reply": "fusion.reply:FUSION_REPLY",
        "fusion_settings": "fusion.settings:FUSION_SETTINGS",
        "fusion_trace": "fusion.trace:FUSION_TRACE",
        "json_action_contract": "json_action_contract:JSON_ACTION_CONTRACT",
        "majority_choice": "choice_contract:MAJORITY_CHOICE",
        "order_models": "order_models:ORDER_MODELS",
        "pick_by_number": "pick_by_number:PICK_BY_NUMBER",
        "plan_round": "plan_round:PLAN_ROUND",
        "prompt": "prompt:PROMPT",
        "reference_selection": "reference_selection:REFERENCE_SELECTION",
        "remom_prompt": "remom_prompt:REMOM_PROMPT",
        "remom_trace": "remom_trace:REMOM_TRACE",
        "require_usable": "require_usable:REQUIRE_USABLE",
        "select_remom": "select_remom:SELECT_REMOM",
        "self_verify_prompt": "self_verification:SELF_VERIFY_PROMPT",
        "self_verify_score": "self_verification:SELF_VERIFY_SCORE",
        "verdict_score": "verdict_score:VERDICT_SCORE",
        "workflow_agent": "workflow_agent:WORKFLOW_AGENT",
        "workflow_call": "workflow_call:WORKFLOW_CALL",
        "workflow_dynamic_plan": "workflow_plan:WORKFLOW_DYNAMIC_PLAN",
        "workflow_final": "workflow_final:WORKFLOW_FINAL",
        "workflow_final_model": "workflow_call:WORKFLOW_FINAL_MODEL",
        "workflow_final_prompt": "workflow_prompts:WORKFLOW_FINAL_PROMPT",
        "workflow_interrupt": "workflow_summary:WORKFLOW_INTERRUPT",
        "workflow_planner_prompt": "workflow_prompts:WORKFLOW_PLANNER_PROMPT",
        "workflow_reply": "workflow_agent:WORKFLOW_REPLY",
        "workflow_static_plan": "workflow_plan:WORKFLOW_STATIC_PLAN",
        "workflow_step_prompt": "workflow_prompts:WORKFLOW_STEP_PROMPT",
        "workflow_summary": "workflow_summary:WORKFLOW_SUMMARY",
    },
)
