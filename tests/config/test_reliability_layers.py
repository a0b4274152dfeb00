"""What an entrypoint, a recipe, a decision or a step changes of a model's reliability."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.config.compile.reliability import (
    call_override,
    call_policy,
    merged,
    optional_override,
)
from vsr.config.document.decisions import DecisionReliability
from vsr.config.document.providers import Reliability
from vsr.resources.reliability import (
    DEFAULT_RETRY_ON,
    CallOverride,
    CallPolicy,
    RetryEvidence,
    RetryOn,
    RetryPolicy,
)

MODEL = call_policy(
    Reliability(
        per_try_timeout="1s",
        first_byte_timeout="2s",
        total_timeout="3s",
        idle_timeout="4s",
        retry_count=2,
        retry_on="5xx",
        retriable_status_codes=(404,),
        retry_back_off_base="10ms",
        retry_back_off_max="30ms",
        retry_after_max="5s",
    )
)
TIMEOUTS = {
    "per_try_timeout": "per_try_s",
    "first_byte_timeout": "first_byte_s",
    "total_timeout": "total_s",
    "idle_timeout": "idle_s",
}
RETRY_BLOCKS = {
    "retry_count": DecisionReliability(retry_count=0),
    "retry_on": DecisionReliability(retry_on="reset"),
    "retriable_status_codes": DecisionReliability(retriable_status_codes=(425,)),
    "retry_back_off_base": DecisionReliability(retry_back_off_base="7ms"),
    "retry_back_off_max": DecisionReliability(retry_back_off_max="8ms"),
    "retry_after_max": DecisionReliability(retry_after_max="9s"),
}


def retry_under(block: DecisionReliability, base: CallPolicy = MODEL) -> RetryPolicy:
    """Return the retry policy under one block; there must be one."""
    policy = merged(base, block).retry
    assert policy is not None
    return policy


@pytest.mark.parametrize("key", TIMEOUTS)
def test_set_timeout_replaces(key: str) -> None:
    """Step 1, for each of the four; the others stay."""
    changed = merged(MODEL, DecisionReliability(**{key: "7s"}))  # type: ignore[arg-type]  # a timeout

    values = {name: getattr(changed, name) for name in TIMEOUTS.values()}
    expected = {name: getattr(MODEL, name) for name in TIMEOUTS.values()}
    assert values == {**expected, TIMEOUTS[key]: 7.0}


@pytest.mark.parametrize("key", TIMEOUTS)
def test_timeout_of_0_is_switched_off(key: str) -> None:
    """Step 1: nothing ends the wait, not even the listener's timeout."""
    changed = merged(MODEL, DecisionReliability(**{key: "0s"}))  # type: ignore[arg-type]  # a timeout

    limits = {
        "per_try_timeout": changed.per_try_s,
        "first_byte_timeout": changed.first_byte_s,
        "total_timeout": changed.total_limit_s(300.0),
        "idle_timeout": changed.idle_limit_s(300.0),
    }
    assert [name for name, limit in limits.items() if limit is None] == [key]


def test_timeouts_alone_leave_the_retry_policy() -> None:
    """Step 2, where there is one and where there is none."""
    block = DecisionReliability(per_try_timeout="7s", total_timeout="0s")

    assert merged(MODEL, block).retry == MODEL.retry
    assert merged(CallPolicy(), block).retry is None


@pytest.mark.parametrize("key", RETRY_BLOCKS)
def test_any_retry_field_begins_a_policy_of_one_retry(key: str) -> None:
    """Step 3, where the model has none."""
    policy = retry_under(RETRY_BLOCKS[key], CallPolicy())

    assert policy.count == (0 if key == "retry_count" else 1)


def test_conditions_over_a_policy_of_0_retries_make_none() -> None:
    """Step 3: a model with a per-try timeout has a policy already."""
    base = call_policy(Reliability(per_try_timeout="1s"))

    policy = retry_under(DecisionReliability(retry_on="5xx"), base)

    assert policy.count == 0
    assert policy.on == {*DEFAULT_RETRY_ON, RetryOn.FIVE_XX}


@pytest.mark.parametrize("count", [0, 5])
def test_count_replaces(count: int) -> None:
    """Step 4: being there matters, so 0 ends retries."""
    assert retry_under(DecisionReliability(retry_count=count)).count == count


def test_conditions_are_added() -> None:
    """Step 5: the model's stay."""
    policy = retry_under(DecisionReliability(retry_on="reset, gateway-error"))

    assert policy.on == {RetryOn.FIVE_XX, RetryOn.RESET, RetryOn.GATEWAY_ERROR}


def test_empty_conditions_become_the_default_ones() -> None:
    """Step 5, where neither the model nor the block names any."""
    policy = retry_under(DecisionReliability(retriable_status_codes=(404,)), CallPolicy())

    assert policy.on == DEFAULT_RETRY_ON


def test_conditions_that_begin_a_policy_stand_alone() -> None:
    """Step 5: the default ones come only into an empty set."""
    policy = retry_under(DecisionReliability(retry_on="reset"), CallPolicy())

    assert policy.on == {RetryOn.RESET}


def test_unknown_conditions_change_nothing() -> None:
    """They are as if they were not there."""
    block = DecisionReliability(retry_on="bogus")

    assert merged(MODEL, block) == MODEL
    assert merged(CallPolicy(), block).retry is None


def test_status_codes_are_added() -> None:
    """Step 6."""
    assert retry_under(RETRY_BLOCKS["retriable_status_codes"]).status_codes == {404, 425}


def test_waits_replace() -> None:
    """Step 7: each alone."""
    base, longest, after = (
        retry_under(RETRY_BLOCKS[f"retry_{key}"])
        for key in ("back_off_base", "back_off_max", "after_max")
    )

    assert (base.back_off_base_s, base.back_off_max_s) == (0.007, 0.03)
    assert (longest.back_off_base_s, longest.back_off_max_s) == (0.01, 0.008)
    assert (base.retry_after_max_s, after.retry_after_max_s) == (5.0, 9.0)


def test_longest_wait_follows_a_new_base_unless_it_was_written() -> None:
    """Without one anywhere it is ten times the base that counts in the end."""
    base = call_policy(Reliability(retry_count=1))

    policy = retry_under(DecisionReliability(retry_back_off_base="100ms"), base)

    assert (policy.back_off_base_s, policy.back_off_max_s) == (0.1, 1.0)


@pytest.mark.parametrize("count", [0, 2])
def test_model_s_evidence_stays(count: int) -> None:
    """Also where only a layer above makes retries, and for fallbacks."""
    base = call_policy(Reliability(retry_count=count, retry_evidence="known_zero"))

    changed = merged(base, DecisionReliability(retry_count=1))

    assert changed.evidence is RetryEvidence.KNOWN_ZERO
    assert changed.retry is not None
    assert changed.retry.evidence is RetryEvidence.KNOWN_ZERO


def test_layers_apply_from_the_outermost_to_the_innermost() -> None:
    """Entrypoint, recipe, decision, step; one that says nothing is left out."""
    changed = merged(
        MODEL,
        DecisionReliability(retry_count=1, retry_on="reset", total_timeout="10s"),
        None,
        DecisionReliability(retry_count=4, retry_on="retriable-4xx", idle_timeout="11s"),
        DecisionReliability(retry_count=3),
    )

    assert changed.retry is not None
    assert changed.retry.count == 3
    assert changed.retry.on == {RetryOn.FIVE_XX, RetryOn.RESET, RetryOn.RETRIABLE_4XX}
    assert (changed.total_s, changed.idle_s) == (10.0, 11.0)


def test_override_without_retry_fields_has_no_retry_override() -> None:
    """So that whoever has no policy gets none from it."""
    assert call_override(DecisionReliability(total_timeout="0s")) == CallOverride(total_s=0.0)


def test_empty_block_is_no_override() -> None:
    """Nor is an omitted one; any field makes one."""
    assert optional_override(None) is None
    assert optional_override(DecisionReliability()) is None
    assert optional_override(DecisionReliability(idle_timeout="0s")) == CallOverride(idle_s=0.0)


def durations(*, least: int) -> st.SearchStrategy[str]:
    """Return durations in whole milliseconds."""
    return st.integers(least, 5000).map(lambda number: f"{number}ms")


CODES = st.lists(st.integers(100, 599), max_size=2).map(tuple)
CONDITIONS = st.sets(st.sampled_from(list(RetryOn)), min_size=1, max_size=3).map(",".join)
BLOCKS = st.builds(
    DecisionReliability,
    total_timeout=st.none() | durations(least=0),
    per_try_timeout=st.none() | durations(least=0),
    idle_timeout=st.none() | durations(least=0),
    first_byte_timeout=st.none() | durations(least=0),
    retry_count=st.none() | st.integers(0, 5),
    retry_on=st.none() | CONDITIONS,
    retriable_status_codes=CODES,
    retry_back_off_base=st.none() | durations(least=1),
    retry_back_off_max=st.none() | durations(least=1),
    retry_after_max=st.none() | durations(least=1),
)
POLICIES = st.builds(
    Reliability,
    per_try_timeout=st.none() | durations(least=1),
    retry_count=st.integers(0, 5),
    retry_on=st.none() | CONDITIONS,
    retriable_status_codes=CODES,
    retry_back_off_base=st.none() | durations(least=1),
    retry_back_off_max=st.none() | durations(least=1),
).map(call_policy)


@settings(deadline=None)
@given(POLICIES, BLOCKS)
def test_same_block_twice_is_the_same_block_once(
    base: CallPolicy, block: DecisionReliability
) -> None:
    """A recipe and its decision may say the same."""
    once = merged(base, block)

    assert merged(once, block) == once


@settings(deadline=None)
@given(POLICIES, BLOCKS, BLOCKS)
def test_layers_only_ever_widen_conditions_and_codes(
    base: CallPolicy, outer: DecisionReliability, inner: DecisionReliability
) -> None:
    """And no policy is lost or without a condition."""
    policies = [base.retry, merged(base, outer).retry, merged(base, outer, inner).retry]

    for before, after in pairwise(policies):
        if before is not None:
            assert after is not None
            assert before.on <= after.on
            assert before.status_codes <= after.status_codes
        assert after is None or after.on


@settings(deadline=None)
@given(POLICIES)
def test_empty_block_changes_nothing(base: CallPolicy) -> None:
    """Nor does the absence of one."""
    assert merged(base, DecisionReliability()) == base == merged(base, None)
