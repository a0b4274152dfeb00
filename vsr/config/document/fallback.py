"""Cross-model fallback; what is omitted comes from the layer outside."""

from typing import Annotated

import attrs

from vsr.config.document.kinds import Bounds, Count, Period, StatusCode


@attrs.frozen
class CircuitBreakerConfig:
    """`fallback.circuit_breaker`, per candidate model."""

    consecutive_failures: Count | None = None
    cooldown_period: Period | None = None
    half_open_probes: Count | None = None


@attrs.frozen
class FallbackOverride:
    """`routing.decisions[].fallback`: what one decision changes of the policy."""

    enabled: bool | None = None
    max_attempts: Count | None = None
    total_timeout: Period | None = None
    per_attempt_timeout: Period | None = None
    retryable_status_codes: tuple[StatusCode, ...] = ()


@attrs.frozen
class FallbackPolicy:
    """`global.router.fallback` and `routing.fallback`; an omitted field takes the outer layer's."""

    version: Annotated[int, Bounds(0, 1)] | None = None
    enabled: bool | None = None
    max_attempts: Count | None = None
    total_timeout: Period | None = None
    per_attempt_timeout: Period | None = None
    retryable_status_codes: tuple[StatusCode, ...] = ()
    circuit_breaker: CircuitBreakerConfig | None = None
