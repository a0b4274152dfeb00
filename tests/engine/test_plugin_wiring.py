"""Plugins and reasoning of a decision, on their way through a whole Router."""

import json
from typing import Any

import pytest
import trio
import trio.testing

from tests.codec.stream_folding import data_of, fold_anthropic
from tests.demo.raw_client import chat_body
from tests.engine.wired import (
    ANTHROPIC,
    ANTHROPIC_TO_OPENAI,
    OPENAI,
    OPENAI_TO_ANTHROPIC,
    PAIRS,
    Pair,
    wire,
)
from tests.fakes.router import document_of, model_of, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.network.memory import MemoryNetwork

SYSTEM = "{type: system_prompt, configuration: {system_prompt: Be kind., mode: %s}}"
HEADERS = (
    "{type: header_mutation, configuration: {add: [{name: X-Team, value: a}], "
    "update: [{name: x-tier, value: gold}, {name: x-envoy-retry-on, value: 5xx}], "
    "delete: [x-drop-me]}}"
)
PARAMS = (
    "{type: request_params, configuration: {blocked_params: [logit_bias, stream_options], "
    "max_tokens_limit: 10, max_n: 1, strip_unknown: true}}"
)
FAST = "{type: fast_response, configuration: {message: %s}}"


def routing(model: str, *plugins: str) -> str:
    """Return a routing block whose one decision takes what says `please`."""
    return (
        "{signals: {keywords: [{name: k, operator: OR, keywords: [please]}]}, "
        "decisions: [{name: d, rules: {operator: AND, conditions: [{type: keyword, name: k}]}, "
        f"modelRefs: [{{model: {model}}}], plugins: [{', '.join(plugins)}]}}]}}"
    )


def system_text(members: dict[str, Any]) -> str:
    """Return the system prompt of a request in either protocol."""
    if "system" in members:
        system = members["system"]
        return system if isinstance(system, str) else "".join(each["text"] for each in system)
    first = members["messages"][0]
    assert first["role"] == "system"
    text: str = first["content"]
    return text


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("is_streaming", [False, True])
async def test_system_prompt_is_inserted_for_every_pair_of_protocols(
    *,
    is_streaming: bool,
    pair: Pair,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The user's turn stays as it is."""
    wired = await wire(nursery, routing=routing(pair.model, SYSTEM % "insert"))

    got = await wired.ask(pair, pair.body("please", model="auto", stream=is_streaming))

    [(_, sent)] = wired.backend(pair).seen
    members = json.loads(sent)
    assert got.status == 200
    assert system_text(members) == "Be kind."
    assert "please" in json.dumps(members["messages"][-1])
    assert members["model"] == f"{pair.model}-real"
    assert members.get("stream", False) is is_streaming


@pytest.mark.parametrize("pair", [OPENAI, OPENAI_TO_ANTHROPIC])
@pytest.mark.parametrize(
    ("mode", "text"), [("insert", "Be kind.\n\nBe brief."), ("replace", "Be kind.")]
)
async def test_system_prompt_meets_the_clients_own(
    mode: str,
    text: str,
    pair: Pair,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """In front of it, or in its place."""
    wired = await wire(nursery, routing=routing(pair.model, SYSTEM % mode))
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "please"}]

    await wired.ask(pair, pair.body(model="auto", messages=messages))

    [(_, sent)] = wired.backend(pair).seen
    assert system_text(json.loads(sent)) == text


@pytest.mark.parametrize("pair", PAIRS)
async def test_header_mutation_changes_what_the_backend_gets(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its sets replace the client's, its removals are gone, the proxy's own names are not its."""
    wired = await wire(nursery, routing=routing(pair.model, HEADERS))
    client = [(b"x-drop-me", b"1"), (b"x-tier", b"silver"), (b"x-keep", b"1")]

    got = await wired.ask(pair, pair.body("please", model="auto"), lines=client)

    [(head, _)] = wired.backend(pair).seen
    shown = [
        line
        for line in head.lines
        if line[0].startswith(b"x-")
        and line[0] in {b"x-drop-me", b"x-tier", b"x-team", b"x-keep", b"x-envoy-retry-on"}
    ]
    assert sorted(shown) == [(b"x-keep", b"1"), (b"x-team", b"a"), (b"x-tier", b"gold")]
    assert got.line(b"x-team") == b""


@pytest.mark.parametrize(
    ("name", "value"), [("authorization", "Bearer of-the-plugin"), ("x-org", "of-the-plugin")]
)
async def test_header_mutation_comes_after_what_the_provider_sets(
    name: str, value: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Credential and extra headers are set first, so that the decision's own value is sent."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    model = model_of(
        backend.port,
        "alpha",
        base_url=f"'http://alpha.test:{backend.port}/v1'",
        provider="openai",
        api_key="of-the-provider",
        extra_headers="{x-org: of-the-provider}",
    )
    plugin = (
        f"{{type: header_mutation, configuration: {{update: [{{name: {name}, value: {value}}}]}}}}"
    )
    router = await start_router(
        nursery, network, document_of(model, routing=routing("alpha", plugin))
    )

    await router.ask(chat_body("please", model="auto"), lines=[(b"authorization", b"Bearer mine")])

    [(head, _)] = backend.seen
    sent = [line[1] for line in head.lines if line[0] == name.encode()]
    assert sent == [value.encode()]


@pytest.mark.parametrize("pair", [OPENAI, ANTHROPIC_TO_OPENAI])
async def test_request_params_judge_the_client_and_not_the_router(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What the Router adds, the wish for usage, is no less sent for being blocked to clients."""
    wired = await wire(nursery, routing=routing("alpha", PARAMS))
    body = pair.body(
        "please",
        model="auto",
        stream=True,
        max_tokens=9000,
        n=3,
        logit_bias={"1": 2},
        unheard_of=1,
        stream_options={"include_usage": False},
    )

    await wired.ask(pair, body)

    [(_, sent)] = wired.alpha.seen
    members = json.loads(sent)
    limit = "max_completion_tokens" if pair.is_anthropic_client else "max_tokens"
    assert members[limit] == 10
    assert members.get("n", 1) == 1
    assert {"logit_bias", "unheard_of"}.isdisjoint(members)
    assert members["stream_options"] == {"include_usage": True}


async def test_order_of_plugins_in_the_document_does_not_matter(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The order of execution is fixed."""
    plugins = [PARAMS, SYSTEM % "insert", HEADERS]
    body = chat_body("please", model="auto", max_tokens=9000, unheard_of=1)
    sent = []

    for order in (plugins, plugins[::-1]):
        wired = await wire(nursery, routing=routing("alpha", *order))
        await wired.ask(OPENAI, body)
        sent.append(wired.alpha.seen[0][1])

    assert sent[0] == sent[1]
    assert json.loads(sent[0])["max_tokens"] == 10


@pytest.mark.parametrize("pair", PAIRS)
async def test_named_model_meets_no_plugin(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A client that names a model gets it without anything that a decision adds."""
    plugins = [SYSTEM % "insert", HEADERS, PARAMS, FAST % "No."]
    wired = await wire(nursery, routing=routing(pair.model, *plugins))
    extra = {} if pair.is_translated else {"unheard_of": 1}

    got = await wired.ask(pair, pair.body("please", **extra), lines=[(b"x-drop-me", b"1")])

    [(head, sent)] = wired.backend(pair).seen
    assert got.status == 200
    assert b"Be kind." not in sent
    assert (b"unheard_of" in sent) is bool(extra)
    assert head.fields[b"x-drop-me"] == b"1"
    assert b"x-team" not in head.fields
    assert got.line(b"x-vsr-selected-decision") == b""


@pytest.mark.parametrize("pair", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize("is_streaming", [False, True])
@pytest.mark.parametrize(
    "message", ["I cannot  do\n\nthat.", 'chatcmpl-9 or "chatcmpl-1" \u6f22 \U0001f600']
)
async def test_fast_response_answers_in_the_clients_protocol(
    *,
    message: str,
    is_streaming: bool,
    pair: Pair,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Field report S9: whole or as a valid stream; no backend hears of it; nothing was used."""
    quoted = json.dumps(message, ensure_ascii=False)
    wired = await wire(nursery, routing=routing("alpha", FAST % quoted, SYSTEM % "insert"))

    got = await wired.ask(pair, pair.body("please", model="auto", stream=is_streaming))

    line = await wired.last_log()
    kind = b"text/event-stream" if is_streaming else b"application/json"
    assert (got.status, got.line(b"content-type")) == (200, kind)
    assert fast_text(pair, got.body, is_streaming=is_streaming) == message
    assert got.line(b"x-vsr-response-path") == b"fast_response"
    assert got.line(b"x-vsr-fast-response") == b"true"
    assert got.line(b"x-vsr-selected-decision") == b"d"
    assert got.line(b"x-vsr-selected-recipe") == b"default"
    assert not wired.alpha.seen
    assert (line["outcome"], line["attempts"], line["upstream_host"]) == ("succeeded", 0, "")
    assert not line["prompt_tokens"]
    assert await wired.router.held() == (0, 0)


def fast_text(pair: Pair, body: bytes, *, is_streaming: bool) -> str:
    """Return the text of a fast response, after a look at its form."""
    if pair.is_anthropic_client:
        message = fold_anthropic(body) if is_streaming else json.loads(body)
        assert message["stop_reason"] == "end_turn"
        assert message["id"].startswith("msg_fast")
        assert message["model"] == "alpha"
        assert message["usage"]["input_tokens"] == message["usage"]["output_tokens"] == 0
        return "".join(block["text"] for block in message["content"])
    if is_streaming:
        *chunks, done = data_of(body)
        assert done == "[DONE]"
        assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
        assert all("usage" not in chunk for chunk in chunks)
        return "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
    completion = json.loads(body)
    assert completion["usage"]["total_tokens"] == 0
    assert completion["id"].startswith("chatcmpl-fast-")
    text: str = completion["choices"][0]["message"]["content"]
    return text


REASONING = """
version: v0.3
listeners: [{{name: http, address: 127.0.0.1, port: 8899}}]
providers:
  defaults: {{model: plain, reasoning_effort: low}}
  models:
    - name: plain
      backend_refs: [{{endpoint: "127.0.0.1:{port}"}}]
    - name: thinker
      reasoning:
        type: chat_template_kwargs
        parameter: enable_thinking
        modes: [enabled, disabled]
        default_mode: disabled
      backend_refs: [{{endpoint: "127.0.0.1:{port}"}}]
routing:
  signals:
    keywords:
      - {{name: deep, operator: OR, keywords: [prove]}}
      - {{name: flat, operator: OR, keywords: [greet]}}
      - {{name: none, operator: OR, keywords: [other]}}
  decisions:
    - name: deep
      rules: {{operator: AND, conditions: [{{type: keyword, name: deep}}]}}
      modelRefs: [{{model: thinker, use_reasoning: true}}]
    - name: flat
      rules: {{operator: AND, conditions: [{{type: keyword, name: flat}}]}}
      modelRefs: [{{model: thinker, use_reasoning: false}}]
    - name: none
      rules: {{operator: AND, conditions: [{{type: keyword, name: none}}]}}
      modelRefs: [{{model: plain}}]
"""


@pytest.mark.parametrize(
    ("model", "text", "mode", "kwargs"),
    [
        ("auto", "prove it", b"on", {"enable_thinking": True, "keep": 1}),
        ("auto", "greet me", b"off", {"enable_thinking": False, "keep": 1}),
        ("auto", "other things", b"off", {"keep": 1}),
        ("thinker", "prove it", b"off", {"keep": 1}),
        ("auto", "nothing matches", b"off", {"keep": 1}),
    ],
)
async def test_reasoning_is_that_of_the_decisions_reference(
    model: str,
    text: str,
    mode: bytes,
    kwargs: dict[str, object],
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Two references to one model may differ; without a decision or a family nothing changes."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    router = await start_router(nursery, network, REASONING.format(port=backend.port))
    body = chat_body(text, model=model, chat_template_kwargs={"keep": 1}, reasoning_effort="high")

    got = await router.ask(body, lines=[(b"x-vsr-debug", b"true")])

    [(_, sent)] = backend.seen
    members = json.loads(sent)
    assert members["chat_template_kwargs"] == kwargs
    assert ("reasoning_effort" in members) is ("enable_thinking" not in kwargs)
    assert got.line(b"x-vsr-selected-reasoning") == mode
