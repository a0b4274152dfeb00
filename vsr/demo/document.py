"""The demo: two model servers, a document that routes between them, and lines to try it."""

import json

import trio

from vsr.demo.script import Script
from vsr.demo.server import DemoModel
from vsr.network.port import Network

SMALL = "demo-small"
LARGE = "demo-large"
_LOOPBACK = "127.0.0.1"
_ANY_ADDRESS = {"0.0.0.0": _LOOPBACK, "::": "::1"}  # noqa: S104  # what a client may not dial
_SCRIPTS = (
    Script(model=SMALL, latency_s=0.002, chunk_interval_s=0.02),
    Script(model=LARGE, latency_s=0.008, chunk_interval_s=0.04),
)

_DOCUMENT = """\
version: v0.3

listeners:
  - name: demo
    address: {address}
    port: {port}

providers:
  defaults:
    model: demo-small            # what no decision claims
  models:
    - name: demo-small
      backend_refs:
        - endpoint: 127.0.0.1:{small_port}
    - name: demo-large
      backend_refs:
        - endpoint: 127.0.0.1:{large_port}

routing:
  signals:
    keywords:
      - name: code
        operator: OR
        keywords: [python, traceback, code, function, regex]
      - name: draft
        operator: OR
        keywords: [draft, rewrite]
      - name: hurry
        operator: OR
        keywords: [hurry, quickly]
    context:
      - name: long_prompt
        min_tokens: 1K
  graphs:
    draft:
      description: The small model drafts, and the large one answers with the draft at hand.
      limits: {{timeout: 20s, max_hops: 2}}
      steps:
        - {{id: draft, type: call, model: demo-small}}
        - id: brief
          type: transform
          transformer: prompt
          template: "Improve on: {{{{ draft.content }}}}"
        - {{id: answer, type: call, model: demo-large, request: $brief, stream: tail}}
        - {{type: respond, from: $answer}}
  decisions:
    - name: draft
      description: A request graph of this document.
      priority: 40
      rules: {{type: keyword, name: draft}}
      modelRefs: [{{model: demo-small}}, {{model: demo-large}}]
      algorithm: {{type: graph, graph: draft}}
    - name: hurry
      description: A graph that ships; the large model is asked when the small one is slow.
      priority: 30
      rules: {{type: keyword, name: hurry}}
      modelRefs: [{{model: demo-small}}, {{model: demo-large}}]
      algorithm: {{type: graph, graph: builtin/hedge, params: {{after: 50ms}}}}
    - name: code
      description: Questions about code need the large model.
      priority: 20
      rules:
        operator: OR
        conditions:
          - type: keyword
            name: code
      modelRefs:
        - model: demo-large
    - name: long_prompt
      description: So do long prompts.
      priority: 10
      rules:
        operator: OR
        conditions:
          - type: context
            name: long_prompt
      modelRefs:
        - model: demo-large
"""

_BANNER = """\
The Router serves two demo models on {base}. Try:

A short question goes to demo-small:
  curl -s {base}/v1/chat/completions {json} -d '{small}'

One about code goes to demo-large; the x-vsr-selected-* headers say why:
  curl -si {base}/v1/chat/completions {json} -d '{large}'

The same, streamed:
  curl -sN {base}/v1/chat/completions {json} -d '{streamed}'

Ask for a "draft", or say "hurry": request graphs answer then.
"""


async def serve_demo_models(
    network: Network,
    host: str,
    port: int,
    *,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve both demo models until cancelled; starts with the demo document's YAML text.

    Args:
        network: its `run` must be running.
        host: of the Router's listener, as an IP literal.
        port: of the Router's listener.
        task_status: receives the text.
    """
    async with trio.open_nursery() as nursery:
        ports: list[int] = []
        for script in _SCRIPTS:
            model = DemoModel(network, script, history=0)
            await nursery.start(model.run, _LOOPBACK, 0)
            ports.append(model.port)
        small_port, large_port = ports
        task_status.started(demo_document(host, port, small_port=small_port, large_port=large_port))


def demo_document(host: str, port: int, *, small_port: int, large_port: int) -> str:
    """Return the YAML text that routes between two models on loopback ports."""
    return _DOCUMENT.format(
        address=json.dumps(host), port=port, small_port=small_port, large_port=large_port
    )


def demo_banner(host: str, port: int) -> str:
    """Return what to tell the user once the Router serves on `port`."""
    host = _ANY_ADDRESS.get(host, host)
    authority = f"[{host}]" if ":" in host else host
    return _BANNER.format(
        base=f"http://{authority}:{port}",
        json="-H 'content-type: application/json'",
        small=_chat("Good morning!"),
        large=_chat("What does this Python traceback mean?"),
        streamed=_chat("What does this Python traceback mean?", stream=True),
    )


def _chat(question: str, *, stream: bool = False) -> str:
    request: dict[str, object] = {
        "model": "auto",
        "messages": [{"role": "user", "content": question}],
    }
    return json.dumps(request | ({"stream": True} if stream else {}))
