"""Watches one run of a graph, and says afterwards what it was."""

import sys
from collections.abc import Callable, Mapping, Sequence

import attrs

from vsr.dryrun.record import (
    AnswerRecord,
    AttemptRecord,
    CallRecord,
    Ceilings,
    Record,
    Reserved,
    StepRecord,
    Totals,
)
from vsr.graph.ledger import LedgerEntry
from vsr.graph.run import GraphRun
from vsr.graph.timeline import Timeline, cut_at, end_of
from vsr.resources.cluster import Cluster
from vsr.routing.budget import Price, Reservation
from vsr.routing.outcome import Attempt, Usage


@attrs.define(eq=False)
class Observer:
    """Watches one run; all times are monotonic seconds."""

    now: Callable[[], float]
    run: GraphRun | None = None
    timeline: Timeline = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.timeline = Timeline(self.now, limit=sys.maxsize)

    def attach(self, run: GraphRun) -> None:
        """Watch `run`."""
        self.run = run
        run.watch = self.timeline

    def steps(self, start: float) -> tuple[StepRecord, ...]:
        """Return the steps in the order of their starts.

        Args:
            start: of the run.
        """
        end = self.now()
        entries = [] if self.run is None else self.run.ledger.entries
        found: list[StepRecord] = []
        for path, span in self.timeline.spans.items():
            ended_at = span.ended_at if span.tail is None else end_of(span.tail)
            if ended_at is None:
                ended_at = cut_at(path, self.timeline, entries, end)
            found.append(
                StepRecord(
                    path,
                    span.type,
                    span.started_at - start,
                    ended_at - start,
                    None if span.failure is None else span.failure.message,
                    is_cut=span.ended_at is None,
                )
            )
        return tuple(found)

    def tails(self) -> frozenset[int]:
        """Return the ordinals of the calls that were left to the Router to make."""
        spans = self.timeline.spans.values()
        return frozenset(each.tail.ordinal for each in spans if each.tail)


def record_of(
    observer: Observer,
    answer: AnswerRecord,
    start: float,
    clusters: Sequence[Cluster],
) -> Record:
    """Return what the run was, but for its name and what led to it.

    Args:
        observer: that has watched it.
        answer: what the client got.
        start: of the run, monotonic seconds.
        clusters: have the prices.
    """
    run = observer.run
    if run is None:
        return Record("", 0, answer)
    prices, tails = _prices(clusters), observer.tails()
    calls = tuple(
        _call(entry, start, start + answer.ended_s, prices, is_tail=entry.ordinal in tails)
        for entry in run.ledger.entries
    )
    return Record(
        "",
        0,
        answer,
        steps=observer.steps(start),
        calls=calls,
        ceilings=_ceilings(run, start),
        totals=_totals(run, calls),
    )


def _prices(clusters: Sequence[Cluster]) -> Mapping[str, Price]:
    """Return the prices of models by every name that they are called by."""
    return {
        name: Price(cluster.pricing.prompt_per_1m, cluster.pricing.completion_per_1m)
        for cluster in clusters
        if cluster.pricing is not None
        for name in (*cluster.loras, *cluster.external_names, cluster.name)
    }


def _ceilings(run: GraphRun, start: float) -> Ceilings:
    """Return the run's limits."""
    limits, at = run.budget.limits, run.deadline.at
    deadline_s = at - start if at < float("inf") else None
    return Ceilings(deadline_s, limits.max_hops, limits.max_tokens, limits.max_cost_nano_usd)


def _totals(run: GraphRun, calls: Sequence[CallRecord]) -> Totals:
    """Return what the run spent."""
    reserved = [each for call in calls for each in call.reserved]
    tokens = [each.tokens for each in reserved if each.tokens is not None]
    costs = [each.nano_usd for each in reserved if each.nano_usd is not None]
    spent = [call.nano_usd for call in calls if call.nano_usd is not None]
    return Totals(
        attempts=run.budget.hops,
        reserved_tokens=sum(tokens) if tokens else None,
        tokens=run.budget.spent_tokens,
        reserved_nano_usd=sum(costs) if costs else None,
        nano_usd=sum(spent) if spent else None,
        unknown_usage=sum(call.prompt_tokens is None and bool(call.attempts) for call in calls),
    )


def _call(
    entry: LedgerEntry, start: float, end: float, prices: Mapping[str, Price], *, is_tail: bool
) -> CallRecord:
    outcome = entry.outcome
    attempts = () if outcome is None else outcome.attempts
    ended_at = end_of(entry) or end
    usage = None if outcome is None else outcome.usage
    reservations = (*entry.settled, entry.reservation)
    return CallRecord(
        ordinal=entry.ordinal,
        step=entry.step,
        model=entry.model,
        started_s=entry.started_at - start,
        ended_s=ended_at - start,
        terminal=None if outcome is None else outcome.terminal,
        cause=None if outcome is None else outcome.cause,
        status=None if outcome is None else outcome.status,
        attempts=tuple(_attempt(each, start, ended_at) for each in attempts),
        reserved=tuple(Reserved(each.tokens, each.cost_nano_usd) for each in reservations),
        prompt_tokens=None if usage is None else usage.prompt_tokens,
        completion_tokens=None if usage is None else usage.completion_tokens,
        nano_usd=_spent(entry, usage, prices.get(entry.model)),
        is_tail=is_tail,
        is_refused=entry.is_refused,
    )


def _spent(entry: LedgerEntry, usage: Usage | None, price: Price | None) -> int | None:
    """Return what a call has cost with all its attempts, as the budget counts it."""
    if price is None:
        return None
    known = [_settled(each) for each in entry.settled]
    last = price.of(usage) if usage is not None else _settled(entry.reservation)
    costs = [each for each in (*known, last) if each is not None]
    return sum(costs) if costs else None


def _settled(reservation: Reservation) -> int | None:
    if reservation.used_tokens is None:
        return reservation.cost_nano_usd
    return reservation.used_nano_usd


def _attempt(attempt: Attempt, start: float, call_end: float) -> AttemptRecord:
    ended_at = call_end if attempt.ended_at is None else attempt.ended_at
    return AttemptRecord(
        attempt.endpoint,
        attempt.started_at - start,
        ended_at - start,
        attempt.status,
        attempt.error,
        attempt.stage,
    )
