"""A client that leaves while a graph works: every call that it has caused is closed at once."""

import pytest
import trio

from tests.e2e.standalone import Standalone, document, start_document, until
from tests.e2e.wire import chat, connect, post
from tests.fakes.backend import start_backend
from vsr.demo.script import Script
from vsr.demo.server import CallEnd
from vsr.network.epoll import EpollNetwork

FREED_WITHIN_S = 0.2
PATIENCE_S = 10

_ROUTING = """\
routing:
  graphs:
    tested:
      steps:
STEPS
        - {type: respond, from: $answer}
  decisions:
    - name: all
      modelRefs: [{model: small}, {model: large}]
      algorithm: {type: graph, graph: tested}
"""
SLOW = "{id: answer, type: call, model: small}"
STEPS = {
    "call": f"        - {SLOW}",
    "parallel": """\
        - {id: both, type: parallel, over: [small, large], as: model,
           do: [{type: call, model: $model}]}
        - {id: answer, type: aggregate, strategy: first_success, from: $both}""",
    "staggered": """\
        - {id: both, type: parallel, over: [small, large], as: model, stagger: 10ms, first_k: 1,
           do: [{type: call, model: $model}]}
        - {id: answer, type: aggregate, strategy: first_success, from: $both}""",
    "loop in branch": f"""\
        - id: answer
          type: branch
          cases:
            - when: {{not: {{empty: $request.question}}}}
              then:
                - {{id: rounds, type: loop, times: 3, do: [{SLOW.replace("answer", "said")}]}}
                - {{id: last, type: aggregate, strategy: last_success, from: $rounds}}
          else: [{SLOW.replace("answer", "other")}]""",
    "subgraph": """\
        - {id: answer, type: subgraph, graph: builtin/hedge,
           params: {models: $params.models, after: 10ms}}""",
}


async def start(nursery: trio.Nursery, steps: str) -> Standalone:
    """Serve a graph whose calls take a minute."""
    network = EpollNetwork()
    await nursery.start(network.run)
    script = Script(latency_s=60)
    small = await start_backend(nursery, network, script)
    large = await start_backend(nursery, network, script)
    routing = _ROUTING.replace("STEPS", steps)
    text = document(port=1, small=small.port, large=large.port, routing=routing)
    if "$params.models" in steps:
        text = text.replace(
            "      steps:\n", "      params: {models: {type: model_refs}}\n      steps:\n"
        )
    router, access_log, log_text = await start_document(nursery, network, text)
    return Standalone(network, router, small, large, access_log, log_text)


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
async def test_client_that_leaves_ends_every_call_of_its_graph(
    nursery: trio.Nursery, steps: str, *, is_streamed: bool
) -> None:
    """Each backend sees its connection close within 200 ms, and nothing is held after.

    A streamed request hands its last call out where that is a step's of its own.
    """
    with trio.fail_after(PATIENCE_S):
        served = await start(nursery, steps)
        models = (
            (served.small, served.large) if "both" in steps or "hedge" in steps else (served.small,)
        )
        with await connect(served.port) as client:
            await client.send(post(chat(stream=is_streamed)))
            await until(lambda: all(model.calls for model in models))

            client.close()
            calls = [model.calls[0] for model in models]
            await until(lambda: all(call.end is not None for call in calls), FREED_WITHIN_S)
            await until(lambda: not any(served.held().values()), FREED_WITHIN_S)

        assert [call.end for call in calls] == [CallEnd.PEER_GONE] * len(calls)
        [line] = await served.log_lines()
        assert (line["outcome"], line["cause"]) == ("cancelled", "client_gone")
