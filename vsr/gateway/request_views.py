"""What operators see of the requests of one process."""

from collections.abc import Iterator

import attrs

from vsr.gateway.handler import RequestRun
from vsr.gateway.requests import EndedRequest, Requests
from vsr.routing.execution import cut
from vsr.routing.outcome import Attempt
from vsr.routing.request_views import (
    RequestDetail,
    RequestList,
    RequestView,
    RoutingView,
    Stage,
    TransferView,
    TryView,
    UsageView,
    newest,
    try_view,
)

_UNROUTED = RoutingView()


@attrs.frozen
class RequestWatch:
    """Implements `routing.request_views.Watched` for one process."""

    requests: Requests

    def list(self, limit: int) -> RequestList:
        """Return its requests; see there."""
        runs = sorted(self.requests.under_way, key=lambda run: run.wall_ns, reverse=True)
        ended = list(self.requests.ended)[-limit:] if limit else []
        return RequestList(
            tuple(_live(run, _routing(run)) for run in runs[:limit]),
            newest((_past(each, _UNROUTED) for each in ended), limit),
            len(runs),
            self.requests.ended.maxlen or 0,
        )

    def find(self, request_id: str, start_time: str) -> RequestDetail | None:
        """Return one; see there."""
        found: list[RequestRun | EndedRequest] = [
            *(run for run in self.requests.under_way if _id_of(run) == request_id),
            *(each for each in self.requests.ended if each.line.request_id == request_id),
        ]
        there = [each for each in found if not start_time or _start_of(each) == start_time]
        if not there:
            return None
        one = max(there, key=_start_of)
        return _detail_of_run(one) if isinstance(one, RequestRun) else _detail_of_ended(one)


def _detail_of_run(run: RequestRun) -> RequestDetail:
    routing = _routing(run)
    attempts = () if routing.graph is not None else tuple(_tries(run.journal.attempts, run, None))
    return RequestDetail(_live(run, routing), routing, attempts, None, None)


def _detail_of_ended(ended: EndedRequest) -> RequestDetail:
    line, started_at = ended.line, ended.started_at
    ended_at = started_at + line.duration_ms / 1000
    routing = _UNROUTED if ended.grounds is None else ended.grounds.view(started_at, ended_at)
    tried = () if routing.graph is not None else ended.outcome.attempts
    usage = None
    if line.prompt_tokens is not None and line.completion_tokens is not None:
        usage = UsageView(line.prompt_tokens, line.completion_tokens)
    return RequestDetail(
        _past(ended, routing),
        routing,
        tuple(try_view(each, started_at, ended_at) for each in tried),
        usage,
        TransferView(
            line.bytes_received,
            line.bytes_sent,
            line.first_byte_ms,
            line.upstream_service_time,
            line.response_flags,
        ),
    )


def _live(run: RequestRun, routing: RoutingView) -> RequestView:
    head, plan = run.exchange.head, run.journal.plan
    decision, label = routing.decision, None if plan is None else plan.label
    graph = routing.graph
    attempts = len(run.journal.attempts)
    if graph is not None:
        attempts = sum(len(each.attempts) for each in graph.calls)
    return RequestView(
        cut(_id_of(run)),
        _start_of(run),
        round((run.exchange.now() - run.started_at) * 1000, 3),
        run.listener.name,
        run.exchange.protocol,
        cut(head.method.decode("latin-1")),
        path_of(head.target.decode("latin-1")),
        stage_of(run, routing),
        routing.model_asked,
        decision.recipe,
        decision.name,
        decision.model if label is None or label.model is None else label.model,
        0 if run.generation is None else run.generation.version,
        run.exchange.status or None,
        None,
        None,
        "",
        attempts,
        graph,
    )


def _past(ended: EndedRequest, routing: RoutingView) -> RequestView:
    line, grounds = ended.line, ended.grounds
    asked = routing.model_asked
    if asked is None and grounds is not None:
        asked = grounds.asked
    return RequestView(
        cut(line.request_id),
        line.start_time,
        line.duration_ms,
        line.listener,
        line.protocol,
        cut(line.method),
        path_of(line.path),
        "ended",
        None if asked is None else cut(asked),
        line.recipe,
        line.decision,
        line.model,
        line.config_version,
        line.response_code or None,
        line.outcome.value,
        None if line.cause is None else line.cause.value,
        ended.error,
        line.attempts,
    )


def stage_of(run: RequestRun, routing: RoutingView) -> Stage:
    """Return what a request under way waits for, or does."""
    plan = run.journal.plan
    if run.exchange.is_committed or run.upstream_s is not None:
        return "answering"
    if run.request is None:
        return "reading"
    if plan is None:
        return "routing"
    if plan.call is not None:
        return "calling"
    if routing.graph is not None and routing.graph.state == "running":
        return "graph"
    return "answering" if plan.immediate is not None else "routing"


def path_of(target: str) -> str:
    """Return a request's path without its query, and not longer than names are told."""
    return cut(target.partition("?")[0])


def _routing(run: RequestRun) -> RoutingView:
    plan = run.journal.plan
    if plan is None:
        return _UNROUTED
    return plan.session.grounds.view(run.started_at, run.exchange.now())


def _tries(attempts: list[Attempt], run: RequestRun, ended_at: float | None) -> Iterator[TryView]:
    for at, each in enumerate(attempts, 1):
        # One that is followed by another has ended.
        end = attempts[at].started_at if at < len(attempts) else ended_at
        yield try_view(each, run.started_at, end)


def _id_of(run: RequestRun) -> str:
    if run.request is not None:
        return run.request.id
    return run.exchange.head.fields.get(b"x-request-id", b"").decode("latin-1")


def _start_of(one: RequestRun | EndedRequest) -> str:
    if isinstance(one, EndedRequest):
        return one.line.start_time
    return one.access_log.stamp(one.wall_ns)
