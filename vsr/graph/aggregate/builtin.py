"""The aggregate strategies that ship with the Router."""

from vsr.graph.aggregate.collect import COLLECT, COLLECT_NUMBERS, COLLECT_TEXTS, CONCAT
from vsr.graph.aggregate.collect_choices import COLLECT_CHOICES
from vsr.graph.aggregate.fusion_panel import FUSION_PANEL
from vsr.graph.aggregate.majority_choice import MAJORITY_CHOICE_OF_BRANCHES
from vsr.graph.aggregate.order_and_trim import ORDER_AND_TRIM
from vsr.graph.aggregate.pick import BEST_SCORE, FIRST_SUCCESS, LAST_SUCCESS
from vsr.graph.aggregate.strategy import Aggregate
from vsr.graph.aggregate.vote import MAJORITY, QUORUM
from vsr.graph.aggregate.workflow_step import WORKFLOW_STEP
from vsr.registry import Extension

BUILTIN_AGGREGATES: tuple[Extension[Aggregate], ...] = (
    BEST_SCORE,
    COLLECT,
    COLLECT_CHOICES,
    COLLECT_NUMBERS,
    COLLECT_TEXTS,
    CONCAT,
    FIRST_SUCCESS,
    FUSION_PANEL,
    LAST_SUCCESS,
    MAJORITY,
    MAJORITY_CHOICE_OF_BRANCHES,
    ORDER_AND_TRIM,
    QUORUM,
    WORKFLOW_STEP,
)
