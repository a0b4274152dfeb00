"""The signal types this package brings."""

from vsr.decision.signals.context import CONTEXT
from vsr.decision.signals.keyword import KEYWORD

BUILTIN_SIGNALS = (KEYWORD, CONTEXT)
