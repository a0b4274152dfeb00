"""Model names that ask for an algorithm: only its decisions answer, and one of them does."""

import pytest
import trio
import trio.testing

from tests.conformance.looper_reply import Response, reply_of
from tests.conformance.looper_server import ScriptedServer, SeenCall
from tests.demo.raw_client import Got, chat_body
from tests.fakes.router import start_router
from vsr.network.memory import MemoryNetwork

DOCUMENT = """
listeners: [{name: main, address: 127.0.0.1, port: 8899}]
providers:
  defaults: {model: other}
  models:
    - {name: other, backend_refs: [{endpoint: "127.0.0.1:PORT"}]}
    - {name: small, backend_refs: [{endpoint: "127.0.0.1:PORT"}]}
global:
  integrations:
    looper: {fusion: {model_names: [acme/fusion]}}
routing:
  signals:
    keywords:
      - {name: haiku, operator: OR, keywords: [haiku]}
      - {name: never, operator: OR, keywords: [xyzzy]}
  decisions:
    - name: anything
      priority: 900
      rules: {operator: AND, conditions: []}
      modelRefs: [{model: other}]
    - name: poems
      priority: 5
      rules: {type: keyword, name: haiku}
      modelRefs: [{model: small}]
      algorithm: {type: remom, remom: {breadth_schedule: [1]}}
    - name: best
      priority: 50
      rules: {operator: AND, conditions: [{type: keyword, name: never}]}
      modelRefs: [{model: small}]
      algorithm: {type: remom, remom: {breadth_schedule: [1]}}
    - name: as good
      priority: 50
      rules: {operator: AND, conditions: [{type: keyword, name: never}]}
      modelRefs: [{model: small}]
      algorithm: {type: remom, remom: {breadth_schedule: [1]}}
"""


async def ask(nursery: trio.Nursery, model: str, text: str) -> tuple[Got, list[str]]:
    """Return the answer, and the models that were called for it."""
    network = MemoryNetwork()

    def answer(call: SeenCall) -> Response:
        return reply_of({"content": "fine"}, call.body["model"])

    server = ScriptedServer(network, answer)
    await server.start(nursery)
    router = await start_router(nursery, network, DOCUMENT.replace("PORT", str(server.port)))
    got = await router.ask(chat_body(text, model=model))
    return got, [call.body["model"] for call in server.take_calls()]


@pytest.mark.parametrize(("text", "decision"), [("a haiku", b"poems"), ("hello", b"best")])
async def test_matching_decision_answers_else_the_one_of_highest_priority(
    text: str, decision: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The first of equal ones; no decision of another algorithm does, nor the default model."""
    del autojump_clock
    got, called = await ask(nursery, "vllm-sr/remom", text)

    assert got.status == 200
    assert got.line(b"x-vsr-selected-decision") == decision
    assert set(called) == {"small"}


async def test_name_of_an_algorithm_that_no_decision_has_is_refused(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It was written, so it is known; the default model does not stand in for a panel."""
    del autojump_clock
    got, called = await ask(nursery, "acme/fusion", "hello")

    error = got.json()["error"]
    assert isinstance(error, dict)
    assert got.status == 400
    assert error["message"] == 'no eligible Fusion decision matched for model "acme/fusion"'
    assert error["param"] == "model"
    assert called == []
