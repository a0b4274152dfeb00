"""Fallback: the layers of its policy, merged field by field."""

from vsr.config.document import fallback as authored
from vsr.config.quantities import parse_duration_s
from vsr.resources.reliability import (
    CandidateBreaker,
    FallbackPolicy,
    FallbackTrigger,
    LastResort,
)

Layer = authored.FallbackPolicy | authored.FallbackOverride
"""A whole policy of the Router or of a recipe, or what a decision or a step changes of it."""


def fallback_policy(*layers: Layer | None) -> FallbackPolicy:
    """Return the policy of `layers` over the defaults, from the outermost to the innermost.

    They are those of the Router, the recipe, the decision and the step; None stands for a layer
    that says nothing. Overrides have no breaker settings, so those are the recipe's.
    """
    policy = FallbackPolicy()
    for layer in layers:
        if layer is not None:
            policy = merged_fallback(policy, layer)
    return policy


def merged_fallback(outer: FallbackPolicy, layer: Layer) -> FallbackPolicy:
    """Return `outer` with what one further layer says.

    What is 0, empty or omitted keeps the outer value, and `enabled` only what is omitted. Lists
    are replaced as a whole. Source: the reference, except for triggers and the last resort.
    """
    return FallbackPolicy(
        enabled=outer.enabled if layer.enabled is None else layer.enabled,
        max_attempts=layer.max_attempts or outer.max_attempts,
        total_timeout_s=period_s(layer.total_timeout) or outer.total_timeout_s,
        per_attempt_timeout_s=period_s(layer.per_attempt_timeout) or outer.per_attempt_timeout_s,
        retryable_status_codes=(
            frozenset(layer.retryable_status_codes) or outer.retryable_status_codes
        ),
        triggers=frozenset(map(FallbackTrigger, layer.triggers)) or outer.triggers,
        breaker=_breaker(outer.breaker, layer),
        last_resort=_last_resort(outer.last_resort, layer.last_resort),
    )


def period_s(period: str | int | None) -> float:
    """Return the seconds of a duration or of nanoseconds; 0 for an omitted one."""
    if period is None:
        return 0.0
    return period / 1e9 if isinstance(period, int) else parse_duration_s(period)


def _breaker(outer: CandidateBreaker, layer: Layer) -> CandidateBreaker:
    if isinstance(layer, authored.FallbackOverride) or layer.circuit_breaker is None:
        return outer
    block = layer.circuit_breaker
    return CandidateBreaker(
        consecutive_failures=block.consecutive_failures or outer.consecutive_failures,
        cooldown_s=period_s(block.cooldown_period) or outer.cooldown_s,
        half_open_probes=block.half_open_probes or outer.half_open_probes,
    )


def _last_resort(outer: LastResort | None, block: authored.LastResort | None) -> LastResort | None:
    return outer if block is None else LastResort(block.status, block.content)
