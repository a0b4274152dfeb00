"""What bounds a worst case holds while the graph runs, too."""

import json

import pytest
import trio
import trio.testing

from tests.conformance.looper_reply import Response, reply_of
from tests.conformance.looper_server import ScriptedServer, SeenCall
from tests.demo.raw_client import Got
from tests.fakes.router import start_router
from vsr.network.memory import MemoryNetwork

HEAD = """
listeners: [{name: main, address: 127.0.0.1, port: 8899}]
providers:
  models:
    - {name: small, backend_refs: [{endpoint: "127.0.0.1:PORT"}]}
    - {name: large, backend_refs: [{endpoint: "127.0.0.1:PORT"}]}
routing:
  decisions:
    - name: all
      rules: {operator: AND, conditions: []}
      algorithm: {type: graph, graph: it, params: {allowed: [small]}}
  graphs:
    it:
      params: {allowed: {type: models}}
      steps:
        - {id: first, type: call, model: small}
"""
TWICE = """        - id: twice
          type: loop
          times: 2
          do: [{type: transform, transformer: prompt, template: x}]
"""
ANSWER = "        - {type: respond, from: $first}\n"


async def ask(steps: str, said: str) -> tuple[Got, list[str]]:
    """Return the answer of a graph whose first call says `said`, and the models that were asked."""
    network = MemoryNetwork()

    def answer(call: SeenCall) -> Response:
        return reply_of({"content": said}, call.body["model"])

    server = ScriptedServer(network, answer)
    async with trio.open_nursery() as nursery:
        await server.start(nursery)
        document = (HEAD + steps + ANSWER).replace("PORT", str(server.port))
        router = await start_router(nursery, network, document)
        got = await router.ask(
            b'{"model":"auto","messages":[{"role":"system","content":"Be kind."},'
            b'{"role":"user","content":"Hi"}]}'
        )
        nursery.cancel_scope.cancel()
    return got, [call.body["model"] for call in server.calls]


@pytest.mark.parametrize(("said", "asked"), [("small", 2), ("large", 1), ("else", 1)])
async def test_call_asks_only_models_that_it_allows(
    said: str, asked: int, autojump_clock: trio.testing.MockClock
) -> None:
    """A result names the model; another one than those allowed fails before any call."""
    del autojump_clock
    step = "        - {type: call, model: $first.content, allow: $params.allowed}\n"

    got, models = await ask(step, said)

    assert models == ["small"] * asked
    assert got.status == (200 if asked == 2 else 500)
    if asked == 1:
        told = json.loads(got.body)["error"]["message"]
        assert told == f"request failed: the step does not allow the model {said}"


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ("parallel, over: $twice", "there are 2 branches, more than 1"),
        ("parallel, times: $request.message_count", "there are 2 branches, more than 1"),
        ("loop, over: $twice", "a loop has 2 items, more than 1"),
        ("loop, times: $request.message_count", "a loop has 2 rounds, more than 1"),
    ],
)
async def test_more_than_max_items_fail(
    step: str, told: str, autojump_clock: trio.testing.MockClock
) -> None:
    """Before the first of them runs."""
    del autojump_clock
    steps = f"        - {{type: {step}, max_items: 1, do: [{{type: call, model: large}}]}}\n"

    got, models = await ask(TWICE + steps, "anything")

    assert models == ["small"]
    assert json.loads(got.body)["error"]["message"] == told
