"""Errors that the Router makes itself, in the form that the client reads."""

import json

import pytest
import trio
import trio.testing

from tests.demo.raw_client import CHAT, Got
from tests.engine.wired import ANTHROPIC, MESSAGES, OPENAI, PAIRS, Pair, wire
from vsr.headers import HeaderLine

KEYS = "api_keys: [listener-key]"


def told(target: bytes, got: Got) -> tuple[str, str]:
    """Return type and message of an error in the form of the API that was asked for."""
    error = json.loads(got.body)
    if target.startswith(MESSAGES):
        assert (list(error), error["type"]) == (["type", "error"], "error")
        assert list(error["error"]) == ["type", "message"]
    else:
        assert list(error) == ["error"]
        assert list(error["error"]) == ["type", "code", "message", "param"]
    return error["error"]["type"], error["error"]["message"]


@pytest.mark.parametrize("pair", [OPENAI, ANTHROPIC])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "JSON"),
        (b"{", "JSON"),
        (b"[]", "JSON"),
        (b'{"model":"alpha","model":"claude","messages":[]}', "JSON"),
        (b'{"messages":[]}', "model"),
        (b'{"model":"","messages":[]}', "model"),
        (b'{"model":7,"messages":[]}', "model"),
        (b'{"model":"alpha"}', "messages"),
        (b'{"model":"alpha","messages":{}}', "messages"),
        (b'{"model":"alpha","messages":[],"stream":"yes"}', "stream"),
        (b'{"model":"nobody","messages":[]}', "not available"),
        (b'{"model":"Alpha","messages":[]}', "not available"),
    ],
)
async def test_request_that_cannot_be_served_is_a_400(
    pair: Pair,
    body: bytes,
    message: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """With the headers of an error; no backend hears of it, and the connection goes on."""
    wired = await wire(nursery)

    got = await wired.ask(pair, body)

    kind, text = told(pair.target, got)
    assert (got.status, kind) == (400, "invalid_request_error")
    assert message.lower() in text.lower()
    assert got.line(b"x-vsr-response-path") == b"error"
    assert got.is_reusable
    assert not wired.alpha.seen
    assert not wired.claude.seen


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        (b"GET", CHAT, 405),
        (b"GET", MESSAGES, 405),
        (b"PUT", MESSAGES + b"/?beta=true", 405),
        (b"POST", MESSAGES + b"/count_tokens", 404),
        (b"GET", MESSAGES + b"/batches", 404),
        (b"POST", b"/v1/responses", 404),
        (b"GET", b"/v1/responses/resp_1", 404),
        (b"GET", b"/v1/router_replay/x", 404),
        (b"POST", b"/v1/models", 405),
    ],
)
async def test_path_that_is_not_served_so_is_refused_in_its_apis_form(
    method: bytes,
    target: bytes,
    status: int,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Below `/v1/messages` that is Anthropic's form, before anything of the body is known."""
    wired = await wire(nursery)

    got = await wired.router.ask(b"{}", method=method, target=target)

    kind, _ = told(target, got)
    anthropic = "not_found_error" if status == 404 else "api_error"
    wanted = anthropic if target.startswith(MESSAGES) else "invalid_request_error"
    assert (got.status, kind) == (status, wanted)
    assert not wired.alpha.seen


@pytest.mark.parametrize(
    ("pair", "line", "is_let_in"),
    [
        (OPENAI, (b"authorization", b"Bearer listener-key"), True),
        (ANTHROPIC, (b"authorization", b"Bearer listener-key"), True),
        (OPENAI, (b"api-key", b"listener-key"), True),
        (ANTHROPIC, (b"x-api-key", b"listener-key"), True),
        (OPENAI, (b"x-api-key", b"listener-key"), False),
        (ANTHROPIC, (b"x-api-key", b"other"), False),
        (OPENAI, (b"authorization", b"Bearer other"), False),
        (ANTHROPIC, (b"x-other", b"listener-key"), False),
    ],
)
async def test_listeners_key_is_taken_where_the_clients_put_it(
    *,
    pair: Pair,
    line: HeaderLine,
    is_let_in: bool,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A key never goes further, and a 401 has the client's form."""
    wired = await wire(nursery, listener=KEYS)

    got = await wired.ask(pair, lines=[line])

    if is_let_in:
        [(head, _)] = wired.backend(pair).seen
        assert got.status == 200
        assert b"listener-key" not in b"".join(value for _, value in head.lines)
    else:
        kind, message = told(pair.target, got)
        assert (got.status, kind) == (401, "authentication_error")
        assert message == "Unauthorized: missing or invalid API key"
        assert got.line(b"www-authenticate") == b'Bearer realm="vllm-semantic-router"'
        assert not wired.backend(pair).seen


@pytest.mark.parametrize("pair", [OPENAI, ANTHROPIC])
async def test_body_over_the_limit_is_a_413_that_names_it(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report B2."""
    wired = await wire(nursery, listener="max_body_bytes: 400")

    fits = await wired.ask(pair, pair.body().ljust(400))
    got = await wired.ask(pair, pair.body().ljust(401))

    kind, message = told(pair.target, got)
    assert (fits.status, got.status) == (200, 413)
    assert kind == "invalid_request_error"
    assert "400 bytes" in message


async def test_automatic_name_without_anything_to_serve_it_is_a_400(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Both clients are told that nothing was selected."""
    wired = await wire(nursery, routing="{}")
    text = f"""
version: v0.3
listeners: [{{name: http, address: 127.0.0.1, port: 8899}}]
providers:
  models: [{{name: alpha, backend_refs: [{{endpoint: "127.0.0.1:{wired.alpha.port}"}}]}}]
routing: {{}}
"""
    wired.router.activate(text, 2)

    for pair in (OPENAI, ANTHROPIC):
        got = await wired.ask(pair, pair.body(model="auto"))

        _, message = told(pair.target, got)
        assert got.status == 400
        assert message.startswith("unable to route request: no model selected")


@pytest.mark.parametrize("pair", PAIRS)
async def test_backend_that_is_not_there_is_a_local_reply_in_every_protocol(
    pair: Pair, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The routed call's own failure has the proxy's text, and skips the response phases."""
    wired = await wire(nursery)
    wired.router.network.forget(wired.backend(pair).port)

    got = await wired.ask(pair)

    assert (got.status, got.line(b"content-type")) == (503, b"text/plain")
    assert got.body.startswith(b"upstream connect error")
    assert got.line(b"x-vsr-response-path") == b""
