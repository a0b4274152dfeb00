"""Reliability: what a model's block and the blocks of the layers above it mean, in resources."""

import msgspec

from vsr.config.document.decisions import DecisionReliability
from vsr.config.document.providers import Reliability
from vsr.config.quantities import parse_duration_s
from vsr.resources.reliability import (
    BACK_OFF_FACTOR,
    DEFAULT_RETRY_ON,
    BreakerLimits,
    CallOverride,
    CallPolicy,
    HealthCheck,
    LbPolicy,
    OutlierDetection,
    RetryBudget,
    RetryEvidence,
    RetryOn,
    RetryOverride,
    RetryPolicy,
)

DEFAULT_BACK_OFF = "25ms"
"""The first wait before a retry. Source: the reference's reliability defaults."""
MAX_REQUESTS_OF_RETRYING_CLUSTER = 4096
"""Source: as above."""
_DEFAULT_EJECTION_PERCENT = 50


def call_policy(reliability: Reliability) -> CallPolicy:
    """Return what a model says of its calls, the layers above it not yet applied."""
    return CallPolicy(
        per_try_s=_optional_s(reliability.per_try_timeout),
        first_byte_s=_optional_s(reliability.first_byte_timeout),
        retry=retry_policy(reliability),
        total_s=_optional_s(reliability.total_timeout),
        idle_s=_optional_s(reliability.idle_timeout),
        evidence=RetryEvidence(reliability.retry_evidence),
    )


def retry_policy(reliability: Reliability) -> RetryPolicy | None:
    """Return a model's retry policy, None if it has none.

    It has one with `retry_count` or `per_try_timeout`, in the latter case maybe of 0 retries,
    which layers that only add conditions then leave at 0. Source: the reference.
    """
    if not has_retry_policy(reliability):
        return None
    base_s = parse_duration_s(reliability.retry_back_off_base or DEFAULT_BACK_OFF)
    return RetryPolicy(
        count=reliability.retry_count,
        on=_conditions(reliability.retry_on) or DEFAULT_RETRY_ON,
        status_codes=frozenset(reliability.retriable_status_codes),
        back_off_base_s=base_s,
        back_off_max_s=_optional_s(reliability.retry_back_off_max) or BACK_OFF_FACTOR * base_s,
        retry_after_max_s=_optional_s(reliability.retry_after_max),
        evidence=RetryEvidence(reliability.retry_evidence),
    )


def has_retry_policy(reliability: Reliability) -> bool:
    """Return whether layers above the model find a retry policy to change."""
    return reliability.retry_count > 0 or reliability.per_try_timeout is not None


def retry_budget(reliability: Reliability) -> RetryBudget | None:
    """Return a model's retry budget, None if no key of it is set; one key is enough."""
    percent = reliability.retry_budget_percent
    least = reliability.retry_budget_min_concurrency
    if percent is None and least is None:
        return None
    default = RetryBudget()
    return RetryBudget(
        percent=default.percent if percent is None else percent,
        min_concurrency=default.min_concurrency if least is None else least,
    )


def breaker_limits(reliability: Reliability) -> BreakerLimits:
    """Return the limits of a model's cluster; one that retries or ejects takes more requests."""
    default = BreakerLimits().max_requests
    if reliability.retry_count > 0 or reliability.consecutive_5xx > 0:
        default = MAX_REQUESTS_OF_RETRYING_CLUSTER
    return BreakerLimits(
        max_connections=reliability.max_connections,
        max_pending=reliability.max_pending,
        max_requests=reliability.max_requests or default,
        max_retries=reliability.max_retries,
    )


def outlier_detection(reliability: Reliability, *, endpoints: int) -> OutlierDetection | None:
    """Return when an endpoint is ejected, None if never: that is off, or there is no other one.

    A percentage of 0 means the default, and the base counts as the longest ejection if it is
    longer than the constant. Source: the reference.
    """
    if not reliability.consecutive_5xx or endpoints <= 1:
        return None
    base_s = parse_duration_s(reliability.base_ejection_time)
    detection = OutlierDetection(
        consecutive_5xx=reliability.consecutive_5xx,
        base_ejection_s=base_s,
        max_ejection_percent=reliability.max_ejection_percent or _DEFAULT_EJECTION_PERCENT,
    )
    return msgspec.structs.replace(detection, max_ejection_s=max(detection.max_ejection_s, base_s))


def health_check(reliability: Reliability) -> HealthCheck | None:
    """Return how endpoints are asked for their health, None if they are not."""
    if reliability.health_check_path is None:
        return None
    return HealthCheck(
        path=reliability.health_check_path,
        interval_s=parse_duration_s(reliability.health_check_interval),
        timeout_s=parse_duration_s(reliability.health_check_timeout),
    )


def lb_policy(reliability: Reliability) -> LbPolicy:
    """Return how a model's endpoints share its calls."""
    return LbPolicy(reliability.lb_policy)


def call_override(block: DecisionReliability) -> CallOverride:
    """Return what the block of an entrypoint, a recipe, a decision or a step changes."""
    retry = RetryOverride(
        count=block.retry_count,
        on=_conditions(block.retry_on),
        status_codes=frozenset(block.retriable_status_codes),
        back_off_base_s=_optional_s(block.retry_back_off_base),
        back_off_max_s=_optional_s(block.retry_back_off_max),
        retry_after_max_s=_optional_s(block.retry_after_max),
    )
    return CallOverride(
        total_s=_optional_s(block.total_timeout),
        per_try_s=_optional_s(block.per_try_timeout),
        idle_s=_optional_s(block.idle_timeout),
        first_byte_s=_optional_s(block.first_byte_timeout),
        retry=None if retry == RetryOverride() else retry,
    )


def optional_override(block: DecisionReliability | None) -> CallOverride | None:
    """Return what a block changes; None if it is omitted or empty."""
    override = None if block is None else call_override(block)
    return None if override == CallOverride() else override


def merged(base: CallPolicy, *blocks: DecisionReliability | None) -> CallPolicy:
    """Return `base` under the blocks of further layers, from the outermost to the innermost."""
    for block in blocks:
        if block is not None:
            base = call_override(block).over(base)
    return base


def retry_tokens(retry_on: str | None) -> tuple[str, ...]:
    """Return the words of a list of retry conditions, known or not, without blanks around them."""
    words = (retry_on or "").split(",")
    return tuple(word.strip() for word in words if word.strip())


def _conditions(retry_on: str | None) -> frozenset[RetryOn]:
    """Return the known conditions: Envoy ignores others, and so does the reference."""
    words = retry_tokens(retry_on)
    return frozenset(condition for condition in RetryOn if condition in words)


def _optional_s(text: str | None) -> float | None:
    return None if text is None else parse_duration_s(text)
