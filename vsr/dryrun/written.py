"""The keys of a scenario file, each with its type; values of several forms are read further on."""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from vsr.config.document.kinds import Count, Fraction, NotNegative, Positive, StatusCode, Text
from vsr.config.document.objects import REQUIRED, DocumentObject


class WrittenToolCall(DocumentObject, frozen=True):
    """`reply.tool_calls[]`."""

    name: Annotated[Text, REQUIRED] = ""
    arguments: object = msgspec.field(default_factory=dict)
    """A mapping, or JSON as text."""
    id: Text | None = None


class WrittenToken(DocumentObject, frozen=True):
    """`reply.logprobs[]`: one token."""

    token: Annotated[str, REQUIRED] = ""
    logprob: Annotated[float, REQUIRED] = 0.0
    top: Mapping[str, float] = msgspec.field(default_factory=dict)


class WrittenReply(DocumentObject, frozen=True):
    """`reply`, where it is more than a text."""

    content: object = ""
    """A text, or a value that is written as JSON."""
    reasoning: str = ""
    tool_calls: tuple[WrittenToolCall, ...] = ()
    logprobs: object = None
    """A list of tokens, or one logprob for each of them."""
    finish_reason: Text | None = None


class WrittenUsage(DocumentObject, frozen=True):
    """`usage`."""

    prompt_tokens: Count = 0
    completion_tokens: Count = 0


class WrittenFault(DocumentObject, frozen=True):
    """`fault`, where it is more than a word or a status."""

    kind: Text | None = None
    status: StatusCode | None = None
    retry_after: Count | None = None
    delay: object = None
    after_events: Count = 2
    rate: Fraction = 1.0


class WrittenTurn(DocumentObject, frozen=True):
    """`models.NAME.calls[]`: one call."""

    latency: object = None
    chunk_interval: object = None
    reply: object = None
    usage: object = None
    fault: object = None


class WrittenPrice(DocumentObject, frozen=True):
    """`models.NAME.price`: dollars per million tokens."""

    prompt_per_1m: NotNegative = 0.0
    completion_per_1m: NotNegative = 0.0


class WrittenModel(DocumentObject, frozen=True):
    """`models.NAME`."""

    latency: object = None
    chunk_interval: object = None
    reply: object = None
    usage: object = None
    fault: object = None
    calls: tuple[WrittenTurn, ...] = ()
    price: WrittenPrice | None = None
    unreachable: bool = False


class WrittenRequest(DocumentObject, frozen=True):
    """`request`: a question, messages or a whole body."""

    question: str | None = None
    messages: tuple[Mapping[str, object], ...] | None = None
    body: Mapping[str, object] | None = None
    stream: bool = False
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)


class WrittenRuntime(DocumentObject, frozen=True):
    """`runtime`: what the model runtime answers."""

    latency: object = None
    answers: Mapping[str, object] = msgspec.field(default_factory=dict)


class WrittenVerifier(DocumentObject, frozen=True):
    """`verifiers.URL`: what a service answers."""

    latency: object = None
    status: StatusCode = 200
    answer: object = None


class WrittenMoments(DocumentObject, frozen=True):
    """`at`: what happens to the request from outside."""

    client_leaves: object = None


class WrittenExpectations(DocumentObject, frozen=True):
    """`expect`: what must be true of the run."""

    status: StatusCode | None = None
    result: object = None
    calls: object = None
    attempts: object = None
    order: tuple[Text, ...] = ()
    never_called: tuple[Text, ...] = ()
    max_cost: NotNegative | None = None
    max_tokens: Positive | None = None
    latency: object = None
    cancelled: tuple[Text, ...] = ()
    cancelled_within: object = None


class WrittenScenario(DocumentObject, frozen=True):
    """A scenario file."""

    graph: Text | None = None
    config: Text | None = None
    description: str = ""
    seed: int = 0
    params: Mapping[str, object] = msgspec.field(default_factory=dict)
    request: WrittenRequest | None = None
    models: Mapping[str, WrittenModel] = msgspec.field(default_factory=dict)
    runtime: WrittenRuntime = msgspec.field(default_factory=WrittenRuntime)
    verifiers: Mapping[str, WrittenVerifier] = msgspec.field(default_factory=dict)
    at: WrittenMoments = msgspec.field(default_factory=WrittenMoments)
    expect: WrittenExpectations | None = None
