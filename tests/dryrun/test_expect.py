"""Expectations, held against runs."""

import pytest

from tests.dryrun.records import answered, call, record
from tests.dryrun.small_graphs import scenario_of
from vsr.dryrun.expect import check, count_expectations
from vsr.dryrun.record import Record
from vsr.dryrun.scenario import Expectations
from vsr.routing.outcome import Cause

RUN = record(
    call(1, "alpha", (0, 1)), call(2, "beta", (0, 1), cause=Cause.LOST), call(3, "alpha", (1, 3))
)


def expected(text: str) -> Expectations:
    """Return expectations from YAML."""
    expect = scenario_of(f"{{expect: {text}}}").expect
    assert expect is not None
    return expect


@pytest.mark.parametrize(
    "text",
    [
        "{status: 200, result: Yes., latency: 3s}",
        "{result: {contains: es, matches: '^Y'}}",
        "{calls: 3, attempts: {min: 1, max: 3}}",
        "{calls: {alpha: 2, beta: 1, gamma: 0}}",
        "{order: [alpha, beta, alpha]}",
        "{order: ['panel[0]', 'panel[2]/answer']}",
        "{never_called: [gamma], cancelled: [beta]}",
        "{max_cost: 0.003, max_tokens: 45}",
        "{cancelled_within: 50ms}",
    ],
)
def test_what_is_true_is_no_miss(text: str) -> None:
    """Each form of each expectation holds on a run that it describes."""
    assert check(RUN, expected(text)) == ()


@pytest.mark.parametrize(
    ("text", "what", "got"),
    [
        ("{status: 502}", "status", "200: Yes."),
        ("{result: No.}", "result", "'Yes.'"),
        ("{result: {contains: No}}", "result", "'Yes.'"),
        ("{result: {matches: ^No}}", "result", "'Yes.'"),
        ("{calls: 2}", "calls", "3 (alpha 2, beta 1)"),
        ("{calls: {alpha: 1}}", "calls of alpha", "2 (alpha 2, beta 1)"),
        ("{calls: {gamma: {min: 1}}}", "calls of gamma", "0 (alpha 2, beta 1)"),
        ("{attempts: {max: 2}}", "attempts", "3"),
        ("{order: [beta, alpha, alpha]}", "order", "alpha, beta, alpha"),
        ("{never_called: [beta]}", "never_called", "it was called 1 times"),
        ("{cancelled: [alpha]}", "cancelled", "ok and ok"),
        ("{cancelled: [gamma]}", "cancelled", "it was not called"),
        ("{max_cost: 0.002}", "max_cost", "$0.003"),
        ("{max_tokens: 44}", "max_tokens", "45"),
        ("{latency: 2999ms}", "latency", "3.000s"),
    ],
)
def test_what_is_not_true_is_told_with_what_was(text: str, what: str, got: str) -> None:
    """A miss says what came in its place."""
    [miss] = check(RUN, expected(text))

    assert (miss.what, miss.got) == (what, got)


def test_cost_of_models_without_a_price_holds_no_ceiling() -> None:
    """Unknown is not cheap."""
    free = Record("test", 0, answered(), calls=RUN.calls)

    [miss] = check(free, expected("{max_cost: 1}"))

    assert "unknown" in miss.got


def test_late_cancellation_is_a_miss() -> None:
    """Both a connection that closed late, and a call that nobody ended."""
    late = Record("test", 0, answered(), cut_delays_s=(0.0, 0.2))
    left = Record("test", 0, answered(), open_calls=1)

    assert [miss.got for miss in check(late, expected("{cancelled_within: 50ms}"))] == ["0.200s"]
    assert [miss.got for miss in check(left, expected("{cancelled_within: 50ms}"))] == ["1 never"]


def test_expectations_are_counted() -> None:
    """One for each thing that is said, models one by one."""
    assert count_expectations(expected("{status: 200, calls: {a: 1, b: 2}, order: [a]}")) == 4
