"""The aggregate strategies that ship with the Router, by name: where each stands."""

from typing import TYPE_CHECKING

from vsr.registry import Place, places

if TYPE_CHECKING:
    from vsr.graph.aggregate.strategy import Aggregate

BUILTIN_AGGREGATES: "tuple[Place[Aggregate], ...]" = places(
    "vsr.graph.aggregate",
    {
        "best_score": "pick:BEST_SCORE",
        "collect": "collect:COLLECT",
        "collect_choices": "collect_choices:COLLECT_CHOICES",
        "collect_numbers": "collect:COLLECT_NUMBERS",
        "collect_texts": "collect:COLLECT_TEXTS",
        "concat": "collect:CONCAT",
        "first_success": "pick:FIRST_SUCCESS",
        "fusion_panel": "fusion_panel:FUSION_PANEL",
        "last_success": "pick:LAST_SUCCESS",
        "majority": "vote:MAJORITY",
        "majority_choice": "majority_choice:MAJORITY_CHOICE_OF_BRANCHES",
        "order_and_trim": "order_and_trim:ORDER_AND_TRIM",
        "quorum": "vote:QUORUM",
        "workflow_step": "workflow_step:WORKFLOW_STEP",
    },
)
