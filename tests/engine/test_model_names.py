"""Names that clients ask for: recipes behind entrypoints, adapters, provider names, defaults."""

import json

import pytest
import trio
import trio.testing

from tests.demo.raw_client import Got, chat_body
from tests.fakes.router import start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.network.memory import MemoryNetwork

DOCUMENT = """
version: v0.3
listeners: [{{name: http, address: 127.0.0.1, port: 8899}}]
providers:
  defaults: {{model: {default}}}
  models:
    - name: base
      provider_model_id: org/base
      external_model_ids: {{vllm: served-base, openai: gpt-base}}
      backend_refs: [{{endpoint: "127.0.0.1:{port}"}}]
    - name: other
      provider_model_id: org/other
      backend_refs: [{{endpoint: "127.0.0.1:{port}"}}]
routing:
  modelCards: [{{name: base, loras: [{{name: med}}, {{name: law}}]}}, {{name: other}}]
  signals:
    keywords:
      - {{name: doctor, operator: OR, keywords: [doctor]}}
      - {{name: twice, operator: OR, keywords: [twice]}}
  decisions:
    - name: medical
      priority: 5
      rules: {{operator: AND, conditions: [{{type: keyword, name: doctor}}]}}
      modelRefs: [{{model: base, lora_name: med}}]
    - name: twice
      rules: {{operator: AND, conditions: [{{type: keyword, name: twice}}]}}
      modelRefs: [{{model: base, lora_name: law}}, {{model: base}}]
recipes:
  - name: support
    routing:
      signals: {{keywords: [{{name: refund, operator: OR, keywords: [refund]}}]}}
      decisions:
        - name: billing
          rules: {{operator: AND, conditions: [{{type: keyword, name: refund}}]}}
          modelRefs: [{{model: other}}]
          plugins:
            - {{type: header_mutation, configuration: {{add: [{{name: x-desk, value: billing}}]}}}}
  - name: bare
    routing: {{decisions: []}}
entrypoints:
  - {{model_names: [acme/support, acme/help], recipe: support}}
  - {{model_names: [acme/bare], recipe: bare}}
"""
NOBODY = "the requested model is not available"


async def ask_router(
    nursery: trio.Nursery, name: str, text: str, *, default: str = "other"
) -> tuple[Got, RawBackend]:
    """Ask a Router with two models on one backend."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    document = DOCUMENT.format(port=backend.port, default=default)
    router = await start_router(nursery, network, document)
    return await router.ask(chat_body(text, model=name)), backend


@pytest.mark.parametrize(
    ("name", "text", "recipe", "decision", "alias", "sent"),
    [
        ("auto", "see a doctor", "default", "medical", "base", "med"),
        ("auto", "think twice", "default", "twice", "base", "law"),
        ("auto", "a refund", "default", "", "other", "org/other"),
        (" MoM ", "see a doctor", "default", "medical", "base", "med"),
        ("acme/support", "a refund", "support", "billing", "other", "org/other"),
        ("acme/help", "a refund", "support", "billing", "other", "org/other"),
        ("acme/support", "see a doctor", "support", "", "other", "org/other"),
        ("acme/bare", "see a doctor", "bare", "", "other", "org/other"),
        ("base", "see a doctor", "", "", "base", "served-base"),
        ("med", "a refund", "", "", "base", "med"),
        ("law", "see a doctor", "", "", "base", "law"),
        ("served-base", "hi", "", "", "base", "served-base"),
        ("gpt-base", "hi", "", "", "base", "served-base"),
        ("org/base", "hi", "", "", "base", "served-base"),
        ("org/other", "hi", "", "", "other", "org/other"),
    ],
)
async def test_name_leads_to_recipe_decision_and_model(
    name: str,
    text: str,
    recipe: str,
    decision: str,
    alias: str,
    sent: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Recipes know only their own decisions; a model's other names are the model."""
    got, backend = await ask_router(nursery, name, text)

    [(head, body)] = backend.seen
    assert got.line(b"x-vsr-selected-recipe") == recipe.encode()
    assert got.line(b"x-vsr-selected-decision") == decision.encode()
    assert got.line(b"x-vsr-selected-model") == alias.encode()
    assert head.fields[b"x-selected-model"] == alias.encode()
    assert json.loads(body)["model"] == sent
    assert head.fields.get(b"x-desk") == (b"billing" if decision == "billing" else None)


@pytest.mark.parametrize(
    ("default", "alias", "sent"), [("base", "base", "served-base"), ("med", "base", "med")]
)
@pytest.mark.parametrize("name", ["auto", "acme/support", "acme/bare"])
async def test_default_model_serves_what_no_decision_takes(
    name: str,
    default: str,
    alias: str,
    sent: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """In every recipe; it may be an adapter."""
    got, backend = await ask_router(nursery, name, "hello", default=default)

    assert got.line(b"x-vsr-selected-model") == alias.encode()
    assert got.line(b"x-vsr-selected-algorithm") == b""
    assert json.loads(backend.seen[0][1])["model"] == sent


@pytest.mark.parametrize("name", ["support", "default", "vllm-sr/fusion", "Base", "base2", "MED"])
async def test_name_that_is_not_published_is_refused(
    name: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A recipe's own name and an algorithm's slug without a decision are none."""
    got, backend = await ask_router(nursery, name, "hello")

    error = got.json()["error"]
    assert isinstance(error, dict)
    assert (got.status, error["message"]) == (400, NOBODY)
    assert backend.seen == []


async def test_authored_list_of_automatic_names_is_exact(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Names that are not on it are models like any other, that is, unknown ones."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    document = DOCUMENT.format(port=backend.port, default="other")
    document += "global: {router: {auto_model_names: [acme/any]}}\n"
    router = await start_router(nursery, network, document)

    named = await router.ask(chat_body(model="acme/any"))
    former = [await router.ask(chat_body(model=name)) for name in ("auto", "MoM", "vllm-sr/auto")]

    assert (named.status, named.line(b"x-vsr-selected-recipe")) == (200, b"default")
    assert [got.status for got in former] == [400] * 3
