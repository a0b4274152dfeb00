"""The transformers that ship with the Router."""

from vsr.graph.transform.choice_contract import CHOICE_CONTRACT, MAJORITY_CHOICE
from vsr.graph.transform.confidence_score import CONFIDENCE_SCORE, CONFIDENCE_SETTINGS
from vsr.graph.transform.contract_specs import CONTRACT_SPECS
from vsr.graph.transform.contract_text import CONTRACT_TEXT
from vsr.graph.transform.distribute_calls import DISTRIBUTE_CALLS
from vsr.graph.transform.failure_text import FAILURE_TEXT
from vsr.graph.transform.first_given import FIRST_GIVEN
from vsr.graph.transform.fusion.analysis import FUSION_ANALYSIS
from vsr.graph.transform.fusion.grounding import FUSION_GROUNDING
from vsr.graph.transform.fusion.grounding_asks import FUSION_GROUNDING_ASKS
from vsr.graph.transform.fusion.prompts import (
    FUSION_ANALYSIS_PROMPT,
    FUSION_FALLBACK_PROMPT,
    FUSION_FINAL_PROMPT,
)
from vsr.graph.transform.fusion.reply import FUSION_REPLY
from vsr.graph.transform.fusion.settings import FUSION_SETTINGS
from vsr.graph.transform.fusion.trace import FUSION_TRACE
from vsr.graph.transform.json_action_contract import JSON_ACTION_CONTRACT
from vsr.graph.transform.order_models import ORDER_MODELS
from vsr.graph.transform.pick_by_number import PICK_BY_NUMBER
from vsr.graph.transform.plan_round import PLAN_ROUND
from vsr.graph.transform.prompt import PROMPT
from vsr.graph.transform.reference_selection import REFERENCE_SELECTION
from vsr.graph.transform.remom_prompt import REMOM_PROMPT
from vsr.graph.transform.remom_trace import REMOM_TRACE
from vsr.graph.transform.require_usable import REQUIRE_USABLE
from vsr.graph.transform.select_remom import SELECT_REMOM
from vsr.graph.transform.self_verification import SELF_VERIFY_PROMPT, SELF_VERIFY_SCORE
from vsr.graph.transform.transformer import Transformer
from vsr.graph.transform.verdict_score import VERDICT_SCORE
from vsr.graph.transform.workflow_agent import WORKFLOW_AGENT, WORKFLOW_REPLY
from vsr.graph.transform.workflow_call import WORKFLOW_CALL, WORKFLOW_FINAL_MODEL
from vsr.graph.transform.workflow_final import WORKFLOW_FINAL
from vsr.graph.transform.workflow_plan import WORKFLOW_DYNAMIC_PLAN, WORKFLOW_STATIC_PLAN
from vsr.graph.transform.workflow_prompts import (
    WORKFLOW_FINAL_PROMPT,
    WORKFLOW_PLANNER_PROMPT,
    WORKFLOW_STEP_PROMPT,
)
from vsr.graph.transform.workflow_summary import WORKFLOW_INTERRUPT, WORKFLOW_SUMMARY
from vsr.registry import Extension

BUILTIN_TRANSFORMERS: tuple[Extension[Transformer], ...] = (
    CHOICE_CONTRACT,
    CONFIDENCE_SCORE,
    CONFIDENCE_SETTINGS,
    CONTRACT_SPECS,
    CONTRACT_TEXT,
    DISTRIBUTE_CALLS,
    FAILURE_TEXT,
    FIRST_GIVEN,
    FUSION_ANALYSIS,
    FUSION_ANALYSIS_PROMPT,
    FUSION_FALLBACK_PROMPT,
    FUSION_FINAL_PROMPT,
    FUSION_GROUNDING,
    FUSION_GROUNDING_ASKS,
    FUSION_REPLY,
    FUSION_SETTINGS,
    FUSION_TRACE,
    JSON_ACTION_CONTRACT,
    MAJORITY_CHOICE,
    ORDER_MODELS,
    PICK_BY_NUMBER,
    PLAN_ROUND,
    PROMPT,
    REFERENCE_SELECTION,
    REMOM_PROMPT,
    REMOM_TRACE,
    REQUIRE_USABLE,
    SELECT_REMOM,
    SELF_VERIFY_PROMPT,
    SELF_VERIFY_SCORE,
    VERDICT_SCORE,
    WORKFLOW_AGENT,
    WORKFLOW_CALL,
    WORKFLOW_DYNAMIC_PLAN,
    WORKFLOW_FINAL,
    WORKFLOW_FINAL_MODEL,
    WORKFLOW_FINAL_PROMPT,
    WORKFLOW_INTERRUPT,
    WORKFLOW_PLANNER_PROMPT,
    WORKFLOW_REPLY,
    WORKFLOW_STATIC_PLAN,
    WORKFLOW_STEP_PROMPT,
    WORKFLOW_SUMMARY,
)
