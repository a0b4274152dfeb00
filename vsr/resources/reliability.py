"""Resource `reliability`: what a cluster, a decision or a step does when a backend fails.

Source of every default, unless said otherwise: the reference's table of reliability defaults.
"""

from enum import StrEnum

import attrs
import msgspec


class RetryOn(StrEnum):
    """When an attempt is repeated. Source: Envoy, router filter, `x-envoy-retry-on`."""

    FIVE_XX = "5xx"
    GATEWAY_ERROR = "gateway-error"
    RESET = "reset"
    RESET_BEFORE_REQUEST = "reset-before-request"
    CONNECT_FAILURE = "connect-failure"
    REFUSED_STREAM = "refused-stream"
    RETRIABLE_4XX = "retriable-4xx"
    RETRIABLE_STATUS_CODES = "retriable-status-codes"
    RATELIMITED = "envoy-ratelimited"


DEFAULT_RETRY_ON = frozenset({RetryOn.CONNECT_FAILURE, RetryOn.REFUSED_STREAM})
BACK_OFF_FACTOR = 10
"""The longest wait in first waits, unless it is configured."""


class RetryEvidence(StrEnum):
    """How sure it must be that a backend did no work before its call is made again."""

    ANY = "any"
    """As the conditions say, like Envoy."""
    KNOWN_ZERO = "known_zero"
    """No byte of the request left us, or the backend refused the stream. Our addition."""


class RetryPolicy(msgspec.Struct, frozen=True):
    """When and how often an attempt is repeated."""

    count: int = 0
    """Retries behind the first attempt."""
    on: frozenset[RetryOn] = DEFAULT_RETRY_ON
    status_codes: frozenset[int] = frozenset()
    """Statuses that `RetryOn.RETRIABLE_STATUS_CODES` means."""
    back_off_base_s: float = 0.025
    back_off_max_s: float = 0.25
    retry_after_max_s: float | None = None
    """Longest `Retry-After` that is obeyed; None: the header is ignored."""
    evidence: RetryEvidence = RetryEvidence.ANY


@attrs.frozen
class CallPolicy:
    """The part of reliability that layers may change for a call: timeouts and retries.

    `per_try_s` and `first_byte_s` have no default behind them: None means no limit, and they are
    never 0. `total_s` and `idle_s` have the listener's: None means that one, 0 means no limit.
    """

    per_try_s: float | None = None
    """One attempt, from the choice of its endpoint to the response head."""
    first_byte_s: float | None = None
    """From the written request to the first byte of the response's body."""
    retry: RetryPolicy | None = None
    total_s: float | None = None
    """The whole call with its streamed body."""
    idle_s: float | None = None
    """One wait for more of the body."""
    evidence: RetryEvidence = RetryEvidence.ANY
    """The model's, for fallbacks, and for retries that a layer adds where `retry` is None."""
    is_plain: bool = attrs.field(init=False, eq=False, repr=False)
    """Whether one attempt is all, and nothing of it has a limit of its own."""

    @is_plain.default
    def _look_if_plain(self) -> bool:
        has_retries = self.retry is not None and self.retry.count > 0
        return not has_retries and self.per_try_s is None and self.first_byte_s is None

    def total_limit_s(self, listener_s: float | None) -> float | None:
        """Return the total timeout under a listener's default; None means no limit."""
        return listener_s if self.total_s is None else self.total_s or None

    def idle_limit_s(self, listener_s: float | None) -> float | None:
        """Return the idle timeout under a listener's default; None means no limit."""
        return listener_s if self.idle_s is None else self.idle_s or None


class RetryOverride(msgspec.Struct, frozen=True):
    """What a layer changes of a retry policy; None or empty leaves a field as it is.

    At least one field is set: without any there is no override, and no policy begins.
    """

    count: int | None = None
    on: frozenset[RetryOn] = frozenset()
    """Added."""
    status_codes: frozenset[int] = frozenset()
    """Added."""
    back_off_base_s: float | None = None
    back_off_max_s: float | None = None
    retry_after_max_s: float | None = None

    def over(self, base: CallPolicy) -> RetryPolicy:
        """Return the retry policy of `base` with the changes; without one, from a single retry.

        A longest wait of ten times the first one stays that where only the first one changes.

        Source: the reference, the merge of a decision's reliability, except for the evidence and
        the sentence above.
        """
        policy = base.retry
        if policy is None:
            policy = RetryPolicy(count=1, on=frozenset(), evidence=base.evidence)
        return RetryPolicy(
            count=policy.count if self.count is None else self.count,
            on=policy.on | self.on or DEFAULT_RETRY_ON,
            status_codes=policy.status_codes | self.status_codes,
            back_off_base_s=self.back_off_base_s or policy.back_off_base_s,
            back_off_max_s=self.back_off_max_s or self._longest_s(policy),
            retry_after_max_s=self.retry_after_max_s or policy.retry_after_max_s,
            evidence=policy.evidence,
        )

    def _longest_s(self, policy: RetryPolicy) -> float:
        is_default = policy.back_off_max_s == BACK_OFF_FACTOR * policy.back_off_base_s
        if self.back_off_base_s is None or not is_default:
            return policy.back_off_max_s
        return BACK_OFF_FACTOR * self.back_off_base_s


class CallOverride(msgspec.Struct, frozen=True):
    """What an entrypoint, a recipe, a decision or a step changes of a call's policy.

    A timeout of None leaves what is there, and 0 means no limit.
    """

    total_s: float | None = None
    per_try_s: float | None = None
    idle_s: float | None = None
    first_byte_s: float | None = None
    retry: RetryOverride | None = None

    def over(self, base: CallPolicy) -> CallPolicy:
        """Return `base` with the changes; layers apply one after another, the innermost last.

        Source: the reference, the merge of a decision's reliability.
        """
        return CallPolicy(
            per_try_s=base.per_try_s if self.per_try_s is None else self.per_try_s or None,
            first_byte_s=(
                base.first_byte_s if self.first_byte_s is None else self.first_byte_s or None
            ),
            retry=base.retry if self.retry is None else self.retry.over(base),
            total_s=base.total_s if self.total_s is None else self.total_s,
            idle_s=base.idle_s if self.idle_s is None else self.idle_s,
            evidence=base.evidence,
        )


class RetryBudget(msgspec.Struct, frozen=True):
    """Bounds retries that run at once to a share of the calls that do."""

    percent: float = 20.0
    min_concurrency: int = 3


class BreakerLimits(msgspec.Struct, frozen=True):
    """Limits of one cluster; beyond them calls wait or are refused."""

    max_connections: int = 1024
    """Attempts that run at once; further ones wait."""
    max_pending: int = 1024
    """Attempts that wait."""
    max_requests: int = 1024
    """Attempts that run at once before further ones are refused outright. 4096 by default where
    a cluster retries or ejects."""
    max_retries: int = 3
    """Retries that run at once, unless there is a `RetryBudget`."""


class OutlierDetection(msgspec.Struct, frozen=True):
    """When an endpoint that answers badly leaves rotation, and for how long."""

    consecutive_5xx: int
    """Failures in a row; at least 1."""
    base_ejection_s: float = 30.0
    max_ejection_s: float = 300.0
    max_ejection_percent: int = 50
    """Share of the cluster's endpoints that may be out at once."""
    interval_s: float = 10.0
    """Between two sweeps."""


class HealthCheck(msgspec.Struct, frozen=True):
    """Asks every endpoint at times whether it is well."""

    path: str
    interval_s: float = 10.0
    timeout_s: float = 2.0
    no_traffic_interval_s: float = 60.0
    """Interval while the cluster has never carried a request."""
    unhealthy_threshold: int = 3
    """Network errors in a row that make an endpoint unhealthy; a wrong status does so at once."""
    healthy_threshold: int = 1


class LbPolicy(StrEnum):
    """How a cluster's endpoints share its calls."""

    ROUND_ROBIN = "round_robin"
    LEAST_REQUEST = "least_request"
    P2C_EWMA = "p2c_ewma"
    """Two choices, by calls in flight and latency. Our addition."""


class FallbackTrigger(StrEnum):
    """Class of failure that sends a call on to another model. Our addition to the status list."""

    TIMEOUT = "timeout"
    FIVE_XX = "5xx"
    RATE_LIMITED = "429"
    CONNECT = "connect"
    CONTENT_REFUSAL = "content_refusal"


class CandidateBreaker(msgspec.Struct, frozen=True):
    """When a backend that keeps failing is no candidate of a fallback."""

    consecutive_failures: int = 3
    cooldown_s: float = 30.0
    half_open_probes: int = 1


class LastResort(msgspec.Struct, frozen=True):
    """A fixed answer behind the last candidate. Our addition."""

    status: int = 200
    content: str = ""
    """Text of the assistant's message, in the client's protocol."""


class FallbackPolicy(msgspec.Struct, frozen=True):
    """When and how far a failed call goes on to other models."""

    enabled: bool = False
    max_attempts: int = 3
    """All calls, the first one included."""
    total_timeout_s: float = 30.0
    """From the start of the request's processing; later no candidate is begun."""
    per_attempt_timeout_s: float = 10.0
    retryable_status_codes: frozenset[int] = frozenset({502, 503, 504})
    triggers: frozenset[FallbackTrigger] = frozenset()
    """Besides the statuses."""
    breaker: CandidateBreaker = CandidateBreaker()
    last_resort: LastResort | None = None
