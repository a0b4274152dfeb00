"""The runner over a stand-in for the Router that asks a panel, a verifier and a judge."""

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio

from tests.conformance import looper
from tests.conformance.looper_case import Case, Turn
from tests.conformance.looper_server import read_request
from tests.demo.raw_client import CHAT, ask
from vsr.http.h1_server import ServerConnection, encode_head
from vsr.network.memory import MemoryConnection, MemoryListener, MemoryNetwork
from vsr.resources.snapshot import Snapshot

PANEL = ("a", "b", "c")
EXPECT = {
    "calls": [
        {"group": 1, "model": "a"},
        {"group": 1, "model": "b"},
        {"group": 1, "model": "c"},
        {"model": "judge", "last_message": {"content": {"$contains": ["from a"]}}},
    ],
    "peak_concurrency": 3,
    "verifier_calls": [{"body": {"$exact": {"answer": "from a"}}}],
    "response": {"status": 200, "body": {"verdict": "it is a", "confidence": 0.5}},
}
BACKEND = {
    "a": [{"content": "from a", "delay_ms": 100}],
    "b": [{"content": "from b", "delay_ms": 9000}],
    "c": [{"status": 500, "body": "broken"}],
    "judge": [{"content": "it is a"}],
}


@attrs.define(eq=False)
class Panel:
    """Asks the panel, takes the first good answer, leaves the others; see `looper.start_router`."""

    network: MemoryNetwork
    backend_port: int
    runs_in_turn: bool = False
    """One member after the other, all to the end."""
    judges_early: bool = False
    """The judge is asked while the panel is."""
    port: int = 0

    async def start(self, nursery: trio.Nursery) -> "Panel":
        """Listen, and serve until `nursery` is cancelled."""
        listener = await self.network.listen("127.0.0.1", 0)
        self.port = listener.port
        nursery.start_soon(self._accept, nursery, listener)
        return self

    async def connect(self) -> MemoryConnection:
        """Open a client connection."""
        return await self.network.connect("router", self.port)

    async def _accept(self, nursery: trio.Nursery, listener: MemoryListener) -> None:
        while True:
            nursery.start_soon(self._serve, await listener.accept())

    async def _serve(self, connection: MemoryConnection) -> None:
        await read_request(connection, ServerConnection())
        answers: list[str] = []
        async with trio.open_nursery() as nursery:
            for model in PANEL:
                if self.runs_in_turn:
                    await self._ask(model, answers)
                else:
                    nursery.start_soon(self._ask, model, answers, nursery.cancel_scope)
            if self.judges_early:
                nursery.start_soon(self._call, "judge", "from a")
        verifier = {"answer": answers[0]}
        confidence = await self._post(self.backend_port + 1, b"/verify", verifier)
        verdict = await self._call("judge", answers[0])
        body = json.dumps({"verdict": verdict, **confidence}).encode()
        lines = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await connection.send(encode_head(200, lines) + body)

    async def _ask(
        self, model: str, answers: list[str], losers: trio.CancelScope | None = None
    ) -> None:
        answer = await self._call(model, "q")
        if answer:
            answers.append(answer)
            if losers is not None:
                losers.cancel()

    async def _call(self, model: str, text: str) -> str:
        messages = [{"role": "user", "content": text}]
        reply = await self._post(self.backend_port, CHAT, {"model": model, "messages": messages})
        return str(reply["choices"][0]["message"]["content"]) if reply else ""

    async def _post(self, port: int, target: bytes, body: object) -> dict[str, Any]:
        connection = await self.network.connect("any", port)
        try:
            got = await ask(connection, json.dumps(body).encode(), target=target)
        finally:
            connection.close()
        return got.json() if got.status == 200 else {}


def run(
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[dict[str, Any]], object] = lambda _: None,
    **faults: bool,
) -> list[str]:
    """Return what differs where a panel with `faults` serves a case with a change."""

    async def start(
        nursery: trio.Nursery, network: MemoryNetwork, snapshot: Snapshot, **_: object
    ) -> Panel:
        [port] = {each.port for cluster in snapshot.clusters for each in cluster.endpoints}
        return await Panel(network, port, **faults).start(nursery)

    monkeypatch.setattr(looper, "start_router", start)
    parts = json.loads(json.dumps({"expect": EXPECT, "backend": BACKEND}))
    parts["verifier"] = [{"confidence": 0.5}]
    change(parts)
    turn = Turn({}, {"model": "auto"}, parts["backend"], parts["verifier"], {}, parts["expect"])
    refs = [{"model": name} for name in (*PANEL, "judge")]
    case = Case(
        "panel",
        {"decision": {"name": "d", "modelRefs": refs}},
        is_seen_at_backend=False,
        turns=(turn,),
    )
    return list(looper.run_case(case).differences)


def test_panel_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is left has ended where it was left."""
    assert run(monkeypatch) == []


def test_panel_that_asks_in_turn_has_another_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is right: calls of a group need not overlap."""
    assert run(monkeypatch, runs_in_turn=True) == ["peak_concurrency: expected 3, got 1"]


def test_judge_that_is_asked_too_early_is_out_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """And once too often, whatever else differs."""
    found = run(monkeypatch, judges_early=True)

    assert 'calls: expected 4 ["a", "b", "c", "judge"], got 5' in "\n".join(found)
    assert any("expected to start after call" in line for line in found)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            lambda it: it["expect"]["calls"][3]["last_message"].update(content="x"),
            'calls[3].last_message.content: expected "x", got "from a"',
        ),
        (
            lambda it: it["expect"]["verifier_calls"][0]["body"]["$exact"].update(question="q"),
            (
                "verifier_calls[0].body: expected "
                '{"$exact": {"answer": "from a", "question": "q"}}, got {"answer": "from a"}'
            ),
        ),
        (lambda it: it["expect"]["verifier_calls"].clear(), "verifier_calls: expected 0, got 1"),
        (lambda it: it["verifier"].clear(), "verifier: call 1 has no scripted reply"),
        (
            lambda it: it["verifier"][0].update(confidence=0.25),
            "response.body.confidence: expected 0.5, got 0.25",
        ),
    ],
)
def test_what_differs_is_named(
    change: Callable[[dict[str, Any]], object], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First."""
    assert run(monkeypatch, change)[0] == line
