"""Every failure a client or an author can be told about.

VsrError
|-- InvalidRequest, BodyTooLarge, RequestTimedOut    the client's request is at fault
|-- Unauthenticated, ProviderKeyMissing, ModelNotFound, EndpointNotFound, MethodNotAllowed
|-- NotServing, NotAdmitted, SignalUnknown  not now: nothing is active, a limit, a failed signal
|-- RoutingFailed                         a phase failed or an effect could not be applied
|-- AnswerNotTranslatable                 the backend speaks another protocol, and nonsense
|-- BudgetExhausted, EveryModelFailed     no more may be spent; no model of a fallback answered
|-- CallFailed, GraphFailed               a call, or a step, of a graph has nothing to go on with
|-- UpstreamFailure                       the routed call failed: answered by a local reply
|   |-- NoHealthyEndpoint, UpstreamOverflow
|   |-- UpstreamConnectFailure, UpstreamReset, UpstreamRefused, UpstreamProtocolError
|   `-- EgressRefused, UpstreamAnswerTooLarge, DeadlineExceeded
`-- ConfigRejected                        the document is refused, with every problem

`str(error)` is safe to show: it never holds an address, a credential or an upstream body.
"""

from collections.abc import Sequence
from typing import ClassVar, Self

import msgspec

HeaderLines = tuple[tuple[bytes, bytes], ...]


class VsrError(Exception):
    """A failure with a status, a type and a code in the client's protocol."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"
    code: ClassVar[str] = "internal_error"
    flag: ClassVar[str] = "-"
    """Response flag of the access log. Source: Envoy, "Access logging", RESPONSE_FLAGS."""
    headers: ClassVar[HeaderLines] = ()


class InvalidRequest(VsrError):
    """The request's body or target is not acceptable; `param` names the member at fault."""

    status = 400
    type = "invalid_request_error"

    def __init__(
        self, message: str, *, code: str = "invalid_request", param: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[misc]  # several codes, one class
        self.param = param


class BodyTooLarge(VsrError):
    """The request body exceeds the listener's limit."""

    status = 413
    type = "invalid_request_error"
    code = "request_too_large"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"The request body is larger than the limit of {limit_bytes} bytes.")


class RequestTimedOut(VsrError):
    """The client stopped sending in the middle of its request."""

    status = 408
    type = "invalid_request_error"
    code = "request_timeout"

    def __init__(self) -> None:
        super().__init__("The request did not arrive in time.")


class Unauthenticated(VsrError):
    """The listener asks for an API key and the request has none of its keys."""

    status = 401
    type = "authentication_error"
    code = "invalid_api_key"
    headers: ClassVar[HeaderLines] = (
        (b"www-authenticate", b'Bearer realm="vllm-semantic-router"'),
    )

    def __init__(self) -> None:
        super().__init__("Unauthorized: missing or invalid API key")


class ProviderKeyMissing(VsrError):
    """Neither the request nor the configuration has the key that the model's provider asks for.

    Source: the reference's credential chain, status and texts; `model` is named only where the
    reference does.
    """

    status = 401
    type = "authentication_error"
    code = "provider_key_missing"

    def __init__(self, model: str | None = None) -> None:
        super().__init__(
            "Authentication failed. Check your API key configuration."
            if model is None
            else f"Credential resolution failed for model {model}: no API key was found"
        )


class ModelNotFound(VsrError):
    """The requested model is neither an automatic name nor a configured model.

    Source: status and text of the reference's parity record `unknown-model`.
    """

    status = 400
    type = "invalid_request_error"
    code = "model_not_found"

    def __init__(self) -> None:
        super().__init__("the requested model is not available")


class EndpointNotFound(VsrError):
    """The path names an API that this Router does not serve."""

    status = 404
    type = "invalid_request_error"
    code = "not_found"

    def __init__(self) -> None:
        super().__init__("resource not found")


class MethodNotAllowed(VsrError):
    """The path is served, but not with this method."""

    status = 405
    type = "invalid_request_error"
    code = "method_not_allowed"

    def __init__(self) -> None:
        super().__init__("method not allowed")


class NotServing(VsrError):
    """No configuration is active yet, or the process is draining."""

    status = 503
    code = "unavailable"

    def __init__(self) -> None:
        super().__init__("The router is not serving.")


class NotAdmitted(VsrError):
    """An admission limit is reached; nothing was done for the request."""

    status = 503
    code = "overloaded"

    def __init__(self) -> None:
        super().__init__("The router is at its limit.")


class SignalUnknown(VsrError):
    """A signal failed, and the rules that need it say `on_unknown: fail_request`."""

    status, code = 503, "signal_unknown"  # the reference leaves both open


class RoutingFailed(VsrError):
    """A routing phase failed or its effect could not be applied."""

    code = "routing_error"

    def __init__(self, *, phase: str = "request") -> None:
        super().__init__(f"The router could not process the {phase}.")


class AnswerNotTranslatable(VsrError):
    """A backend's answer has no meaning in the client's protocol; `reason` is in our words."""

    status = 502
    code = "answer_not_translatable"

    def __init__(self, reason: str) -> None:
        super().__init__(f"The answer could not be translated: {reason}.")


class BudgetExhausted(VsrError):
    """A reservation was refused; SDKs must not repeat what was already too expensive."""

    status = 429
    type = "rate_limit_error"
    code = "budget_exhausted"
    headers: ClassVar[HeaderLines] = ((b"x-should-retry", b"false"),)

    def __init__(self) -> None:
        super().__init__("The request's budget is exhausted.")


_RESET = "upstream connect error or disconnect/reset before headers. reset reason: "
_RESET_AFTER_RETRIES = _RESET.replace("reset reason", "retried and the latest reset reason")


class EveryModelFailed(VsrError):
    """No model of a decision answered; message and status are the author's."""

    code = "every_model_failed"

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status  # type: ignore[misc]  # the author's


class CallFailed(VsrError):
    """A call of a graph's step got no usable answer; the texts are the reference's."""

    status = 502
    code = "call_failed"

    def __init__(self, message: str, *, backend_status: int | None = None) -> None:
        super().__init__(message)
        self.backend_status = backend_status


class GraphFailed(VsrError):
    """A step of a request graph failed; the message is its author's."""

    code = "graph_failed"

    def __init__(self, message: str, *, status: int = 500) -> None:
        super().__init__(message)
        self.status = status  # type: ignore[misc]  # the author's


STOP_RETRYING = (b"x-should-retry", b"false")
"""Tells official SDKs not to repeat what was repeated already: their retries times ours is many."""


class UpstreamFailure(VsrError):
    """The routed call failed; its message is the body of the local reply.

    Source: Envoy's local replies as measured (status, text and header of each condition).
    """

    status = 503

    def after(self, attempts: int) -> Self:
        """Return this failure, told as that of the last of `attempts`."""
        if attempts <= 1:
            return self
        text = str(self).replace(_RESET, _RESET_AFTER_RETRIES, 1)
        self.args = (text, *self.args[1:])
        self.headers = (*self.headers, STOP_RETRYING)  # type: ignore[misc]  # of this one alone
        return self

    def again(self) -> Self:
        """Return the same failure for another call, which `after` may change by itself."""
        other = type(self).__new__(type(self), *self.args)
        other.args = self.args
        vars(other).update(vars(self))
        return other


class NoHealthyEndpoint(UpstreamFailure):
    """No endpoint can take the call, or its host name did not resolve; nothing was sent."""

    code = "no_healthy_endpoint"
    flag = "UH"

    def __init__(self) -> None:
        super().__init__("no healthy upstream")


class UpstreamOverflow(UpstreamFailure):
    """A circuit breaker refused the call; nothing was sent."""

    code = "upstream_overflow"
    flag = "UO"
    headers: ClassVar[HeaderLines] = ((b"x-envoy-overloaded", b"true"),)

    def __init__(self) -> None:
        super().__init__(_RESET + "overflow")


class UpstreamConnectFailure(UpstreamFailure):
    """TCP, TLS or HTTP/2 could not be set up; `detail` is an errno number, or the reason."""

    code = "upstream_connect_failure"
    flag = "UF"

    def __init__(self, detail: str = "", *, timed_out: bool = False) -> None:
        text = "connection timeout" if timed_out else "remote connection failure"
        suffix = f", transport failure reason: {detail}" if detail else ""
        super().__init__(_RESET + text + suffix)


class EgressRefused(UpstreamFailure):
    """The endpoint has no address that the configuration lets us connect to; nothing was sent.

    Ours. In all else it counts as a connection that could not be set up.
    """

    code = "egress_refused"
    flag = "UF"

    def __init__(self) -> None:
        super().__init__(
            _RESET + "remote connection failure, transport failure reason: egress refused"
        )


class UpstreamReset(UpstreamFailure):
    """The backend closed or reset the connection, or one stream of it, before the response head."""

    code = "upstream_reset"
    flag = "UC"

    def __init__(self, *, of_stream: bool = False) -> None:
        super().__init__(_RESET + ("remote reset" if of_stream else "connection termination"))
        if of_stream:
            self.flag = "UR"  # type: ignore[misc]  # of this one alone


class UpstreamRefused(UpstreamFailure):
    """The backend refused the stream before it did anything for the call."""

    code = "refused_stream"
    flag = "UR"

    def __init__(self) -> None:
        super().__init__(_RESET + "remote refused stream reset")


class UpstreamProtocolError(UpstreamFailure):
    """The backend's response breaks HTTP; `reason` says how, in our words."""

    status = 502
    code = "upstream_protocol_error"
    flag = "UPE"

    def __init__(self, reason: str = "") -> None:
        super().__init__(_RESET + "protocol error" + (f" ({reason})" if reason else ""))


class UpstreamAnswerTooLarge(UpstreamFailure):
    """The backend's answer to a step of a graph is longer than the limit on such answers."""

    status = 502
    code = "upstream_answer_too_large"
    flag = "UPE"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"response body exceeds limit of {limit_bytes} bytes")


class DeadlineExceeded(UpstreamFailure):
    """A limit of time passed: `stage`, a per_try, first_byte, total, idle, group or graph one."""

    status = 504
    code = "deadline_exceeded"
    flag = "UT"

    def __init__(self, stage: str = "total") -> None:
        super().__init__("upstream request timeout")
        self.stage = stage


class Problem(msgspec.Struct, frozen=True):
    """One fault of a document: where it is, what is wrong, why, and how to mend it."""

    path: str
    what: str
    why: str = ""
    mend: str = ""
    file: str = ""
    line: int = 0  # from 1; 0: unknown
    code: str = "invalid_resource"  # a word of `config.attempt.Code`

    @property
    def told(self) -> str:
        """Return what, why and how to mend it, without the place."""
        return ", ".join(part for part in (self.what, self.why, self.mend) if part)

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file else ""
        return f"{place}{self.path or '(document)'}: {self.told}"


class ConfigRejected(VsrError):
    """The document is refused whole; `problems` lists every fault found, in document order."""

    status = 400
    type = "invalid_request_error"
    code = "config_rejected"

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))
