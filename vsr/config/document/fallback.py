"""Cross-model fallback; what is omitted comes from the layer outside."""

from typing import Annotated, Literal

from vsr.config.document.kinds import Bounds, Count, Period, StatusCode, Text
from vsr.config.document.objects import REQUIRED, DocumentObject

Trigger = Literal["timeout", "5xx", "429", "connect", "content_refusal"]
"""Class of failures; the number among them is a text, too."""


class LastResort(DocumentObject, frozen=True):
    """`fallback.last_resort`: a fixed answer behind the last candidate.

    Not in the canonical document.
    """

    status: Annotated[int, Bounds(200, 599)] = 200
    content: Annotated[Text, REQUIRED] = ""


class CircuitBreakerConfig(DocumentObject, frozen=True):
    """`fallback.circuit_breaker`, per candidate model."""

    consecutive_failures: Count | None = None
    cooldown_period: Period | None = None
    half_open_probes: Count | None = None


class FallbackOverride(DocumentObject, frozen=True):
    """`routing.decisions[].fallback`: what one decision changes of the policy.

    `triggers` and `last_resort` are not in the canonical document.
    """

    enabled: bool | None = None
    max_attempts: Count | None = None
    total_timeout: Period | None = None
    per_attempt_timeout: Period | None = None
    retryable_status_codes: tuple[StatusCode, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    last_resort: LastResort | None = None


class FallbackPolicy(DocumentObject, frozen=True):
    """`global.router.fallback` and `routing.fallback`; an omitted field takes the outer layer's.

    `triggers` and `last_resort` are not in the canonical document.
    """

    version: Annotated[int, Bounds(0, 1)] | None = None
    enabled: bool | None = None
    max_attempts: Count | None = None
    total_timeout: Period | None = None
    per_attempt_timeout: Period | None = None
    retryable_status_codes: tuple[StatusCode, ...] = ()
    circuit_breaker: CircuitBreakerConfig | None = None
    triggers: tuple[Trigger, ...] = ()
    last_resort: LastResort | None = None
