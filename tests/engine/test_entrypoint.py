"""Who serves a requested model name."""

import json

import pytest
import trio
import trio.testing

from tests.demo.raw_client import Got, chat_body
from tests.fakes.router import document_of, model_of, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.network.memory import MemoryNetwork

KEYWORD_ROUTING = """{
    signals: {keywords: [{name: code, operator: OR, keywords: [python]}],
              context: [{name: long, min_tokens: 1000}]},
    decisions: [
      {name: code, priority: 20, modelRefs: [{model: beta}, {model: alpha}],
       rules: {operator: AND, conditions: [{type: keyword, name: code}]}},
      {name: long, priority: 10, modelRefs: [{model: gamma}],
       rules: {operator: OR, conditions: [{type: context, name: long}]}}]}"""
MATCH_ALL = "{decisions: [{name: everything, modelRefs: [{model: beta}]}]}"
NO_MODELS = "{decisions: [{name: bare, modelRefs: []}]}"
NO_DEFAULT = "unable to route request: no model selected and no default model configured"


async def ask_router(
    nursery: trio.Nursery, body: bytes, *, default: str = "alpha", routing: str = ""
) -> tuple[Got, RawBackend]:
    """Ask a Router with the models alpha, beta and gamma on one backend."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    models = [
        model_of(backend.port, name, provider_model_id=f"{name}-real")
        for name in ("alpha", "beta", "gamma")
    ]
    document = document_of(*models, default=default, routing=routing)
    router = await start_router(nursery, network, document)
    return await router.ask(body), backend


@pytest.mark.parametrize(
    ("name", "text", "routing", "model", "recipe", "decision"),
    [
        ("vllm-sr/auto", "hi", KEYWORD_ROUTING, "alpha", "default", ""),
        ("auto", "hi", KEYWORD_ROUTING, "alpha", "default", ""),
        ("MoM", "hi", KEYWORD_ROUTING, "alpha", "default", ""),
        ("auto", "some Python code", KEYWORD_ROUTING, "beta", "default", "code"),
        ("auto", "word " * 1200, KEYWORD_ROUTING, "gamma", "default", "long"),
        ("auto", "python " * 1200, KEYWORD_ROUTING, "beta", "default", "code"),
        ("auto", "hi", MATCH_ALL, "beta", "default", "everything"),
        ("gamma", "some Python code", KEYWORD_ROUTING, "gamma", "", ""),
    ],
)
async def test_name_is_served_by_model(
    name: str,
    text: str,
    routing: str,
    model: str,
    recipe: str,
    decision: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Automatic names decide, fall to the default model; a configured name is taken as it is."""
    got, backend = await ask_router(nursery, chat_body(text, model=name), routing=routing)

    assert got.status == 200
    [(head, body)] = backend.seen
    assert json.loads(body)["model"] == f"{model}-real"
    assert head.fields[b"x-selected-model"] == model.encode()
    assert got.line(b"x-vsr-selected-model") == model.encode()
    assert got.line(b"x-vsr-selected-recipe") == recipe.encode()
    assert got.line(b"x-vsr-selected-decision") == decision.encode()
    assert got.line(b"x-vsr-selected-algorithm") == (b"static" if decision else b"")
    assert got.line(b"x-vsr-selected-confidence") == (b"0.0000" if routing == MATCH_ALL else b"")


@pytest.mark.parametrize(
    ("name", "default", "code", "message", "param"),
    [
        (
            "nope",
            "alpha",
            "model_not_found",
            "the requested model is not available",
            None,
        ),
        (
            "Alpha",
            "alpha",
            "model_not_found",
            "the requested model is not available",
            None,
        ),
        ("auto", "", "invalid_request", NO_DEFAULT, "model"),
        ("", "alpha", "model_required", "model is required", None),
    ],
)
async def test_name_that_nobody_serves_is_refused(
    name: str,
    default: str,
    code: str,
    message: str,
    param: str | None,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A 400 with all four members, and no backend hears of it."""
    got, backend = await ask_router(nursery, chat_body(model=name), default=default)

    error = {"type": "invalid_request_error", "code": code, "message": message, "param": param}
    assert (got.status, got.json()) == (400, {"error": error})
    assert got.line(b"x-vsr-response-path") == b"error"
    assert got.line(b"x-vsr-config-version") == b"1"
    assert got.is_reusable
    assert backend.seen == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"model":null,"messages":[]}',
        b'{"model":"auto\xff","messages":[]}',
        b'{"model":"auto","messages":1}',
        b'{"model":"auto"}',
        b'{"model":7,"messages":[]}',
        b'{"model":"alpha","model":"beta","messages":[]}',
        b'{"model":"auto","messages":[{"role":"user","content":' + b"[" * 5000,
        b'{"model":"auto","messages":[' + b"[" * 3000 + b"]" * 3000 + b"]}",
        b'{"model":"auto","messages":[],"n":NaN}',
    ],
)
async def test_body_that_is_no_chat_request_is_a_typed_400(
    body: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Whatever is wrong with a body, it is the client's 400 and never our 500."""
    got, backend = await ask_router(nursery, body)

    error = got.json()["error"]
    assert isinstance(error, dict)
    assert got.status == 400
    assert list(error) == ["type", "code", "message", "param"]
    assert error["type"] == "invalid_request_error"
    assert backend.seen == []


@pytest.mark.parametrize("name", ["auto", "alpha"])
@pytest.mark.parametrize("text", [rb"cut \ud83d off", b"cut \xf0\x9f off", rb"\ude00\ud83d"])
async def test_broken_text_passes_as_it_is_or_is_refused(
    text: bytes, name: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Field report B1: half a surrogate pair is bytes to pass on, or a 400; never a 500."""
    body = b'{"model":"%b","messages":[{"role":"user","content":"%b"}]}' % (name.encode(), text)

    got, backend = await ask_router(nursery, body)

    assert got.status in {200, 400}
    if got.status == 200:
        sent = backend.seen[0][1]
        assert sent == body.replace(b'"%b"' % name.encode(), b'"alpha-real"', 1)
