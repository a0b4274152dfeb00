"""What a candidate is asked and what the client is told, in any two protocols."""

import json
import re
from collections.abc import Sequence

import attrs
import pytest
import trio
import trio.testing

from tests.demo.raw_client import AnswerEnd, Got
from tests.engine.stepped_backend import SteppedBackend, Steps
from tests.engine.streams import TEXT, text_of
from tests.engine.test_fallback import BUSY, FINE
from tests.engine.test_protocol_pairs import said
from tests.engine.wired import (
    ANTHROPIC,
    CHAT_PIECES,
    COMPLETION,
    MESSAGE,
    MESSAGE_PIECES,
    OPENAI,
    RELIABILITY,
    Pair,
    chunked,
    whole,
)
from tests.fakes.router import RunningRouter, document_of, model_of, start_router
from vsr.engine.response_phase import with_path
from vsr.headers import HeaderLine
from vsr.http.framing import RequestHead
from vsr.network.memory import MemoryNetwork
from vsr.routing.effect import Effect, HeaderEdit

PLUGINS = """{type: system_prompt, configuration: {system_prompt: Be kind., mode: insert}},
  {type: request_params, configuration: {max_tokens_limit: 30, blocked_params: [logit_bias]}},
  {type: header_mutation, configuration: {add: [{name: x-tier, value: gold}], delete: [x-gone]}}"""
MODELS = {
    "alpha": "{type: reasoning_effort, parameter: reasoning_effort, levels: [low, high], "
    "default: low}",
    "beta": "{type: chat_template_kwargs, parameter: enable_thinking, modes: [enabled, disabled], "
    "default_mode: disabled}",
    "claude": "",
}
REFS = {
    "alpha": "{model: alpha, use_reasoning: true, reasoning_effort: high}",
    "beta": "{model: beta, use_reasoning: true}",
    "claude": "{model: claude}",
}
ORDERS = [(first, second) for first in MODELS for second in MODELS if first != second]
LINES: list[HeaderLine] = [(b"x-gone", b"1"), (b"x-tier", b"silver"), (b"x-request-id", b"r1")]
FILTERED = COMPLETION.replace(b'"stop"', b'"content_filter"')
REFUSES = b'{"choices": [{"finish_reason": "stop", "message": {"refusal": "I cannot."}}]}'


@attrs.define(eq=False)
class Bench:
    """A Router whose one decision has these models, in this order."""

    router: RunningRouter
    backends: dict[str, SteppedBackend]

    async def ask(
        self, client: Pair, *, lines: Sequence[HeaderLine] = LINES, **members: object
    ) -> Got:
        """Ask the decision as this client."""
        body = client.body("Hello there", **({"model": "auto"} | members))
        return await self.router.ask(body, target=client.target, lines=lines)

    def sent(self, name: str) -> tuple[list[HeaderLine], bytes]:
        """Return the one request that a model's backend has seen, but for where it is."""
        [(head, body)] = self.backends[name].seen
        assert isinstance(head, RequestHead)
        return [line for line in head.lines if line[0] != b"host"], body


async def bench(nursery: trio.Nursery, *names: str, policy: str = "enabled: true") -> Bench:
    """Start one with the backends answering what is asked for, `names` in the decision."""
    network = MemoryNetwork()
    backends = {}
    entries = []
    for name, reasoning in MODELS.items():
        backends[name] = await SteppedBackend(network, []).start(nursery)
        members = {"provider": "anthropic-compatible"} if name == "claude" else {}
        more = f", reasoning: {reasoning}" if reasoning else ""
        entries.append(
            model_of(
                backends[name].port,
                name,
                provider_model_id=f"{name}-real",
                reliability=RELIABILITY + more,
                **members,
            )
        )
    refs = ", ".join(REFS[name] for name in names)
    routing = (
        f"{{decisions: [{{name: all, modelRefs: [{refs}], plugins: [{PLUGINS}], "
        f"fallback: {{{policy}}}}}]}}"
    )
    router = await start_router(nursery, network, document_of(*entries, routing=routing))
    return Bench(router, backends)


def answer_of(name: str, *, stream: bool) -> Steps:
    """Return what a model's backend answers."""
    if stream:
        return chunked(200, *(MESSAGE_PIECES if name == "claude" else CHAT_PIECES))
    return whole(200, MESSAGE if name == "claude" else COMPLETION)


def timeless(got: Got) -> bytes:
    """Return all that a client got, without the times in it."""
    return re.sub(rb'(latency-ms: |"created": ?)[0-9.]+', rb"\1", got.raw)


async def both(
    nursery: trio.Nursery,
    client: Pair,
    order: tuple[str, str],
    *,
    lines: Sequence[HeaderLine] = LINES,
    stream: bool = False,
    **members: object,
) -> tuple[Bench, Bench, Got, Got]:
    """Ask for the second model behind the first one, which fails, and for the second alone."""
    chain, alone = await bench(nursery, *order), await bench(nursery, order[1])
    chain.backends[order[0]].steps = BUSY
    for each in (chain, alone):
        each.backends[order[1]].steps = answer_of(order[1], stream=stream)
    got = await chain.ask(client, lines=lines, stream=stream, **members)
    return chain, alone, got, await alone.ask(client, lines=lines, stream=stream, **members)


@pytest.mark.parametrize("client", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("stream", [False, True])
async def test_candidate_is_asked_and_answers_as_if_it_were_alone(
    *,
    client: Pair,
    order: tuple[str, str],
    stream: bool,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """To the byte, but for the headers that name the fallback; its usage is in the log."""
    chain, alone, got, direct = await both(
        nursery, client, order, stream=stream, logit_bias={"1": 1}, top_p=0.50, max_tokens=40
    )

    assert chain.sent(order[1]) == alone.sent(order[1])
    told = b"x-vsr-response-path: fallback\r\nx-vsr-fallback-attempts: 2\r\n"
    told += b"x-vsr-fallback-path: %b\r\n" % ",".join(order).encode()
    plain = b"x-vsr-response-path: upstream\r\n"
    assert timeless(direct).count(plain) == 1
    assert timeless(got) == timeless(direct).replace(plain, told)
    pair = attrs.evolve(client, model=order[1])
    text = text_of(pair, got.body) if stream else said(pair, got)
    assert (got.status, got.end, text) == (
        200,
        AnswerEnd.WHOLE,
        TEXT if stream else "Hello you",
    )
    [line] = await chain.router.log()
    assert (line["model"], line["attempts"], line["outcome"]) == (order[1], 2, "succeeded")
    assert (line["prompt_tokens"], line["completion_tokens"]) == (7, 3)
    assert line["bytes_sent"] == len(got.body)


@pytest.mark.parametrize("client", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("order", ORDERS)
async def test_candidate_s_body_is_made_of_the_client_s_alone(
    client: Pair,
    order: tuple[str, str],
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Field report R3: plugins act once; model, path, length and reasoning are the candidate's."""
    chain, _, got, _ = await both(nursery, client, order, max_tokens=40)

    lines, body = chain.sent(order[1])
    fields, members = dict(lines), json.loads(body)
    assert got.line(b"x-vsr-selected-model") == order[1].encode()
    assert (members["model"], body.count(b"Be kind.")) == (f"{order[1]}-real", 1)
    assert fields[b"content-length"] == b"%d" % len(body)
    assert [line for line in lines if line[0] == b"x-tier"] == [(b"x-tier", b"gold")]
    assert b"x-gone" not in fields
    assert fields[b"x-selected-model"] == order[1].encode()
    reasoning = {
        "alpha": {"chat_template_kwargs": {"reasoning_effort": "high"}},
        "beta": {"chat_template_kwargs": {"enable_thinking": True}},
        "claude": {},
    }
    names = {"reasoning_effort", "chat_template_kwargs"}
    assert {key: members[key] for key in members if key in names} == reasoning[order[1]]
    limits = {"max_tokens", "max_completion_tokens"}
    assert [members[key] for key in members if key in limits] == [30]


async def test_headers_keep_their_order_beside_the_debug_headers(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The fallback's stand together behind the response path, whatever else is told."""
    lines = [(b"x-vsr-debug", b"true")]
    _, _, got, direct = await both(nursery, OPENAI, ("alpha", "beta"), lines=lines)

    def names(answer: Got) -> list[bytes]:
        assert answer.head is not None
        return [name for name, _ in answer.head.lines if name.startswith(b"x-vsr")]

    told = names(direct)
    at = told.index(b"x-vsr-response-path") + 1
    told[at:at] = [b"x-vsr-fallback-attempts", b"x-vsr-fallback-path"]
    assert names(got) == told


async def test_ordinary_answer_tells_of_no_fallback(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Where one is configured, an answer of the first model is as it would be without."""
    raws = []
    for policy in ("enabled: true", "enabled: false"):
        each = await bench(nursery, "alpha", "claude", policy=policy)
        each.backends["alpha"].steps = FINE
        raws.append(timeless(await each.ask(OPENAI)))

    assert raws[0] == raws[1]
    assert b"fallback" not in raws[0]


@pytest.mark.parametrize(
    ("order", "warning"),
    [
        (("alpha", "claude"), b""),
        (("claude", "alpha"), b"lossy;top_k_drop_on_openai_backend;top_k"),
        (("beta", "alpha"), b"lossy;top_k_drop_on_openai_backend;top_k"),
    ],
)
async def test_warnings_are_those_of_the_serving_model(
    order: tuple[str, str],
    warning: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """What the failed call would have lost is nobody's loss, and nothing is lost twice."""
    _, _, got, direct = await both(nursery, ANTHROPIC, order, top_k=3)

    name = b"x-vsr-protocol-warnings"
    assert (got.line(name), got.raw.count(name)) == (warning, int(bool(warning)))
    assert direct.line(name) == warning


@pytest.mark.parametrize("client", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("order", [("alpha", "claude"), ("claude", "alpha")])
async def test_stream_is_as_the_client_asked_for_it_in_its_accept_header(
    client: Pair,
    order: tuple[str, str],
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A body that doesn't say is completed for each model, not for the first one alone."""
    chain = await bench(nursery, *order)
    chain.backends[order[0]].steps = BUSY
    chain.backends[order[1]].steps = answer_of(order[1], stream=True)

    got = await chain.ask(client, lines=[(b"accept", b"text/event-stream")])

    assert text_of(client, got.body) == TEXT
    assert [json.loads(chain.sent(name)[1])["stream"] for name in order] == [True, True]


async def test_tool_result_of_a_message_stays_too(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """In Anthropic's protocol it is a block of the user's."""
    use = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "42"}
    chain = await bench(nursery, "claude", "alpha")
    chain.backends["claude"].steps = BUSY

    turns = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    got = await chain.ask(ANTHROPIC, messages=[{"role": "user", "content": "go"}, *turns])

    assert (got.status, chain.backends["alpha"].seen) == (503, [])


@pytest.mark.parametrize(
    ("first", "steps"),
    [
        ("alpha", whole(200, FILTERED)),
        ("alpha", whole(200, REFUSES)),
        ("alpha", whole(400, b'{"error": {"message": "no", "code": "content_filter"}}')),
        ("alpha", chunked(200, FILTERED[:50], FILTERED[50:], content_type=b"application/json")),
        ("claude", whole(200, MESSAGE.replace(b"end_turn", b"refusal"))),
    ],
)
@pytest.mark.parametrize("client", [OPENAI, ANTHROPIC])
async def test_refusal_of_either_protocol_goes_on(
    first: str,
    steps: Steps,
    client: Pair,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Whatever the client speaks and whichever way the answer is framed."""
    policy = "enabled: true, triggers: [content_refusal]"
    chain = await bench(nursery, first, "beta", policy=policy)
    chain.backends[first].steps = steps
    chain.backends["beta"].steps = FINE

    got = await chain.ask(client)

    assert (got.status, got.line(b"x-vsr-selected-model")) == (200, b"beta")


def test_path_is_told_beside_whatever_else_an_effect_wants() -> None:
    """Nothing of it is lost."""
    edits = tuple(HeaderEdit(name, b"v") for name in (b"x-a", b"x-vsr-response-path", b"x-z"))
    effect = Effect(frozenset({b"gone"}), edits, stream_response=True, last=(b"x-last", b""))

    told = with_path(effect, ["alpha", "beta"])

    names = [b"x-a", b"x-vsr-response-path", b"x-vsr-fallback-attempts", b"x-vsr-fallback-path"]
    assert [edit.name for edit in told.edits] == [*names, b"x-z"]
    assert (told.removes, told.stream_response, told.last) == (
        effect.removes,
        effect.stream_response,
        effect.last,
    )
