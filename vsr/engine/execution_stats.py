"""Counts of what graphs and their calls came to; plain numbers, told when somebody asks."""

from bisect import bisect_left
from collections import Counter, defaultdict
from typing import Final

import attrs

from vsr.routing.execution import AttemptTrace, ExecutedCall, Execution

BOUNDS_S: Final = tuple(0.005 * 2.5**step for step in range(13))
"""Upper bounds of all histograms, those of the reference's upstream attempts."""
OTHER: Final = "other"
_NO_REASON: Final = "none"
_MAX_STAGES: Final = 1_000
"""Of all configurations that the process has served; beyond them stages are counted together."""

Labels = tuple[str, ...]


@attrs.define(eq=False)
class Durations:
    """One histogram."""

    counts: list[int] = attrs.field(factory=lambda: [0] * (len(BOUNDS_S) + 1), init=False)
    """By the first of `BOUNDS_S` that was not exceeded; the rest is last."""
    seconds: float = attrs.field(default=0.0, init=False)
    """Of all together."""

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.seconds += seconds


def _histograms() -> defaultdict[Labels, Durations]:
    return defaultdict(Durations)


@attrs.define(eq=False)
class ExecutionStats:
    """Of all graphs of the process, by algorithm and stage as the configuration names them."""

    attempts: Counter[Labels] = attrs.field(factory=Counter, init=False)
    """By algorithm, stage, status and reason."""
    durations: defaultdict[Labels, Durations] = attrs.field(factory=_histograms, init=False)
    """By algorithm, stage and status."""
    first_bytes: defaultdict[Labels, Durations] = attrs.field(factory=_histograms, init=False)
    """By algorithm and stage; of calls that got an answer."""
    tokens: Counter[Labels] = attrs.field(factory=Counter, init=False)
    """By algorithm, stage and type; of calls whose usage is known."""
    nano_costs: Counter[Labels] = attrs.field(factory=Counter, init=False)
    """Billionths by algorithm, stage and currency; of calls whose cost is known."""
    executions: defaultdict[Labels, Durations] = attrs.field(factory=_histograms, init=False)
    """By algorithm and status."""
    _stages: set[tuple[str, str]] = attrs.field(factory=set, init=False)

    def add(self, execution: Execution) -> None:
        """Count an execution and all of its calls."""
        algorithm = execution.trace.algorithm
        for call in execution.calls:
            self._add_call(self._stage(algorithm, call.evidence), call)
        if self._is_known(algorithm, ""):
            labels = (algorithm, str(execution.terminal))
        else:
            labels = (OTHER, str(execution.terminal))
        self.executions[labels].add(execution.ended_at - execution.started_at)

    def _add_call(self, stage: Labels, call: ExecutedCall) -> None:
        evidence = call.evidence
        status = str(evidence.status)
        self.attempts[(*stage, status, str(evidence.reason or _NO_REASON))] += 1
        self.durations[(*stage, status)].add(call.ended_at - call.started_at)
        if evidence.first_byte_latency_ms is not None:
            self.first_bytes[stage].add(evidence.first_byte_latency_ms / 1000)
        usage = evidence.usage
        if usage is not None:
            self.tokens[(*stage, "prompt")] += usage.prompt_tokens
            self.tokens[(*stage, "completion")] += usage.completion_tokens
        if call.nano_cost is not None and evidence.currency is not None:
            self.nano_costs[(*stage, evidence.currency)] += call.nano_cost

    def _stage(self, algorithm: str, evidence: AttemptTrace) -> Labels:
        stage = evidence.stage
        return (algorithm, stage) if self._is_known(algorithm, stage) else (OTHER, OTHER)

    def _is_known(self, algorithm: str, stage: str) -> bool:
        key = (algorithm, stage)
        if key not in self._stages:
            if len(self._stages) >= _MAX_STAGES:
                return False
            self._stages.add(key)
        return True
