"""What a scenario expects, held against what a run was."""

import re
from collections.abc import Iterator

import msgspec

from vsr.dryrun.record import CallRecord, Record
from vsr.dryrun.render.words import dollars, joined, outcome, seconds
from vsr.dryrun.scenario import Expectations, TextTest
from vsr.graph.timeline import is_inside

_NANO = 1e9
_CLOSE = 1e-6
"""What the order of equally fast calls adds to times."""


class Miss(msgspec.Struct, frozen=True):
    """One expectation that does not hold."""

    what: str
    expected: str
    got: str


def check(record: Record, expected: Expectations) -> tuple[Miss, ...]:
    """Return every expectation that does not hold, in the order of the documentation."""
    return tuple(
        miss
        for part in (_answer, _calls, _order, _cancelled, _ceilings)
        for miss in part(record, expected)
    )


def count_expectations(expected: Expectations) -> int:
    """Return how many things are expected."""
    given = msgspec.structs.asdict(expected)
    by_model = given.pop("calls_of")
    return sum(value not in (None, ()) for value in given.values()) + len(by_model)


def _answer(record: Record, expected: Expectations) -> Iterator[Miss]:
    answer = record.answer
    if expected.status is not None and expected.status != answer.status:
        told = f": {answer.text}" if answer.text else ""
        yield Miss("status", str(expected.status), f"{outcome(record)}{told}")
    test = expected.result
    if test is not None and not _fits(test, answer.text):
        yield Miss("result", _described(test), repr(answer.text))


def _fits(test: TextTest, text: str) -> bool:
    if test.equals is not None and test.equals != text:
        return False
    if test.contains is not None and test.contains not in text:
        return False
    return test.matches is None or re.search(test.matches, text) is not None


def _described(test: TextTest) -> str:
    parts = []
    if test.equals is not None:
        parts.append(repr(test.equals))
    if test.contains is not None:
        parts.append(f"a text that contains {test.contains!r}")
    if test.matches is not None:
        parts.append(f"a text that matches {test.matches!r}")
    return joined(parts)


def _calls(record: Record, expected: Expectations) -> Iterator[Miss]:
    called = record.models_called()
    told = ", ".join(f"{model} {number}" for model, number in called.items()) or "none"
    if expected.calls is not None and not expected.calls.holds(len(record.calls)):
        yield Miss("calls", str(expected.calls), f"{len(record.calls)} ({told})")
    for model, amounts in expected.calls_of.items():
        if not amounts.holds(called.get(model, 0)):
            yield Miss(f"calls of {model}", str(amounts), f"{called.get(model, 0)} ({told})")
    attempts = record.totals.attempts
    if expected.attempts is not None and not expected.attempts.holds(attempts):
        yield Miss("attempts", str(expected.attempts), str(attempts))
    for name in expected.never_called:
        guilty = [call for call in record.calls if is_of(call, name)]
        if guilty:
            yield Miss("never_called", name, f"it was called {len(guilty)} times")


def is_of(call: CallRecord, name: str) -> bool:
    """Return whether `name` is the call's model, its step, or a step around it."""
    return name == call.model or is_inside(call.step, name) or call.step.endswith(f"/{name}")


def _order(record: Record, expected: Expectations) -> Iterator[Miss]:
    at = 0
    for place, name in enumerate(expected.order):
        while at < len(record.calls) and not is_of(record.calls[at], name):
            at += 1
        if at == len(record.calls):
            before = expected.order[:place]
            got = ", ".join(call.model for call in record.calls) or "no calls"
            wanted = f"{', '.join(before)}, then {name}" if before else name
            yield Miss("order", wanted, got)
            return
        at += 1


def _cancelled(record: Record, expected: Expectations) -> Iterator[Miss]:
    for name in expected.cancelled:
        ends = [call.end for call in record.calls if is_of(call, name)]
        if not any(call.was_cancelled for call in record.calls if is_of(call, name)):
            yield Miss("cancelled", name, joined(ends) or "it was not called")
    within = expected.cancelled_within_s
    if within is None:
        return
    worst = max(record.cut_delays_s, default=0.0)
    if worst > within + _CLOSE:
        yield Miss("cancelled_within", f"at most {seconds(within)}", seconds(worst))
    if record.open_calls:
        got = f"{record.open_calls} never"
        yield Miss("cancelled_within", f"at most {seconds(within)}", got)


def _ceilings(record: Record, expected: Expectations) -> Iterator[Miss]:
    cost = record.totals.nano_usd
    if expected.max_cost is not None:
        limit = f"at most {dollars(round(expected.max_cost * _NANO))}"
        if cost is None and record.calls:
            yield Miss("max_cost", limit, "unknown: no model that was called has a price")
        elif cost is not None and cost > expected.max_cost * _NANO:
            yield Miss("max_cost", limit, dollars(cost))
    if expected.max_tokens is not None and record.totals.tokens > expected.max_tokens:
        yield Miss("max_tokens", f"at most {expected.max_tokens}", str(record.totals.tokens))
    if expected.latency_s is not None and record.latency_s > expected.latency_s + _CLOSE:
        yield Miss("latency", f"at most {seconds(expected.latency_s)}", seconds(record.latency_s))
