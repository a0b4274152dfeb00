"""A user's own key for the provider: it goes before the Router's, and nowhere else."""

import json

import pytest
import trio
import trio.testing

from tests.demo.raw_client import CHAT, Got, chat_body
from tests.engine.wired import COMPLETION, MESSAGE, MESSAGES
from tests.fakes.graph import FakeTasks
from tests.fakes.router import RunningRouter, document_of, model_of, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.headers import HeaderLine, Headers
from vsr.network.memory import MemoryNetwork
from vsr.routing.effect import HeaderEdit
from vsr.routing.outcome import Outcome, Terminal
from vsr.routing.ports import Journal
from vsr.routing.request import CREDENTIALS, USER_KEY_HEADERS, Request

OPENAI_KEY = (b"x-user-openai-key", b"canary-openai")
CLAUDE_KEY = (b"x-user-anthropic-key", b"canary-anthropic")
OWN: list[HeaderLine] = [
    (b"authorization", b"Bearer canary-client"),
    (b"api-key", b"canary-client"),
    (b"x-api-key", b"canary-client"),
]
"""What a client may send as its own credential."""
CLOSED = "{providers: [{type: header-injection}, {type: static-config}]}"
TRUST = "identity: {trust_headers: true}"


class Bench:
    """A Router before one backend of each kind."""

    def __init__(self, router: RunningRouter, backends: dict[str, RawBackend]) -> None:
        self.router = router
        self.backends = backends

    async def ask(
        self, model: str, *lines: HeaderLine, target: bytes = CHAT, stream: bool = False
    ) -> Got:
        """Ask `model`."""
        body = chat_body(model=model, stream=stream)
        if target == MESSAGES:
            body = json.dumps(json.loads(body) | {"max_tokens": 16}).encode()
        return await self.router.ask(body, target=target, lines=lines)

    def fields(self, model: str) -> dict[bytes, bytes]:
        """Return the one request's fields that `model`'s backend has seen."""
        [(head, _)] = self.backends[model].seen
        assert len(head.lines) == len(head.fields)
        return dict(head.fields)


async def start(
    nursery: trio.Nursery, authz: str = "", *, listener: str = TRUST, routing: str = ""
) -> Bench:
    """Start one whose document has these `authz` settings."""
    network = MemoryNetwork()
    backends = {
        name: await RawBackend(network, reply(200, answer)).start(nursery)
        for name, answer in [
            ("keyed", COMPLETION),
            ("bare", COMPLETION),
            ("claude", MESSAGE),
            ("azure", COMPLETION),
            ("local", COMPLETION),
        ]
    }
    ports = {name: backend.port for name, backend in backends.items()}
    models = [
        model_of(ports["keyed"], "keyed", provider="openai", api_key="canary-configured"),
        model_of(ports["bare"], "bare", provider="openai"),
        model_of(ports["claude"], "claude", provider="anthropic"),
        model_of(ports["azure"], "azure", provider="azure-openai", api_key="canary-azure"),
        model_of(ports["local"], "local"),
    ]
    document = document_of(*models, default="keyed", listener=listener, routing=routing)
    if authz:
        document += f"\nglobal: {{services: {{authz: {authz}}}}}"
    return Bench(await start_router(nursery, network, document), backends)


def canaries(fields: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Return what of a request's fields is a key."""
    return {name: value for name, value in fields.items() if b"canary" in value}


@pytest.mark.parametrize("target", [CHAT, MESSAGES])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("model", "name", "value"),
    [
        ("keyed", b"authorization", b"Bearer canary-openai"),
        ("bare", b"authorization", b"Bearer canary-openai"),
        ("claude", b"x-api-key", b"canary-anthropic"),
        ("azure", b"api-key", b"canary-azure"),
    ],
)
async def test_users_key_is_the_only_one_that_its_provider_gets(
    model: str,
    name: bytes,
    value: bytes,
    stream: bool,  # noqa: FBT001  # a case
    target: bytes,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It replaces the configured one; keys for others and the client's credentials stay here."""
    bench = await start(nursery)

    got = await bench.ask(model, OPENAI_KEY, CLAUDE_KEY, *OWN, target=target, stream=stream)

    assert got.status == 200
    assert canaries(bench.fields(model)) == {name: value}


async def test_client_credentials_pass_to_a_backend_that_has_no_key(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The chain is open: nothing is set, and what the client sent stays."""
    bench = await start(nursery)

    await bench.ask("bare", CLAUDE_KEY, *OWN)
    await bench.ask("local", OPENAI_KEY, *OWN)

    assert canaries(bench.fields("bare")) == dict(OWN)
    assert canaries(bench.fields("local")) == dict(OWN)


@pytest.mark.parametrize("blank", [b"", b"  "])
async def test_blank_key_is_no_key(
    blank: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The configured one is sent."""
    bench = await start(nursery)

    await bench.ask("keyed", (OPENAI_KEY[0], blank))

    assert canaries(bench.fields("keyed")) == {b"authorization": b"Bearer canary-configured"}


@pytest.mark.parametrize(
    ("target", "model", "status_text"),
    [
        (CHAT, "bare", "Authentication failed. Check your API key configuration."),
        (MESSAGES, "bare", "Authentication failed. Check your API key configuration."),
        (CHAT, "claude", "Credential resolution failed for model claude: no API key was found"),
    ],
)
async def test_closed_chain_refuses_a_request_without_a_key(
    target: bytes,
    model: str,
    status_text: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """In the client's own protocol, before any backend hears of it."""
    bench = await start(nursery, CLOSED)
    wrong = CLAUDE_KEY if model == "bare" else OPENAI_KEY

    got = await bench.ask(model, wrong, *OWN, target=target)

    error = json.loads(got.body)["error"]
    assert (got.status, error["type"]) == (401, "authentication_error")
    assert error["message"] == status_text
    assert got.line(b"x-vsr-response-path") == b"error"
    assert bench.backends[model].seen == []


async def test_closed_chain_serves_who_has_a_key(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Its own or the configured one."""
    bench = await start(nursery, CLOSED)

    statuses = [
        (await bench.ask("keyed", *OWN)).status,
        (await bench.ask("bare", OPENAI_KEY, *OWN)).status,
    ]

    assert statuses == [200, 200]
    assert canaries(bench.fields("keyed")) == {b"authorization": b"Bearer canary-configured"}
    assert canaries(bench.fields("bare")) == {b"authorization": b"Bearer canary-openai"}


@pytest.mark.parametrize("target", [CHAT, b"/v1/embeddings"])
async def test_no_header_that_may_hold_a_key_reaches_a_backend(
    target: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Renamed ones and all default names, whether routed or only passed on."""
    chain = """{fail_open: true, providers: [{type: header-injection,
      headers: {gemini: X-Team-Key}}, {type: static-config}]}"""
    bench = await start(nursery, chain)
    lines = [(name, b"canary") for name in (*sorted(USER_KEY_HEADERS), b"x-team-key")]

    await bench.ask("keyed", *lines, target=target)

    expected = {b"authorization": b"Bearer canary-configured"} if target == CHAT else {}
    assert canaries(bench.fields("keyed")) == expected


async def test_body_phase_names_every_header_that_may_hold_a_key(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A proxy that asks the Router has nobody else to drop them."""
    chain = "{fail_open: true, providers: [{type: header-injection, headers: {openai: X-Mine}}]}"
    bench = await start(nursery, chain)
    engine = bench.router.generation.engine
    body = chat_body(model="keyed")
    request = Request(b"POST", CHAT, b"r", b"http", Headers([(b"x-mine", b"k")]), body, "id")

    plan = await engine.plan(request, FakeTasks(), Journal())
    effect = await plan.session.request_body()
    plan.finish(Outcome(Terminal.FAILED))

    assert effect.removes >= USER_KEY_HEADERS | CREDENTIALS | {b"x-mine"}
    assert effect.edits[0] == HeaderEdit(b"authorization", b"Bearer k")


async def test_listeners_own_key_is_nobodys_provider_key(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A chain that reads `authorization` finds it only where the listener has not used it up."""
    chain = "{providers: [{type: header-injection, headers: {openai: authorization}}]}"
    listener = f"api_keys: [canary-client], {TRUST}"
    bench = await start(nursery, chain, listener=listener)

    got = await bench.ask("bare", OWN[0])

    assert got.status == 401
    assert bench.backends["bare"].seen == []


async def test_decision_headers_stay_beside_a_users_key(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """What a plugin sets is not lost."""
    routing = """{decisions: [{name: all, modelRefs: [{model: keyed}], plugins: [
      {type: header_mutation, configuration: {add: [{name: x-tier, value: gold}]}}]}]}"""
    bench = await start(nursery, routing=routing)

    await bench.ask("auto", OPENAI_KEY)

    fields = bench.fields("keyed")
    assert fields[b"x-tier"] == b"gold"
    assert fields[b"x-selected-model"] == b"keyed"
    assert fields[b"accept-encoding"] == b"identity"
    assert canaries(fields) == {b"authorization": b"Bearer canary-openai"}
