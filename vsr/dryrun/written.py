"""The keys of a scenario file, each with its type; values of several forms are read further on."""

from collections.abc import Mapping

import attrs

from vsr.config.document.kinds import Count, Fraction, NotNegative, Positive, StatusCode, Text


@attrs.frozen
class WrittenToolCall:
    """`reply.tool_calls[]`."""

    name: Text = attrs.field(default="", metadata={"required": True})
    arguments: object = attrs.field(factory=dict)
    """A mapping, or JSON as text."""
    id: Text | None = None


@attrs.frozen
class WrittenToken:
    """`reply.logprobs[]`: one token."""

    token: str = attrs.field(default="", metadata={"required": True})
    logprob: float = attrs.field(default=0.0, metadata={"required": True})
    top: Mapping[str, float] = attrs.field(factory=dict)


@attrs.frozen
class WrittenReply:
    """`reply`, where it is more than a text."""

    content: object = ""
    """A text, or a value that is written as JSON."""
    reasoning: str = ""
    tool_calls: tuple[WrittenToolCall, ...] = ()
    logprobs: object = None
    """A list of tokens, or one logprob for each of them."""
    finish_reason: Text | None = None


@attrs.frozen
class WrittenUsage:
    """`usage`."""

    prompt_tokens: Count = 0
    completion_tokens: Count = 0


@attrs.frozen
class WrittenFault:
    """`fault`, where it is more than a word or a status."""

    kind: Text | None = None
    status: StatusCode | None = None
    retry_after: Count | None = None
    delay: object = None
    after_events: Count = 2
    rate: Fraction = 1.0


@attrs.frozen
class WrittenTurn:
    """`models.NAME.calls[]`: one call."""

    latency: object = None
    chunk_interval: object = None
    reply: object = None
    usage: object = None
    fault: object = None


@attrs.frozen
class WrittenPrice:
    """`models.NAME.price`: dollars per million tokens."""

    prompt_per_1m: NotNegative = 0.0
    completion_per_1m: NotNegative = 0.0


@attrs.frozen
class WrittenModel:
    """`models.NAME`."""

    latency: object = None
    chunk_interval: object = None
    reply: object = None
    usage: object = None
    fault: object = None
    calls: tuple[WrittenTurn, ...] = ()
    price: WrittenPrice | None = None
    unreachable: bool = False


@attrs.frozen
class WrittenRequest:
    """`request`: a question, messages or a whole body."""

    question: str | None = None
    messages: tuple[Mapping[str, object], ...] | None = None
    body: Mapping[str, object] | None = None
    stream: bool = False
    headers: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class WrittenRuntime:
    """`runtime`: what the model runtime answers."""

    latency: object = None
    answers: Mapping[str, object] = attrs.field(factory=dict)


@attrs.frozen
class WrittenVerifier:
    """`verifiers.URL`: what a service answers."""

    latency: object = None
    status: StatusCode = 200
    answer: object = None


@attrs.frozen
class WrittenMoments:
    """`at`: what happens to the request from outside."""

    client_leaves: object = None


@attrs.frozen
class WrittenExpectations:
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


@attrs.frozen
class WrittenScenario:
    """A scenario file."""

    graph: Text | None = None
    config: Text | None = None
    description: str = ""
    seed: int = 0
    params: Mapping[str, object] = attrs.field(factory=dict)
    request: WrittenRequest | None = None
    models: Mapping[str, WrittenModel] = attrs.field(factory=dict)
    runtime: WrittenRuntime = attrs.field(factory=WrittenRuntime)
    verifiers: Mapping[str, WrittenVerifier] = attrs.field(factory=dict)
    at: WrittenMoments = attrs.field(factory=WrittenMoments)
    expect: WrittenExpectations | None = None
