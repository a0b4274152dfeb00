"""Fallback policies: how their layers merge, and what is refused of them."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vsr.config.compile.fallback import Layer, fallback_policy, merged_fallback
from vsr.config.document import fallback as authored
from vsr.config.report import Report
from vsr.config.source import read_bytes
from vsr.errors import ConfigRejected, Problem
from vsr.resources.reliability import (
    CandidateBreaker,
    FallbackPolicy,
    FallbackTrigger,
    LastResort,
)

GLOBAL = authored.FallbackPolicy(
    enabled=True,
    max_attempts=4,
    total_timeout="40s",
    per_attempt_timeout="4s",
    retryable_status_codes=(500,),
    circuit_breaker=authored.CircuitBreakerConfig(5, "50s", 6),
    triggers=("connect",),
    last_resort=authored.LastResort(503, "global"),
)
RECIPE = authored.FallbackPolicy(
    enabled=False,
    max_attempts=5,
    total_timeout="50s",
    per_attempt_timeout="5s",
    retryable_status_codes=(501, 502),
    circuit_breaker=authored.CircuitBreakerConfig(7, "70s", 8),
    triggers=("timeout", "429"),
    last_resort=authored.LastResort(200, "recipe"),
)
DECISION = authored.FallbackOverride(
    enabled=True,
    max_attempts=6,
    total_timeout=60_000_000_000,
    per_attempt_timeout=6_500_000_000,
    retryable_status_codes=(503,),
    triggers=("5xx",),
    last_resort=authored.LastResort(429, "decision"),
)
STEP = authored.FallbackOverride(
    enabled=False,
    max_attempts=7,
    total_timeout="70s",
    per_attempt_timeout="7s",
    retryable_status_codes=(504,),
    triggers=("content_refusal",),
    last_resort=authored.LastResort(502, "step"),
)
MERGED = {
    "defaults": FallbackPolicy(),
    "global": FallbackPolicy(
        enabled=True,
        max_attempts=4,
        total_timeout_s=40.0,
        per_attempt_timeout_s=4.0,
        retryable_status_codes=frozenset({500}),
        triggers=frozenset({FallbackTrigger.CONNECT}),
        breaker=CandidateBreaker(5, 50.0, 6),
        last_resort=LastResort(503, "global"),
    ),
    "recipe": FallbackPolicy(
        enabled=False,
        max_attempts=5,
        total_timeout_s=50.0,
        per_attempt_timeout_s=5.0,
        retryable_status_codes=frozenset({501, 502}),
        triggers=frozenset({FallbackTrigger.TIMEOUT, FallbackTrigger.RATE_LIMITED}),
        breaker=CandidateBreaker(7, 70.0, 8),
        last_resort=LastResort(200, "recipe"),
    ),
    "decision": FallbackPolicy(
        enabled=True,
        max_attempts=6,
        total_timeout_s=60.0,
        per_attempt_timeout_s=6.5,
        retryable_status_codes=frozenset({503}),
        triggers=frozenset({FallbackTrigger.FIVE_XX}),
        breaker=CandidateBreaker(7, 70.0, 8),
        last_resort=LastResort(429, "decision"),
    ),
    "step": FallbackPolicy(
        enabled=False,
        max_attempts=7,
        total_timeout_s=70.0,
        per_attempt_timeout_s=7.0,
        retryable_status_codes=frozenset({504}),
        triggers=frozenset({FallbackTrigger.CONTENT_REFUSAL}),
        breaker=CandidateBreaker(7, 70.0, 8),
        last_resort=LastResort(502, "step"),
    ),
}
LAYERS: tuple[Layer, ...] = (GLOBAL, RECIPE, DECISION, STEP)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("enabled", False),
        ("max_attempts", 3),
        ("total_timeout_s", 30.0),
        ("per_attempt_timeout_s", 10.0),
        ("retryable_status_codes", {502, 503, 504}),
        ("triggers", set()),
        ("breaker", CandidateBreaker(3, 30.0, 1)),
        ("last_resort", None),
    ],
)
def test_default_is(field: str, value: object) -> None:
    """What a document gets that says nothing; a policy starts from here, too."""
    assert getattr(fallback_policy(), field) == value
    assert getattr(fallback_policy(authored.FallbackPolicy(version=1)), field) == value


@pytest.mark.parametrize("depth", range(5), ids=MERGED)
def test_inner_layer_wins(depth: int) -> None:
    """Each layer in turn says everything it can; breaker settings are never an override's."""
    policy = fallback_policy(*LAYERS[:depth])

    assert policy == list(MERGED.values())[depth]


@pytest.mark.parametrize("layer", LAYERS, ids=["global", "recipe", "decision", "step"])
def test_layer_that_is_left_out_is_as_if_it_said_nothing(layer: Layer) -> None:
    """Wherever it would stand."""
    silent = [None if each is layer else each for each in LAYERS]
    fewer = [each for each in LAYERS if each is not layer]

    assert fallback_policy(*silent) == fallback_policy(*fewer)


@pytest.mark.parametrize("cls", [authored.FallbackPolicy, authored.FallbackOverride])
def test_nothing_keeps_the_outer_value(cls: type[Layer]) -> None:
    """0, an empty list and an omitted field alike, in policies and overrides."""
    zeros = cls(max_attempts=0, total_timeout="0s", per_attempt_timeout=0)

    assert merged_fallback(MERGED["global"], zeros) == MERGED["global"]
    assert merged_fallback(MERGED["global"], cls()) == MERGED["global"]


def test_zeros_keep_the_outer_breaker_settings() -> None:
    """Field by field."""
    block = authored.CircuitBreakerConfig(0, "0s", 9)

    policy = fallback_policy(GLOBAL, authored.FallbackPolicy(circuit_breaker=block))

    assert policy.breaker == CandidateBreaker(5, 50.0, 9)


@pytest.mark.parametrize("is_enabled", [True, False])
def test_switch_has_three_states(*, is_enabled: bool) -> None:
    """Omitted inherits, and an explicit false wins over an outer true."""
    outer = authored.FallbackPolicy(enabled=is_enabled)

    assert fallback_policy(outer, authored.FallbackOverride()).enabled is is_enabled
    inner = authored.FallbackOverride(enabled=not is_enabled)
    assert fallback_policy(outer, inner).enabled is not is_enabled


@pytest.mark.parametrize("field", ["max_attempts", "total_timeout", "retryable_status_codes"])
def test_fields_are_inherited_one_by_one(field: str) -> None:
    """A layer that sets one field leaves the others."""
    inner = authored.FallbackOverride(**{field: getattr(DECISION, field)})

    changed = fallback_policy(GLOBAL, inner)

    name = "total_timeout_s" if field == "total_timeout" else field
    value = getattr(MERGED["decision"], name)
    assert changed == msgspec.structs.replace(MERGED["global"], **{name: value})


COUNTS = st.none() | st.integers(0, 9)
PERIODS = COUNTS.map(lambda number: number if number is None else f"{number}s")
STATUSES = st.lists(st.integers(100, 599), max_size=2).map(tuple)
OVERRIDES = st.builds(
    authored.FallbackOverride,
    enabled=st.none() | st.booleans(),
    max_attempts=COUNTS,
    total_timeout=PERIODS,
    per_attempt_timeout=PERIODS,
    retryable_status_codes=STATUSES,
)


@settings(deadline=None)
@given(st.lists(OVERRIDES, max_size=4))
def test_each_field_is_that_of_the_innermost_layer_that_says_it(
    layers: list[authored.FallbackOverride],
) -> None:
    """However many layers there are; no limit is ever 0."""
    policy = fallback_policy(*layers)

    said = [each.max_attempts for each in layers if each.max_attempts]
    listed = [set(each.retryable_status_codes) for each in layers if each.retryable_status_codes]
    switches = [each.enabled for each in layers if each.enabled is not None]
    assert policy.max_attempts == [3, *said][-1]
    assert policy.retryable_status_codes == [{502, 503, 504}, *listed][-1]
    assert policy.enabled is [False, *switches][-1]
    assert min(policy.total_timeout_s, policy.per_attempt_timeout_s) > 0


def document(router: str = "", recipe: str = "", decision: str = "") -> str:
    """Return a document with the fields of each layer."""
    return f"""
global: {{router: {{fallback: {{{router}}}}}}}
routing:
  fallback: {{{recipe}}}
  decisions: [{{name: d, fallback: {{{decision}}}}}]
"""


def problems_of(text: str) -> list[str]:
    """Return where a document has faults."""
    try:
        read_bytes(text.encode(), {}, Report("doc.yaml"))
    except ConfigRejected as error:
        return [problem.path for problem in error.problems]
    return []


def warnings_of(text: str) -> tuple[Problem, ...]:
    """Return what a valid document is warned of."""
    return read_bytes(text.encode(), {}, Report("doc.yaml")).warnings


ROUTER = "global.router.fallback"
LAST = "last_resort: {content: a, status: "


@pytest.mark.parametrize(
    ("field", "place"),
    [
        ("max_attempts: -1", "max_attempts"),
        ("total_timeout: -1ns", "total_timeout"),
        ("total_timeout: 9223372036854775808", "total_timeout"),
        ("per_attempt_timeout: -1", "per_attempt_timeout"),
        ("retryable_status_codes: [99]", "retryable_status_codes[0]"),
        ("retryable_status_codes: [600]", "retryable_status_codes[0]"),
        ("triggers: [timeouts]", "triggers[0]"),
        (LAST + "199}", "last_resort.status"),
        (LAST + "600}", "last_resort.status"),
        (LAST + "204}", "last_resort.status"),
        (LAST + "205}", "last_resort.status"),
        (LAST + "304}", "last_resort.status"),
        ("last_resort: {}", "last_resort.content"),
        ("last_resort: {content: ''}", "last_resort.content"),
    ],
)
def test_value_beyond_its_bounds_is_refused(field: str, place: str) -> None:
    """In every layer."""
    text = document(field, field, field)

    layers = (ROUTER, "routing.fallback", "routing.decisions[0].fallback")
    assert problems_of(text) == [f"{layer}.{place}" for layer in layers]


@pytest.mark.parametrize(
    "field",
    [
        "max_attempts: 1",
        "total_timeout: 9223372036854775807",
        "per_attempt_timeout: 1",
        "retryable_status_codes: [100, 599]",
        "triggers: [timeout, 5xx, '429', connect, content_refusal]",
        "triggers: [timeout, 429]",
        LAST + "200}",
        LAST + "599}",
    ],
)
def test_value_at_its_bounds_is_taken(field: str) -> None:
    """In every layer."""
    assert problems_of(document(field, field, field)) == []


@pytest.mark.parametrize(
    ("field", "is_refused"),
    [
        ("version: 0", False),
        ("version: 1", False),
        ("version: 2", True),
        ("circuit_breaker: {consecutive_failures: 0}", False),
        ("circuit_breaker: {consecutive_failures: -1}", True),
        ("circuit_breaker: {cooldown_period: 0}", False),
        ("circuit_breaker: {cooldown_period: -1s}", True),
        ("circuit_breaker: {cooldown_period: 9223372036854775808}", True),
        ("circuit_breaker: {half_open_probes: 0}", False),
        ("circuit_breaker: {half_open_probes: -1}", True),
    ],
)
def test_whole_policies_have_a_version_and_a_breaker(field: str, *, is_refused: bool) -> None:
    """Overrides have neither: a breaker belongs to its backend."""
    assert bool(problems_of(document(field, field))) is is_refused
    assert problems_of(document(decision=field)) != []


@pytest.mark.parametrize(
    ("layers", "place"),
    [
        (("total_timeout: 10s",), None),
        (("total_timeout: 9s",), f"{ROUTER}.total_timeout"),
        (("per_attempt_timeout: 30s",), None),
        (("per_attempt_timeout: 31s",), f"{ROUTER}.per_attempt_timeout"),
        (("total_timeout: 1s, per_attempt_timeout: 1s",), None),
        (("total_timeout: 1s, per_attempt_timeout: 2s",), f"{ROUTER}.per_attempt_timeout"),
        (("total_timeout: 0, per_attempt_timeout: 31s",), f"{ROUTER}.per_attempt_timeout"),
        (("total_timeout: 60s", "per_attempt_timeout: 60s"), None),
        (
            ("total_timeout: 60s", "per_attempt_timeout: 61s"),
            "routing.fallback.per_attempt_timeout",
        ),
        (("per_attempt_timeout: 5s", "total_timeout: 4s"), "routing.fallback.total_timeout"),
        (("", "per_attempt_timeout: 5s", "total_timeout: 6s"), None),
        (
            ("", "per_attempt_timeout: 5s", "total_timeout: 4s"),
            "routing.decisions[0].fallback.total_timeout",
        ),
        (("total_timeout: soon", "per_attempt_timeout: 61s"), f"{ROUTER}.total_timeout"),
    ],
)
def test_attempt_takes_no_longer_than_all_together(
    layers: tuple[str, ...], place: str | None
) -> None:
    """After merging, defaults included, and told once, where it came about."""
    assert problems_of(document(*layers)) == [place] * (place is not None)


@pytest.mark.parametrize(
    ("router", "recipe", "place"),
    [
        ("enabled: true, max_attempts: 0", "", f"{ROUTER}.max_attempts"),
        ("enabled: true", "max_attempts: 0", "routing.fallback.max_attempts"),
        ("enabled: true, max_attempts: 1", "", None),
        ("enabled: false, max_attempts: 0", "", None),
        ("max_attempts: 0", "", None),
        ("enabled: true", "enabled: false, max_attempts: 0", None),
    ],
)
def test_enabled_policy_makes_at_least_one_attempt(
    router: str, recipe: str, place: str | None
) -> None:
    """Whichever layer enabled it; an override of 0 is as if it were not there."""
    text = document(router, recipe, "max_attempts: 0")

    assert problems_of(text) == [place] * (place is not None)


@pytest.mark.parametrize(
    "field",
    [
        "max_attempts: 0",
        "total_timeout: 0s",
        "per_attempt_timeout: 0",
        "retryable_status_codes: []",
        "triggers: []",
    ],
)
def test_nothing_that_was_written_is_warned_of(field: str) -> None:
    """Its author may think that it switches something off."""
    key, _, value = field.partition(": ")

    found = warnings_of(document(decision=field))

    shown = repr(value) if value == "0s" else value
    place = f"routing.decisions[0].fallback.{key}"
    what = f"has no effect: {shown} keeps what the layer outside says"
    assert [str(each) for each in found] == [f"doc.yaml:5: {place}: {what}, remove it"]


@pytest.mark.parametrize("key", ["consecutive_failures", "cooldown_period", "half_open_probes"])
def test_nothing_of_a_breaker_is_warned_of(key: str) -> None:
    """As of the rest of the policy."""
    found = warnings_of(document(f"circuit_breaker: {{{key}: 0}}"))

    assert [each.path for each in found] == [f"{ROUTER}.circuit_breaker.{key}"]


def test_policy_without_any_zero_is_not_warned_of() -> None:
    """Nor is one that is empty."""
    text = document("max_attempts: 1, total_timeout: 10s, triggers: [connect]")

    assert warnings_of(text) == ()
