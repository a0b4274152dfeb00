"""Whole requests and answers between clients and backends of either protocol."""

import json
from typing import Any

import pytest
import trio
import trio.testing

from tests.demo.raw_client import Got
from tests.engine.wired import (
    ANTHROPIC,
    ANTHROPIC_TO_OPENAI,
    COMPLETION,
    OPENAI,
    OPENAI_TO_ANTHROPIC,
    PAIRS,
    Pair,
    whole,
    wire,
)
from vsr.headers import HeaderLine

CLAUDE_ALL = "{decisions: [{name: all, modelRefs: [{model: claude}], plugins: [%s]}]}"
PROMPT = "{type: system_prompt, configuration: {system_prompt: Be kind., mode: %s}}"
SHORT = b'{"model":"claude","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}'
ODD = (
    b' {\n"max_tokens" : 5 , "x":1.50, "messages" : [ {"role":"user","content":[{"type":'
    b'"text","text":"\\u00e9 \xf0\x9f\x98\x80","cache_control":{"type":"ephemeral"}}]} ] ,'
    b' "system":[{"type":"text","text":"s"}], "model":"claude" }\r\n'
)
SIGNED = (
    b'{"model":"claude","thinking":{"type":"enabled","budget_tokens":1024},"max_tokens":9000,'
    b'"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t",'
    b'"signature":"AbC=="},{"type":"redacted_thinking","data":"x"}]},'
    b'{"role":"user","content":"go on"}]}'
)


def said(pair: Pair, got: Got) -> str:
    """Return the text of a whole answer in the client's protocol."""
    members: dict[str, Any] = json.loads(got.body)
    if pair.is_anthropic_client:
        assert (members["type"], members["role"]) == ("message", "assistant")
        assert members["stop_reason"] == "end_turn"
        assert members["usage"]["input_tokens"] == 7
        assert members["usage"]["output_tokens"] == 3
        return "".join(block["text"] for block in members["content"])
    assert members["object"] == "chat.completion"
    [choice] = members["choices"]
    assert choice["finish_reason"] == "stop"
    assert members["usage"]["prompt_tokens"] == 7
    assert members["usage"]["completion_tokens"] == 3
    text: str = choice["message"]["content"]
    return text


@pytest.mark.parametrize("pair", PAIRS)
async def test_client_gets_the_answer_in_its_own_protocol(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Text, reason and usage; headers name the protocols only where they differ."""
    wired = await wire(nursery)

    got = await wired.ask(pair)

    assert (got.status, said(pair, got)) == (200, "Hello you")
    names = (b"openai", b"anthropic") if pair.is_translated else (b"", b"")
    client, upstream = names[:: -1 if pair.is_anthropic_client else 1]
    assert got.line(b"x-vsr-client-protocol") == client
    assert got.line(b"x-vsr-upstream-protocol") == upstream
    assert got.line(b"x-vsr-selected-model") == pair.model.encode()
    assert got.line(b"content-length") == b"%d" % len(got.body)
    assert got.is_reusable
    line = await wired.last_log()
    assert (line["prompt_tokens"], line["completion_tokens"]) == (7, 3)


@pytest.mark.parametrize("pair", PAIRS)
async def test_backend_gets_the_request_in_its_own_protocol(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Path, model, length; identity encoding, because answers have to be read."""
    wired = await wire(nursery)

    await wired.ask(pair, lines=[(b"accept-encoding", b"gzip, br")])

    [(head, sent)] = wired.backend(pair).seen
    members = json.loads(sent)
    is_anthropic = pair.model == "claude"
    assert head.target == (b"/v1/messages" if is_anthropic else b"/v1/chat/completions")
    assert members["model"] == f"{pair.model}-real"
    assert head.fields[b"content-length"] == b"%d" % len(sent)
    assert head.fields[b"accept-encoding"] == b"identity"
    assert head.fields[b"x-selected-model"] == pair.model.encode()
    assert head.fields.get(b"anthropic-version") == (b"2023-06-01" if is_anthropic else None)
    if pair is ANTHROPIC_TO_OPENAI:
        assert (members["max_completion_tokens"], "max_tokens" in members) == (50, False)


@pytest.mark.parametrize("body", [SHORT, ODD, SIGNED])
@pytest.mark.parametrize("is_streaming", [False, True])
async def test_plain_anthropic_request_changes_nothing_but_the_model(
    *,
    is_streaming: bool,
    body: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Field report P9: signatures and prompt caches hold byte for byte, what we don't know, too."""
    wired = await wire(nursery)
    if is_streaming:
        body = body.replace(b'"max_tokens"', b'"stream": true, "max_tokens"')

    got = await wired.ask(ANTHROPIC, body)

    [(_, sent)] = wired.claude.seen
    assert sent == body.replace(b'"claude"', b'"claude-real"')
    assert got.body == ANTHROPIC.answer


@pytest.mark.parametrize("mode", ["insert", "replace"])
async def test_anthropic_request_keeps_its_blocks_beside_a_plugins_change(
    mode: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Only the system prompt differs from what the client sent."""
    wired = await wire(nursery, routing=CLAUDE_ALL % (PROMPT % mode))
    history = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "hi", "cache_control": {"type": "x"}}],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "sig=="},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"b": 1, "a": [2.50]}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "42"}],
        },
    ]
    request = {
        "model": "auto",
        "max_tokens": 9,
        "top_k": 4,
        "system": "Be brief.",
        "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        "messages": history,
    }

    got = await wired.ask(ANTHROPIC, json.dumps(request).encode())

    [(_, sent)] = wired.claude.seen
    members = json.loads(sent)
    system = members.pop("system")
    texts = system if isinstance(system, str) else "".join(block["text"] for block in system)
    assert got.status == 200
    assert texts == ("Be kind.\n\nBe brief." if mode == "insert" else "Be kind.")
    del request["system"]
    assert members == request | {"model": "claude-real"}


async def test_openai_history_with_tools_reaches_an_anthropic_backend(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field reports P5, P8: ids, order and arguments; parallel results make one turn."""
    wired = await wire(nursery)
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": f'{{"n": {n}}}'}}
        for n in (1, 2)
    ]
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "both"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
    ]
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    body = OPENAI_TO_ANTHROPIC.body(messages=messages, tools=[tool])

    got = await wired.ask(OPENAI_TO_ANTHROPIC, body)

    [(_, sent)] = wired.claude.seen
    members = json.loads(sent)
    assert got.status == 200
    assert [turn["role"] for turn in members["messages"]] == ["user", "assistant", "user"]
    assert [(block["id"], block["input"]) for block in members["messages"][1]["content"]] == [
        ("c1", {"n": 1}),
        ("c2", {"n": 2}),
    ]
    assert [block["tool_use_id"] for block in members["messages"][2]["content"]] == ["c1", "c2"]
    assert members["tools"][0]["input_schema"] == {"type": "object"}
    assert "Be brief." in json.dumps(members["system"])


async def test_anthropic_history_with_tools_reaches_an_openai_backend(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report P5: tool uses and results stay, so that no model asks in circles."""
    wired = await wire(nursery)
    uses = [{"type": "tool_use", "id": f"t{n}", "name": "f", "input": {"n": n}} for n in (1, 2)]
    results = [{"type": "tool_result", "tool_use_id": f"t{n}", "content": f"r{n}"} for n in (1, 2)]
    messages = [
        {"role": "user", "content": "both"},
        {"role": "assistant", "content": [{"type": "text", "text": "Well."}, *uses]},
        {"role": "user", "content": [*results, {"type": "text", "text": "And now?"}]},
    ]
    tool = {"name": "f", "description": "d", "input_schema": {"type": "object"}}
    body = ANTHROPIC_TO_OPENAI.body(messages=messages, tools=[tool], tool_choice={"type": "any"})

    got = await wired.ask(ANTHROPIC_TO_OPENAI, body)

    [(_, sent)] = wired.alpha.seen
    members = json.loads(sent)
    turns = members["messages"]
    assert got.status == 200
    assert [turn["role"] for turn in turns] == ["user", "assistant", "tool", "tool", "user"]
    assert [
        (call["id"], json.loads(call["function"]["arguments"])) for call in turns[1]["tool_calls"]
    ] == [("t1", {"n": 1}), ("t2", {"n": 2})]
    assert [(turn["tool_call_id"], turn["content"]) for turn in turns[2:4]] == [
        ("t1", "r1"),
        ("t2", "r2"),
    ]
    assert members["tool_choice"] == "required"


@pytest.mark.parametrize("pair", [ANTHROPIC, ANTHROPIC_TO_OPENAI])
async def test_clients_version_of_the_messages_api_travels_on(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Only a client that names none gets the default; so with what it wants beyond the version."""
    wired = await wire(nursery)
    own = [(b"anthropic-version", b"2099-01-01"), (b"anthropic-beta", b"tools-2099")]

    await wired.ask(pair, lines=own)

    [(head, _)] = wired.backend(pair).seen
    assert [line for line in head.lines if line[0].startswith(b"anthropic-")] == sorted(own)


async def test_authored_version_of_the_messages_api_comes_before_the_clients(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A header that the document gives a provider fixes the name."""
    wired = await wire(nursery)
    text = f"""
version: v0.3
listeners: [{{name: http, address: 127.0.0.1, port: 8899}}]
providers:
  models:
    - name: claude
      backend_refs:
        - endpoint: 127.0.0.1:{wired.claude.port}
          provider: anthropic-compatible
          extra_headers: {{anthropic-version: 2024-02-02}}
routing: {{}}
"""
    wired.router.activate(text, 2)

    await wired.ask(ANTHROPIC, lines=[(b"anthropic-version", b"2099-01-01")])

    [(head, _)] = wired.claude.seen
    versions = [value for name, value in head.lines if name == b"anthropic-version"]
    assert versions == [b"2024-02-02"]


async def test_what_a_backend_cannot_be_told_is_named_in_a_header(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Success or failure; a request without losses has no such header."""
    wired = await wire(nursery)
    body = ANTHROPIC_TO_OPENAI.body(top_k=3)

    plain = await wired.ask(ANTHROPIC_TO_OPENAI)
    lossy = await wired.ask(ANTHROPIC_TO_OPENAI, body)
    wired.alpha.steps = whole(500, b"{}")
    failed = await wired.ask(ANTHROPIC_TO_OPENAI, body)

    wanted = b"lossy;top_k_drop_on_openai_backend;top_k"
    assert plain.line(b"x-vsr-protocol-warnings") == b""
    assert lossy.line(b"x-vsr-protocol-warnings") == wanted
    assert failed.line(b"x-vsr-protocol-warnings") == wanted
    assert (lossy.status, failed.status) == (200, 500)


async def test_losses_of_request_and_answer_are_named_together(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """In the order in which they were met; neither takes the other's place."""
    wired = await wire(nursery)
    answer = json.loads(COMPLETION)
    answer["choices"][0]["message"]["content"] = [
        {"type": "text", "text": "x"},
        {"type": "hologram"},
    ]
    wired.alpha.steps = whole(200, json.dumps(answer).encode())

    got = await wired.ask(ANTHROPIC_TO_OPENAI, ANTHROPIC_TO_OPENAI.body(top_k=3))

    entries = got.line(b"x-vsr-protocol-warnings").split(b",")
    assert [entry.split(b";")[:2] for entry in entries] == [
        [b"lossy", b"top_k_drop_on_openai_backend"],
        [b"lossy", b"unsupported_block_type"],
    ]


@pytest.mark.parametrize("pair", [OPENAI, ANTHROPIC])
async def test_answer_of_the_same_protocol_passes_byte_for_byte(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report S11: what nobody must read may be anything."""
    wired = await wire(nursery)
    odd = b' {"x" :1.0, "usage":{"prompt_tokens":"many"}}\r\n\xff'
    wired.backend(pair).steps = whole(200, odd)

    got = await wired.ask(pair)

    assert (got.status, got.body) == (200, odd)
    line = await wired.last_log()
    assert (line["prompt_tokens"], line["completion_tokens"]) == (None, None)


@pytest.mark.parametrize("pair", [OPENAI_TO_ANTHROPIC, ANTHROPIC_TO_OPENAI, ANTHROPIC])
@pytest.mark.parametrize(
    ("sent", "got"),
    [
        ([], b"application/json"),
        ([(b"content-type", b"application/x-www-form-urlencoded")], b"application/json"),
        (
            [(b"content-type", b"Application/JSON; charset=utf-8")],
            b"Application/JSON; charset=utf-8",
        ),
    ],
)
async def test_body_of_the_routers_making_is_called_json(
    pair: Pair,
    sent: list[HeaderLine],
    got: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Whatever the client called its own; curl's default is a form."""
    wired = await wire(nursery)

    await wired.ask(pair, lines=sent)

    [(head, _)] = wired.backend(pair).seen
    assert [value for name, value in head.lines if name == b"content-type"] == [got]
