"""Headers by which a client may, or may not, steer the Router."""

import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.engine.wired import (
    ANTHROPIC_TO_OPENAI,
    CHAT_PIECES,
    COMPLETION,
    MATCH_ALL,
    OPENAI,
    PAIRS,
    Pair,
    chunked,
    whole,
    wire,
)
from vsr.headers import HeaderLine

OPEN = "global: {router: {skip_processing: {enabled: true}}}"
SKIP = (b"x-vsr-skip-processing", b" TRUE ")
KEYWORD = """{signals: {keywords: [{name: one, operator: OR, keywords: [alpha]},
    {name: two, operator: OR, keywords: [beta]}], context: [{name: short, max_tokens: 500}]},
  decisions: [{name: both, modelRefs: [{model: alpha}],
    rules: {operator: AND, conditions: [{type: keyword, name: one}, {type: keyword, name: two},
      {type: context, name: short}]}}]}"""
FORGED: list[HeaderLine] = [
    (b"x-vsr-internal-auth", b"guess"),
    (b"x-vsr-looper-request", b"true"),
    (b"x-vsr-looper-secret", b"guess"),
    (b"x-vsr-looper-decision", b"both"),
    (b"x-vsr-looper-iteration", b"1"),
    (b"x-vsr-fusion-depth", b"3"),
    (b"x-vsr-selected-recipe", b"default"),
    (b"x-authz-user-id", b"root"),
    (b"x-authz-user-groups", b"admin"),
    (b"x-selected-model", b"claude"),
]


def of_ours(lines: list[HeaderLine]) -> list[bytes]:
    """Return the names that only the Router sets on answers."""
    return [name for name, _ in lines if name.startswith(b"x-vsr-")]


@pytest.mark.parametrize("pair", PAIRS)
async def test_skip_header_means_nothing_while_its_gate_is_closed(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The request is routed like any other."""
    wired = await wire(nursery)

    got = await wired.ask(pair, lines=[SKIP])
    nonsense = await wired.ask(pair, b"not json", lines=[SKIP])

    assert got.line(b"x-vsr-selected-model") == pair.model.encode()
    assert (got.status, nonsense.status) == (200, 400)


@pytest.mark.parametrize("target", [b"/v1/chat/completions", b"/v1/messages", b"/v1/anything?x=1"])
async def test_skipped_request_passes_untouched(
    target: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Whatever its body is, to the first model's backend; the answer has nothing of ours."""
    wired = await wire(nursery, more=OPEN)

    got = await wired.router.ask(
        b"not json at all", target=target, lines=[SKIP, (b"accept-encoding", b"gzip"), *FORGED[:9]]
    )

    [(head, body)] = wired.alpha.seen
    assert (got.status, got.body) == (200, COMPLETION)
    assert got.head is not None
    assert of_ours(got.head.lines) == []
    assert (head.target, body) == (target, b"not json at all")
    assert head.fields[b"accept-encoding"] == b"gzip"
    assert not {name for name, _ in FORGED} & set(head.fields)


async def test_skipped_stream_and_error_pass_as_they_come(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """No usage is taken out, no error is put into another form."""
    wired = await wire(nursery, more=OPEN)
    wired.alpha.steps = chunked(200, *CHAT_PIECES)
    streamed = await wired.ask(OPENAI, OPENAI.body(stream=True), lines=[SKIP])
    wired.alpha.steps = whole(503, b"<html>", (b"content-type", b"text/html"))

    failed = await wired.ask(ANTHROPIC_TO_OPENAI, lines=[SKIP])

    assert streamed.body == b"".join(CHAT_PIECES)
    assert (failed.status, failed.body) == (503, b"<html>")
    assert failed.line(b"content-type") == b"text/html"


@pytest.mark.parametrize("value", [b"false", b"1", b"yes", b""])
async def test_other_values_skip_nothing(
    value: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Only `true` opts out."""
    wired = await wire(nursery, more=OPEN)

    got = await wired.ask(OPENAI, lines=[(b"x-vsr-skip-processing", value)])

    assert got.line(b"x-vsr-selected-model") == b"alpha"


@pytest.mark.parametrize("lines", [[], [SKIP]])
async def test_replay_stays_closed_even_to_who_opts_out(
    lines: list[HeaderLine], nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Source: the reference's fixture `04-skip-processing`."""
    wired = await wire(nursery, more=OPEN)

    got = await wired.router.ask(
        b"", method=b"GET", target=b"/v1/router_replay/abc?x=1", lines=lines
    )

    assert got.status == 404
    assert not wired.alpha.seen


@pytest.mark.parametrize("more", ["", OPEN])
@pytest.mark.parametrize(
    ("target", "lines"),
    [(b"/v1/chat/completions", []), (b"/v1/embeddings", []), (b"/v1/embeddings", [SKIP])],
)
async def test_users_own_provider_keys_reach_no_backend(
    target: bytes,
    lines: list[HeaderLine],
    more: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Field reports X1, X2: on whichever way a request takes."""
    wired = await wire(nursery, more=more)
    keys = [(b"x-user-openai-key", b"canary-1"), (b"x-user-anthropic-key", b"canary-2")]

    await wired.router.ask(chat_body(model="alpha"), target=target, lines=[*lines, *keys])

    [(head, _)] = wired.alpha.seen
    assert b"canary" not in b"".join(value for _, value in head.lines)


@pytest.mark.parametrize("pair", PAIRS)
async def test_forged_internal_headers_mean_nothing(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report X2: same decision, same headers of ours, and none of them travels on."""
    wired = await wire(nursery, routing=MATCH_ALL.replace("alpha", pair.model))
    body = pair.body(model="auto")

    plain = await wired.ask(pair, body)
    forged = await wired.ask(pair, body, lines=FORGED)

    assert plain.head is not None
    assert forged.head is not None
    assert of_ours(forged.head.lines) == of_ours(plain.head.lines)
    assert forged.line(b"x-vsr-selected-model") == pair.model.encode()
    [_, (head, _)] = wired.backend(pair).seen
    assert head.fields[b"x-selected-model"] == pair.model.encode()
    assert not {name for name, _ in FORGED[:9]} & set(head.fields)


@pytest.mark.parametrize(("value", "is_shown"), [(b" True", True), (b"1", False), (b"", False)])
async def test_debug_headers_are_shown_to_who_asks(
    *, value: bytes, is_shown: bool, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What was injected, how it reasons, and which rules matched, in the order of the document."""
    wired = await wire(nursery, routing=KEYWORD)
    body = OPENAI.body("beta and alpha", model="auto")

    got = await wired.ask(OPENAI, body, lines=[(b"x-vsr-debug", value)])

    assert got.line(b"x-vsr-selected-decision") == b"both"
    assert got.line(b"x-vsr-selected-reasoning") == (b"off" if is_shown else b"")
    assert got.line(b"x-vsr-injected-system-prompt") == (b"false" if is_shown else b"")
    assert got.line(b"x-vsr-matched-keywords") == (b"one,two" if is_shown else b"")
    assert got.line(b"x-vsr-matched-context") == (b"short" if is_shown else b"")


@pytest.mark.parametrize("status", [200, 503])
async def test_debug_names_the_protocols_even_if_they_are_one(
    status: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Source: the reference's fixture `09-debug-response-headers`."""
    wired = await wire(nursery)
    wired.alpha.steps = whole(status, COMPLETION)

    got = await wired.ask(OPENAI, lines=[(b"x-vsr-debug", b"true")])

    assert got.status == status
    assert got.line(b"x-vsr-client-protocol") == b"openai"
    assert got.line(b"x-vsr-upstream-protocol") == b"openai"
    assert (got.line(b"x-vsr-selected-model") == b"") is (status == 503)


@pytest.mark.parametrize("is_streaming", [False, True])
async def test_debug_headers_are_on_streams_too(
    *, is_streaming: bool, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The stream itself is the same; its length is not declared."""
    wired = await wire(nursery)
    wired.alpha.steps = [*chunked(200, *CHAT_PIECES)] if is_streaming else whole(200, COMPLETION)
    body = OPENAI.body(stream=is_streaming)

    plain = await wired.ask(OPENAI, body)
    debugged = await wired.ask(OPENAI, body, lines=[(b"x-vsr-debug", b"true")])

    assert debugged.body == plain.body
    assert debugged.line(b"x-vsr-selected-reasoning") == b"off"
