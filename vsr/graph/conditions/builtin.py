"""The conditions that ship with the Router, by name: where each stands."""

from typing import TYPE_CHECKING

from vsr.registry import Place, places

if TYPE_CHECKING:
    from vsr.graph.conditions.condition import Condition

BUILTIN_CONDITIONS: "tuple[Place[Condition], ...]" = places(
    "vsr.graph.conditions",
    {
        "content_matches": "comparison:CONTENT_MATCHES",
        "empty": "presence:EMPTY",
        "equals": "comparison:EQUALS",
        "has_tools": "reply_facts:HAS_TOOLS",
        "logprob_at_least": "reply_facts:LOGPROB_AT_LEAST",
        "resumed": "reply_facts:RESUMED",
        "score_at_least": "comparison:SCORE_AT_LEAST",
        "signal": "signal:SIGNAL",
        "succeeded": "presence:SUCCEEDED",
        "tool_calls": "reply_facts:TOOL_CALLS",
        "usable": "presence:USABLE",
    },
)
