"""From what happened to an attempt to what the policies ask for."""

from collections.abc import Mapping

from vsr.errors import (
    DeadlineExceeded,
    EgressRefused,
    NoHealthyEndpoint,
    UpstreamConnectFailure,
    UpstreamFailure,
    UpstreamOverflow,
    UpstreamProtocolError,
    UpstreamReset,
)
from vsr.headers import Headers
from vsr.routing.outcome import REFUSED_STREAM, Attempt
from vsr.upstream.policy.outcome import AttemptOutcome, FailureKind, TimeoutStage

_RATELIMITED = b"x-envoy-ratelimited"
_RETRY_AFTER = b"retry-after"
_KINDS: Mapping[str, FailureKind] = {
    DeadlineExceeded.code: FailureKind.TIMEOUT,
    EgressRefused.code: FailureKind.CONNECT_FAILURE,
    NoHealthyEndpoint.code: FailureKind.NO_HEALTHY_UPSTREAM,
    REFUSED_STREAM: FailureKind.REFUSED_STREAM,
    UpstreamConnectFailure.code: FailureKind.CONNECT_FAILURE,
    UpstreamOverflow.code: FailureKind.OVERFLOW,
    UpstreamProtocolError.code: FailureKind.RESET,
    UpstreamReset.code: FailureKind.RESET,
}


def kind_of(error: UpstreamFailure) -> FailureKind:
    """Return what kind of failure an error is that no attempt tells of."""
    return _KINDS[error.code]


def failure_of(attempt: Attempt) -> AttemptOutcome:
    """Return how an attempt failed, before a response head or in the body behind it."""
    kind = _KINDS.get(attempt.error, FailureKind.CANCELLED)
    stage = TimeoutStage(attempt.stage) if kind is FailureKind.TIMEOUT else None
    return AttemptOutcome(failure=kind, stage=stage, fact=attempt.fact)


def answer_of(attempt: Attempt, headers: Headers) -> AttemptOutcome:
    """Return the outcome of an attempt that has a response head."""
    fields = headers.first_values()
    return AttemptOutcome(
        status=attempt.status,
        fact=attempt.fact,
        is_ratelimited=_RATELIMITED in fields,
        retry_after=fields.get(_RETRY_AFTER),
    )
