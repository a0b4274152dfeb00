"""Reliability of models, and what the layers above them change."""

from collections.abc import Mapping

import pytest
import yaml

from tests.config.reference import reference_dir
from vsr.config.compile.reliability import (
    breaker_limits,
    call_policy,
    health_check,
    lb_policy,
    outlier_detection,
    retry_budget,
    retry_policy,
)
from vsr.config.document.listeners import Listener
from vsr.config.document.providers import Reliability
from vsr.config.quantities import parse_duration_s
from vsr.resources.reliability import (
    DEFAULT_RETRY_ON,
    BreakerLimits,
    CallPolicy,
    HealthCheck,
    LbPolicy,
    OutlierDetection,
    RetryBudget,
    RetryEvidence,
    RetryOn,
    RetryPolicy,
)

RETRY = retry_policy(Reliability(retry_count=1))
EJECTION = outlier_detection(Reliability(consecutive_5xx=1), endpoints=2)
HEALTH = health_check(Reliability(health_check_path="/health"))
BREAKER = breaker_limits(Reliability())
assert RETRY is not None
assert EJECTION is not None
assert HEALTH is not None

# In seconds. Written down, so that the numbers are guarded without the reference, too.
DEFAULTS: Mapping[str, float | str] = {
    "listener_timeout": 300.0,
    "connect_timeout": 10.0,
    "lb_policy": "round_robin",
    "retry_on": "connect-failure,refused-stream",
    "retry_back_off_base": 0.025,
    "retry_back_off_max": 0.25,
    "max_connections": 1024,
    "max_pending_requests": 1024,
    "max_requests": 1024,
    "max_requests_with_retries_or_ejection": 4096,
    "max_retries": 3,
    "retry_budget_percent": 20,
    "retry_budget_min_concurrency": 3,
    "outlier_interval": 10.0,
    "base_ejection_time": 30.0,
    "max_ejection_time": 300.0,
    "max_ejection_percent": 50,
    "health_check_interval": 10.0,
    "health_check_timeout": 2.0,
    "health_check_no_traffic_interval": 60.0,
    "unhealthy_threshold": 3,
    "healthy_threshold": 1,
}
OURS: Mapping[str, object] = {
    "listener_timeout": parse_duration_s(Listener().timeout),
    "connect_timeout": parse_duration_s(Reliability().connect_timeout),
    "lb_policy": lb_policy(Reliability()),
    "retry_on": ",".join(sorted(RETRY.on)),
    "retry_back_off_base": RETRY.back_off_base_s,
    "retry_back_off_max": RETRY.back_off_max_s,
    "max_connections": BREAKER.max_connections,
    "max_pending_requests": BREAKER.max_pending,
    "max_requests": BREAKER.max_requests,
    "max_requests_with_retries_or_ejection": breaker_limits(
        Reliability(retry_count=1)
    ).max_requests,
    "max_retries": BREAKER.max_retries,
    "retry_budget_percent": getattr(
        retry_budget(Reliability(retry_budget_min_concurrency=1)), "percent", None
    ),
    "retry_budget_min_concurrency": getattr(
        retry_budget(Reliability(retry_budget_percent=1.0)), "min_concurrency", None
    ),
    "outlier_interval": EJECTION.interval_s,
    "base_ejection_time": EJECTION.base_ejection_s,
    "max_ejection_time": EJECTION.max_ejection_s,
    "max_ejection_percent": EJECTION.max_ejection_percent,
    "health_check_interval": HEALTH.interval_s,
    "health_check_timeout": HEALTH.timeout_s,
    "health_check_no_traffic_interval": HEALTH.no_traffic_interval_s,
    "unhealthy_threshold": HEALTH.unhealthy_threshold,
    "healthy_threshold": HEALTH.healthy_threshold,
}
OF_THE_POLICIES = {
    "healthy_panic_percent",
    "host_selection_retry_max_attempts",
    "least_request_choice_count",
}
"""Constants that no resource has."""


@pytest.mark.parametrize("key", DEFAULTS)
def test_default_is(key: str) -> None:
    """What a field means that nobody wrote."""
    assert OURS[key] == DEFAULTS[key]


def test_defaults_are_those_of_the_reference() -> None:
    """Value for value, none left out."""
    text = (reference_dir() / "parity-corpus" / "reliability-defaults.yaml").read_text("utf-8")
    durations = {key for key in DEFAULTS if isinstance(DEFAULTS[key], float)}

    values = yaml.safe_load(text)

    assert set(values) == {*DEFAULTS, *OF_THE_POLICIES}
    read = {
        key: parse_duration_s(values[key]) if key in durations else values[key] for key in DEFAULTS
    }
    assert read == DEFAULTS


def test_authored_values_reach_the_call_policy() -> None:
    """Each in its place; `0s` of a total or idle timeout is not an omitted one."""
    block = Reliability(
        per_try_timeout="1s",
        first_byte_timeout="2s",
        total_timeout="0s",
        idle_timeout="3s",
        retry_count=4,
        retry_on="5xx, retriable-4xx,,bogus",
        retriable_status_codes=(404, 425),
        retry_back_off_base="5ms",
        retry_back_off_max="6ms",
        retry_after_max="7s",
        retry_evidence="known_zero",
    )

    assert call_policy(block) == CallPolicy(
        per_try_s=1.0,
        first_byte_s=2.0,
        total_s=0.0,
        idle_s=3.0,
        retry=RetryPolicy(
            count=4,
            on=frozenset({RetryOn.FIVE_XX, RetryOn.RETRIABLE_4XX}),
            status_codes=frozenset({404, 425}),
            back_off_base_s=0.005,
            back_off_max_s=0.006,
            retry_after_max_s=7.0,
            evidence=RetryEvidence.KNOWN_ZERO,
        ),
        evidence=RetryEvidence.KNOWN_ZERO,
    )


def test_omitted_block_leaves_everything_to_the_listener() -> None:
    """No limit, no retry."""
    assert call_policy(Reliability()) == CallPolicy()


@pytest.mark.parametrize(("own_s", "limit_s"), [(None, 90.0), (0.0, None), (5.0, 5.0)])
def test_timeout_is_the_listener_s_unless_set_or_switched_off(
    own_s: float | None, limit_s: float | None
) -> None:
    """Of the total and the idle timeout alike."""
    assert CallPolicy(total_s=own_s).total_limit_s(90.0) == limit_s
    assert CallPolicy(idle_s=own_s).idle_limit_s(90.0) == limit_s


@pytest.mark.parametrize(
    ("block", "count"),
    [
        (Reliability(), None),
        (Reliability(retry_on="5xx", retry_after_max="1s"), None),
        (Reliability(retry_count=1), 1),
        (Reliability(per_try_timeout="1s"), 0),
    ],
)
def test_retry_policy_exists_with_a_count_or_a_per_try_timeout(
    block: Reliability, count: int | None
) -> None:
    """In the latter case with 0 retries; conditions alone make none."""
    policy = retry_policy(block)

    assert (None if policy is None else policy.count) == count


def test_longest_wait_follows_the_base() -> None:
    """Ten times as long unless it is written."""
    policy = retry_policy(Reliability(retry_count=1, retry_back_off_base="300ms"))

    assert policy is not None
    assert policy.back_off_max_s == 3.0


def test_list_without_a_known_condition_means_the_default_ones() -> None:
    """Unknown words are as if they were not there."""
    policy = retry_policy(Reliability(retry_count=1, retry_on="bogus,gateway_error"))

    assert policy is not None
    assert policy.on == DEFAULT_RETRY_ON


@pytest.mark.parametrize(
    ("percent", "least", "budget"),
    [
        (None, None, None),
        (35.5, None, RetryBudget(35.5, 3)),
        (0.0, 0, RetryBudget(0.0, 0)),
        (None, 7, RetryBudget(20.0, 7)),
    ],
)
def test_retry_budget_exists_with_either_key(
    percent: float | None, least: int | None, budget: RetryBudget | None
) -> None:
    """The other one has its default; 0 is a value."""
    block = Reliability(retry_budget_percent=percent, retry_budget_min_concurrency=least)

    assert retry_budget(block) == budget


@pytest.mark.parametrize(
    ("block", "max_requests"),
    [
        (Reliability(per_try_timeout="1s"), 1024),
        (Reliability(consecutive_5xx=1), 4096),
        (Reliability(retry_count=1, max_requests=7), 7),
    ],
)
def test_more_requests_are_taken_where_a_cluster_retries_or_ejects(
    block: Reliability, max_requests: int
) -> None:
    """Unless the number is written; a policy of 0 retries doesn't count."""
    assert breaker_limits(block).max_requests == max_requests


def test_authored_breaker_limits_are_kept() -> None:
    """No retry at once is a limit, too."""
    block = Reliability(max_connections=1, max_pending=2, max_requests=3, max_retries=0)

    assert breaker_limits(block) == BreakerLimits(1, 2, 3, 0)


@pytest.mark.parametrize(
    ("count", "endpoints", "is_on"), [(0, 2, False), (1, 1, False), (1, 2, True)]
)
def test_endpoints_are_ejected_only_where_there_is_another(
    count: int, endpoints: int, *, is_on: bool
) -> None:
    """And where it is switched on."""
    detection = outlier_detection(Reliability(consecutive_5xx=count), endpoints=endpoints)

    assert (detection is not None) == is_on


@pytest.mark.parametrize(
    ("base", "percent", "detection"),
    [
        ("5m", 0, OutlierDetection(3, 300.0, 300.0, 50)),
        ("301s", 100, OutlierDetection(3, 301.0, 301.0, 100)),
    ],
)
def test_ejection_keeps_its_settings(base: str, percent: int, detection: OutlierDetection) -> None:
    """0 percent means 50, and a base beyond 300 s is the longest time itself."""
    block = Reliability(consecutive_5xx=3, base_ejection_time=base, max_ejection_percent=percent)

    assert outlier_detection(block, endpoints=2) == detection


def test_health_check_keeps_its_settings() -> None:
    """There is one only with a path."""
    block = Reliability(
        health_check_path="/ok", health_check_interval="1m", health_check_timeout="500ms"
    )

    assert health_check(block) == HealthCheck("/ok", 60.0, 0.5)
    assert health_check(Reliability()) is None


@pytest.mark.parametrize("word", ["round_robin", "least_request", "p2c_ewma"])
def test_balancer_is_that_of_the_word(word: str) -> None:
    """Each word of the document has its policy."""
    block = Reliability(lb_policy=word)  # type: ignore[arg-type]  # one of the words

    assert lb_policy(block) is LbPolicy(word)
