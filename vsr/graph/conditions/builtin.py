"""The conditions that ship with the Router."""

from vsr.graph.conditions.comparison import CONTENT_MATCHES, EQUALS, SCORE_AT_LEAST
from vsr.graph.conditions.condition import Condition
from vsr.graph.conditions.presence import EMPTY, SUCCEEDED, USABLE
from vsr.graph.conditions.reply_facts import HAS_TOOLS, LOGPROB_AT_LEAST, RESUMED, TOOL_CALLS
from vsr.registry import Extension

BUILTIN_CONDITIONS: tuple[Extension[Condition], ...] = (
    CONTENT_MATCHES,
    EMPTY,
    EQUALS,
    HAS_TOOLS,
    LOGPROB_AT_LEAST,
    RESUMED,
    SCORE_AT_LEAST,
    SUCCEEDED,
    TOOL_CALLS,
    USABLE,
)
