"""A Router whose one model has four backends of which no two are called alike."""

import json
from collections.abc import Sequence

import attrs
import trio

from tests.demo.raw_client import CHAT, Got, chat_body
from tests.engine.wired import (
    CHAT_PIECES,
    COMPLETION,
    MESSAGE,
    MESSAGE_PIECES,
    MESSAGES,
    chunked,
)
from tests.fakes.router import RunningRouter, document_of, start_router
from tests.upstream.raw_backend import Answer, RawBackend, reply
from vsr.headers import HeaderLine
from vsr.http.framing import RequestHead
from vsr.network.memory import MemoryNetwork

NAMES = ("local", "hosted", "azure", "claude")
CREDENTIALS = {b"authorization", b"api-key", b"x-api-key", b"x-token"}
CLIENT: list[HeaderLine] = [(name, b"client-canary") for name in sorted(CREDENTIALS)]
"""What a client may send as its own."""
REFS = {
    "local": "{name: local, endpoint: 'local.test:PORT', extra_headers: {x-own: local-canary}}",
    "hosted": """{name: hosted, provider: openai-compatible, auth_header: x-token,
        base_url: 'http://hosted.test:PORT/hosted-canary/v1', api_key: hosted-canary-key,
        extra_headers: {x-own: hosted-canary, x-org: hosted-canary}}""",
    "azure": """{name: azure, provider: azure-openai, api_version: azure-canary,
        base_url: 'http://azure.test:PORT/azure-canary', api_key: azure-canary-key}""",
    "claude": """{name: claude, provider: anthropic-compatible, endpoint: 'claude.test:PORT',
        api_key: claude-canary-key}""",
}
"""By name; everything of one says so, and each says `canary`."""
IDS = """{vllm: local-canary-model, openai-compatible: hosted-canary-model,
    azure-openai: azure-canary-model, anthropic-compatible: claude-canary-model}"""
TARGETS = {
    "local": CHAT,
    "hosted": b"/hosted-canary/v1/chat/completions",
    "azure": b"/azure-canary/chat/completions?api-version=azure-canary",
    "claude": MESSAGES,
}
KEYS: dict[str, dict[bytes, bytes]] = {
    "local": dict(CLIENT),
    "hosted": {b"x-token": b"Bearer hosted-canary-key"},
    "azure": {b"api-key": b"azure-canary-key", b"x-token": b"client-canary"},
    "claude": {b"x-api-key": b"claude-canary-key", b"x-token": b"client-canary"},
}
"""What of credentials each gets; one that has no key gets the client's, as elsewhere."""
BUSY = b'{"error": {"message": "busy", "type": "server_error", "code": null}}'


def fine(name: str) -> Answer:
    """Return how a backend answers, whole or streamed as it is asked."""
    whole, pieces = (MESSAGE, MESSAGE_PIECES) if name == "claude" else (COMPLETION, CHAT_PIECES)

    def answer(_head: RequestHead, body: bytes) -> bytes:
        is_stream = bool(body) and json.loads(body).get("stream")
        return b"".join(chunked(200, *pieces)) if is_stream else reply(200, whole)

    return answer


class Seen(list[tuple[RequestHead, bytes]]):
    """The requests that one backend has seen; says whose they are in a list that all share."""

    def __init__(self, name: str, order: list[str]) -> None:
        """Begin without any."""
        super().__init__()
        self._name, self._order = name, order

    def append(self, request: tuple[RequestHead, bytes]) -> None:
        """Take one more."""
        super().append(request)
        self._order.append(self._name)


@attrs.define(eq=False)
class Unlike:
    """The Router, and what its backends see."""

    router: RunningRouter
    backends: dict[str, RawBackend]
    order: list[str]
    """Who was asked, in order."""

    async def ask(
        self,
        *lines: HeaderLine,
        target: bytes = CHAT,
        model: str = "mix",
        **members: object,
    ) -> Got:
        """Ask for the model in the form of the target."""
        chat: dict[str, object] = {"model": model, **members}
        body = chat_body("Hello there", **chat)
        if target == MESSAGES:
            body = json.dumps(json.loads(body) | {"max_tokens": 16}).encode()
        return await self.router.ask(body, target=target, lines=lines)

    @property
    def asked(self) -> dict[str, int]:
        """Return how many requests each backend has seen."""
        return {name: len(backend.seen) for name, backend in self.backends.items()}

    def forget(self) -> None:
        """Let all requests so far be forgotten."""
        self.order.clear()
        for backend in self.backends.values():
            backend.seen.clear()

    def head(self, name: str) -> RequestHead:
        """Return the head of the one request that a backend has seen."""
        [(head, _)] = self.backends[name].seen
        return head

    def body(self, name: str) -> dict[str, object]:
        """Return the members of its body."""
        [(_, body)] = self.backends[name].seen
        members: dict[str, object] = json.loads(body)
        return members

    def credentials(self, name: str) -> dict[bytes, bytes]:
        """Return the credentials in it."""
        lines = [line for line in self.head(name).lines if line[0] in CREDENTIALS]
        assert len(dict(lines)) == len(lines)
        return dict(lines)

    def fail(self, *names: str, status: int = 503) -> None:
        """Let these backends answer with a status."""
        for name in names:
            self.backends[name].answer = reply(status, BUSY)

    def check_own_form(self, name: str) -> None:
        """The one request that a backend has seen is in its form, of the client `CLIENT`."""
        assert self.head(name).target == TARGETS[name]
        assert self.head(name).authority.startswith(name.encode())
        assert self.credentials(name) == KEYS[name]
        assert self.body(name)["model"] == f"{name}-canary-model"
        own = self.head(name).fields.get(b"x-own")
        assert own == (f"{name}-canary".encode() if name in {"local", "hosted"} else None)
        assert (b"x-org" in self.head(name).fields) == (name == "hosted")
        assert (b"anthropic-version" in self.head(name).fields) == (name == "claude")

    def check_canaries(self) -> None:
        """No backend has seen anything of another one."""
        check_canaries(self.backends)


def check_canaries(backends: dict[str, RawBackend]) -> None:
    """No request holds a word `NAME-canary` of another backend than its own."""
    for name, backend in backends.items():
        for head, body in backend.seen:
            shown = b"%b %b %b %b" % (head.target, head.authority, repr(head.lines).encode(), body)
            for other in backends:
                assert other == name or f"{other}-canary".encode() not in shown


async def start(
    nursery: trio.Nursery,
    names: Sequence[str] = NAMES,
    *,
    reliability: str = "{}",
    model: str = "",
    authz: str = "{}",
    routing: str = "",
    more: Sequence[str] = (),
) -> Unlike:
    """Start one whose backends all answer well.

    Args:
        nursery: all of it lives there.
        names: of the backends of the model `mix`, in order.
        reliability: the model's.
        model: further members of it.
        authz: of `global.services`.
        routing: the document's block; all of these in YAML's flow style.
        more: names of models of one backend each, behind it.
    """
    network = MemoryNetwork()
    backends, refs = {}, {}
    order: list[str] = []
    for name in dict.fromkeys((*names, *more)):
        backend = RawBackend(network, fine(name), seen=Seen(name, order))
        backends[name] = await backend.start(nursery)
        refs[name] = REFS[name].replace("PORT", str(backends[name].port))
    mix = ", ".join(refs[name] for name in names)
    known = f"external_model_ids: {IDS}, reliability: {reliability}{model}"
    models = [f"{{name: mix, {known}, backend_refs: [{mix}]}}"]
    models += [
        f"{{name: {name}, external_model_ids: {IDS}, backend_refs: [{refs[name]}]}}"
        for name in more
    ]
    listener = "identity: {trust_headers: true}"
    text = document_of(*models, default="mix", listener=listener, routing=routing)
    text += f"\nglobal: {{services: {{authz: {authz}}}}}"
    return Unlike(await start_router(nursery, network, text), backends, order)
