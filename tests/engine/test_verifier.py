"""Answers that a verifier judges, in a whole Router: what belongs to the way to it."""

from contextlib import suppress

import attrs
import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.router import RunningRouter, document_of, start_router
from tests.faults.moments import request_of
from tests.upstream.raw_backend import reply
from tests.upstream.scenes import SILENT, Play, PlayingBackend, start_backends
from vsr.network.memory import MemoryNetwork
from vsr.network.port import ConnectionBroken

ANSWER = (
    b'{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"%b"}}]}'
)
SURE: Play = (reply(200, b'{"confidence":0.9}'),)
UNSURE: Play = (reply(200, b'{"confidence":0.1}'),)


@attrs.define(eq=False)
class Scene:
    """A cascade of two models, on one backend, and its verifier."""

    router: RunningRouter
    models: PlayingBackend
    verifier: PlayingBackend

    @property
    def verifier_connections(self) -> int:
        """Return how many of its connections nobody has left."""
        return self.verifier.accepted - len(self.verifier.gone_at)


async def begin(
    nursery: trio.Nursery,
    *verdicts: Play,
    more: str = "",
    address: str = "127.0.0.1",
    timeout_s: int = 0,
) -> Scene:
    """Start a Router whose verifier, at `address`, plays these, question by question."""
    network = MemoryNetwork()
    network.addresses["verifier.test"] = lambda: (address,)
    answers: list[Play] = [(reply(200, ANSWER % text),) for text in (b"first", b"second")]
    [models] = await start_backends(nursery, network, [answers])
    [verifier] = await start_backends(nursery, network, [list(verdicts)])
    entries = [
        f"{{name: {name}, backend_refs: [{{endpoint: 'b0.test:{models.port}'}}]}}"
        for name in ("alpha", "beta")
    ]
    routing = f"""{{decisions: [{{name: sure, rules: {{operator: AND, conditions: []}},
        modelRefs: [{{model: alpha}}, {{model: beta}}], algorithm: {{type: confidence, confidence:
        {{confidence_method: automix_entailment, escalation_order: declared,
        verifier_timeout_seconds: {timeout_s},
        verifier_server_url: 'http://verifier.test:{verifier.port}'}}}}}}]}}"""
    document = f"{document_of(*entries, routing=routing)}\n{more}"
    return Scene(await start_router(nursery, network, document), models, verifier)


async def test_questions_share_a_connection_until_the_configuration_is_gone(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """It is no backend's: nobody else's reload closes it, and its own does."""
    scene = await begin(nursery, UNSURE, SURE)

    got = await scene.router.ask(chat_body(model="auto"))

    assert b"second" in got.body
    assert [asked.head.target for asked in scene.verifier.calls] == [b"/verify", b"/verify"]
    assert (scene.verifier.accepted, scene.verifier_connections) == (1, 1)
    scene.router.activate(document_of("{name: alpha, backend_refs: [{endpoint: 'b0.test:1'}]}"), 2)
    await trio.testing.wait_all_tasks_blocked()
    assert scene.verifier_connections == 0


async def test_verifier_gets_nothing_of_the_client_but_the_question(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """No credential, no header."""
    scene = await begin(nursery, SURE)

    await scene.router.ask(
        chat_body("my question", model="auto"),
        lines=[(b"authorization", b"Bearer secret"), (b"x-tenant", b"acme")],
    )

    [asked] = scene.verifier.calls
    names = {name for name, _ in asked.head.lines}
    assert names == {b"host", b"content-type", b"accept", b"content-length"}
    assert asked.body == b'{"question":"my question","answer":"first","threshold":0.7}'


async def test_rules_of_egress_hold_for_a_verifier(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """One whose name leads elsewhere than they say is never asked, which is no verdict."""
    allowed = "global: {router: {egress: {allow: [b0.test, 10.0.0.0/8]}}}"
    scene = await begin(nursery, SURE, more=allowed, address="11.0.0.1")

    got = await scene.router.ask(chat_body(model="auto"))

    assert (got.status, b"second" in got.body) == (200, True)
    assert scene.verifier.accepted == 0


@pytest.mark.parametrize("how", ["close", "abort"])
async def test_client_that_leaves_takes_the_question_back(
    how: str, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The verifier's connection is closed at once, and nobody else is asked."""
    scene = await begin(nursery, SILENT)
    client = await scene.router.connect()
    await client.send(request_of(chat_body(model="auto")))
    await trio.sleep(1)
    assert (len(scene.verifier.calls), scene.verifier_connections) == (1, 1)

    with suppress(ConnectionBroken):
        getattr(client, how)()
    left_at = trio.current_time()
    await trio.sleep(5)

    assert scene.verifier_connections == 0
    assert scene.verifier.gone_at == [pytest.approx(left_at, abs=0.01)]
    assert len(scene.models.calls) == 1
    assert await scene.router.held() == (0, 0)


@pytest.mark.parametrize(("timeout_s", "took_s"), [(0, 120), (2, 4)])
async def test_verifier_that_says_nothing_is_not_waited_for(
    timeout_s: int,
    took_s: float,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Not longer per question than a minute, or than the decision says."""
    timed_out = await begin(nursery, SILENT, timeout_s=timeout_s)
    begun = trio.current_time()

    got = await timed_out.router.ask(chat_body(model="auto"))

    assert (got.status, b"second" in got.body) == (200, True)
    assert trio.current_time() - begun == pytest.approx(took_s, abs=0.1)
    assert timed_out.verifier_connections == 0


async def test_anthropic_client_gets_the_answer_in_its_own_form(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The verifier judges its question all the same."""
    scene = await begin(nursery, SURE)
    body = b'{"model":"auto","max_tokens":9,"messages":[{"role":"user","content":"q?"}]}'

    got = await scene.router.ask(body, target=b"/v1/messages")

    assert got.json()["content"] == [{"type": "text", "text": "first"}]
    [asked] = scene.verifier.calls
    assert asked.body == b'{"question":"q?","answer":"first","threshold":0.7}'


async def test_verifier_is_told_of_among_the_calls(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Of no model, and with no address."""
    scene = await begin(nursery, UNSURE, (reply(503, b"canary"),))

    await scene.router.ask(chat_body(model="auto"))

    [line] = await scene.router.log()
    calls = [
        (each["step"], each["model"], each["outcome"], each["error"]) for each in line["calls"]
    ]
    assert [(model, outcome, error) for _, model, outcome, error in calls] == [
        ("alpha", "succeeded", None),
        (None, "succeeded", None),
        ("beta", "succeeded", None),
        (None, "failed", "call_failed"),
    ]
    assert [step.rpartition("/")[2] for step, model, _, _ in calls if model is None] == [
        "verdict",
        "verdict",
    ]
    assert "canary" not in str(line)
    assert "verifier.test" not in str(line)
