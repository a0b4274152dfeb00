"""One model over three unlike backends on real sockets: each sees its own form and no other."""

import attrs
import pytest
import trio

from tests.demo.raw_client import ask as ask_on
from tests.e2e.standalone import start_document
from tests.e2e.wire import chat
from tests.fakes.backend import BACKEND_HOST, start_backend
from tests.fakes.h2_client import H2Client
from vsr.compose.router import Router
from vsr.demo.reply import Seen
from vsr.demo.script import Script
from vsr.demo.server import DemoModel
from vsr.headers import HeaderLine
from vsr.network.epoll import EpollNetwork

NAMES = ("local", "hosted", "azure")
CLIENT: list[HeaderLine] = [(b"authorization", b"client-canary"), (b"api-key", b"client-canary")]
TARGETS = {
    "local": b"/v1/chat/completions",
    "hosted": b"/hosted-canary/v1/chat/completions",
    "azure": b"/azure-canary/chat/completions?api-version=azure-canary",
}
KEYS: dict[str, dict[bytes, bytes]] = {
    "local": dict(CLIENT),
    "hosted": {b"authorization": b"Token hosted-canary-key"},
    "azure": {b"api-key": b"azure-canary-key"},
}
DOCUMENT = """\
version: v0.3
listeners: [{name: public, address: 127.0.0.1, port: 1, timeout: 30s}]
providers:
  models:
    - name: mix
      external_model_ids:
        {vllm: local-canary-id, openai-compatible: hosted-canary-id, azure-openai: azure-canary-id}
      reliability: RELIABILITY
      backend_refs:
        - {name: local, endpoint: "127.0.0.1:LOCAL", extra_headers: {x-own: local-canary}}
        - name: hosted
          provider: openai-compatible
          base_url: "http://127.0.0.1:HOSTED/hosted-canary/v1"
          api_key: hosted-canary-key
          auth_prefix: Token
          extra_headers: {x-own: hosted-canary}
          HEALTH
        - name: azure
          provider: azure-openai
          base_url: "http://127.0.0.1:AZURE/azure-canary"
          api_key: azure-canary-key
          api_version: azure-canary
          UNASKED
    - name: spare
      backend_refs: [{endpoint: "127.0.0.1:SPARE"}]
routing:
  fallback: {enabled: true}
  decisions: [{name: all, modelRefs: [{model: mix}, {model: spare}]}]
"""


@attrs.define(eq=False)
class Scene:
    """A Router and its backends."""

    network: EpollNetwork
    router: Router
    backends: dict[str, DemoModel]

    async def ask(self, *, stream: bool = False, http2: bool = False) -> tuple[int, bytes]:
        """Ask the decision; return status and body."""
        body = chat(stream=stream)
        port = self.router.server.ports["public"]
        connection = await self.network.connect(BACKEND_HOST, port, ipv4_only=True)
        try:
            if not http2:
                got = await ask_on(connection, body, lines=CLIENT)
                return got.status, got.body
            async with trio.open_nursery() as tasks:
                client = await H2Client(connection).start(tasks)
                answer = await client.ask(body, CLIENT)
                tasks.cancel_scope.cancel()
            assert answer.is_whole
            return answer.status, bytes(answer.body)
        finally:
            connection.close()

    def calls(self, name: str) -> list[Seen]:
        """Return the completions that a backend was asked for."""
        return [seen for seen in self.backends[name].seen if seen.method == b"POST"]

    def check(self) -> None:
        """Every backend has seen its own form in all its calls, and no word of another's."""
        for name in NAMES:
            for seen in self.calls(name):
                fields = dict(seen.headers)
                assert seen.target == TARGETS[name]
                keys = {key: fields[key] for key in (b"authorization", b"api-key") if key in fields}
                assert keys == KEYS[name]
                assert b'"%b-canary-id"' % name.encode() in seen.body
                own = None if name == "azure" else f"{name}-canary".encode()
                assert fields.get(b"x-own") == own
        for name, backend in self.backends.items():
            for seen in backend.seen:
                shown = b"%b %b %b" % (seen.target, repr(seen.headers.lines).encode(), seen.body)
                for other in NAMES:
                    assert other == name or f"{other}-canary".encode() not in shown


async def start(
    nursery: trio.Nursery, reliability: str = "{}", health: str = "", **scripts: Script
) -> Scene:
    """Start one; `scripts` say how backends behave, by name."""
    network = EpollNetwork()
    await nursery.start(network.run)
    unasked = 'health_check_path: ""' if health else ""
    text = DOCUMENT.replace("RELIABILITY", reliability).replace("UNASKED", unasked)
    text, backends = text.replace("HEALTH", health), {}
    for name in (*NAMES, "spare"):
        script = attrs.evolve(scripts.get(name, Script()), model=name)
        backends[name] = await start_backend(nursery, network, script)
        text = text.replace(f":{name.upper()}", f":{backends[name].port}")
    router, _, _ = await start_document(nursery, network, text)
    return Scene(network, router, backends)


@pytest.mark.parametrize("http2", [False, True])
@pytest.mark.parametrize("stream", [False, True])
async def test_calls_and_streams_go_out_in_each_backends_own_form(
    stream: bool,  # noqa: FBT001  # a case
    http2: bool,  # noqa: FBT001  # a case
    nursery: trio.Nursery,
) -> None:
    """From clients of either version of HTTP."""
    scene = await start(nursery)

    answers = [await scene.ask(stream=stream, http2=http2) for _ in range(6)]

    assert [len(scene.calls(name)) for name in NAMES] == [2, 2, 2]
    scene.check()
    for status, body in answers:
        assert status == 200
        assert (b"data: [DONE]" in body) == stream


@pytest.mark.parametrize("stream", [False, True])
async def test_retries_and_fallback_go_out_in_each_backends_own_form(
    stream: bool,  # noqa: FBT001  # a case
    nursery: trio.Nursery,
) -> None:
    """All three fail, then another model answers."""
    busy = Script(fault=503)
    retries = "{retry_count: 2, retry_on: 5xx}"
    scene = await start(nursery, retries, local=busy, hosted=busy, azure=busy)

    status, _ = await scene.ask(stream=stream)

    assert status == 200
    assert [len(scene.calls(name)) for name in NAMES] == [1, 1, 1]
    [seen] = scene.calls("spare")
    assert b"canary-id" not in seen.body
    scene.check()


async def test_backend_that_is_gone_is_made_up_for_by_the_others(nursery: trio.Nursery) -> None:
    """A refused connection sends the call on, in another form."""
    scene = await start(nursery, "{retry_count: 1, consecutive_5xx: 1}")
    scene.backends["local"].stop_listening()
    scene.backends["local"].drop_connections()

    statuses = [(await scene.ask())[0] for _ in range(6)]

    assert statuses == [200] * 6
    assert len(scene.calls("hosted")) + len(scene.calls("azure")) == 6
    assert scene.calls("spare") == []
    scene.check()


async def test_health_checks_ask_each_backend_for_its_own_path_without_a_key(
    nursery: trio.Nursery,
) -> None:
    """The one of the backend, else that of the model; none if the backend's is empty."""
    health = "health_check_path: /hosted-canary/up"
    scene = await start(nursery, "{health_check_path: /health}", health)
    with trio.fail_after(5):
        await scene.router.active.current.upstream.warm()  # type: ignore[union-attr]  # it serves

    checks = {name: list(scene.backends[name].seen) for name in NAMES}

    assert {name: [it.target for it in seen] for name, seen in checks.items()} == {
        "local": [b"/health"],
        "hosted": [b"/hosted-canary/up"],
        "azure": [],
    }
    assert all("canary" not in repr(it.headers.lines) for it in checks["hosted"])
    assert [(await scene.ask())[0] for _ in NAMES] == [200] * 3
    assert len(scene.calls("azure")) == 1
    scene.check()
