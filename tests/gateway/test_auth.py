"""Client API keys of a listener."""

import pytest
import trio
import trio.testing

from tests.demo.raw_client import chat_body
from tests.fakes.router import document_of, model_of, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.headers import HeaderLine
from vsr.network.memory import MemoryNetwork

KEYS = "api_keys: [key-one, key-two]"
RIGHT: list[list[HeaderLine]] = [
    [(b"authorization", b"Bearer key-one")],
    [(b"authorization", b"bearer key-two")],
    [(b"authorization", b"Bearer \t  key-two")],
    [(b"api-key", b"key-one")],
    [(b"authorization", b"Bearer wrong"), (b"api-key", b"key-two")],
    [(b"authorization", b"Basic key-one"), (b"api-key", b"key-two")],
    [(b"authorization", b"Bearer key-one"), (b"api-key", b"wrong")],
]
WRONG: list[list[HeaderLine]] = [
    [],
    [(b"authorization", b"Bearer wrong")],
    [(b"authorization", b"Bearer key-one2")],
    [(b"authorization", b"Bearer key-on")],
    [(b"authorization", b"Bearer")],
    [(b"authorization", b"Bearer ")],
    [(b"authorization", b"key-one")],
    [(b"authorization", b"BEARER key-one")],
    [(b"authorization", b"Bearerkey-one")],
    [(b"authorization", b"Basic key-one")],
    [(b"api-key", b"Bearer key-one")],
    [(b"api-key", b"")],
    [(b"x-api-key", b"key-one")],
    [(b"authorization", b"Bearer key-one, key-two")],
    [(b"authorization", b"Bearer \xff\x80"), (b"api-key", b"\xfe")],
]


@pytest.mark.parametrize("lines", RIGHT)
async def test_right_key_passes_and_goes_no_further(
    lines: list[HeaderLine], nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Both fields are gone before routing, whichever held the key."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    document = document_of(model_of(backend.port), listener=KEYS)
    router = await start_router(nursery, network, document)

    chat = await router.ask(chat_body(model="auto"), lines=lines)
    other = await router.ask(b"{}", target=b"/v1/embeddings", lines=lines)

    assert (chat.status, other.status) == (200, 200)
    for head, _ in backend.seen:
        assert {b"authorization", b"api-key"}.isdisjoint(head.fields)


@pytest.mark.parametrize("lines", WRONG)
async def test_wrong_key_is_a_401(
    lines: list[HeaderLine], nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """With the challenge, all four members, and no word to any backend."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    document = document_of(model_of(backend.port), listener=KEYS)
    router = await start_router(nursery, network, document)

    got = await router.ask(chat_body(model="auto"), lines=lines)

    assert got.head is not None
    assert got.status == 401
    assert [line for line in got.head.lines if line[0] != b"content-length"] == [
        (b"content-type", b"application/json"),
        (b"www-authenticate", b'Bearer realm="vllm-semantic-router"'),
    ]
    assert got.json() == {
        "error": {
            "type": "authentication_error",
            "code": "invalid_api_key",
            "message": "Unauthorized: missing or invalid API key",
            "param": None,
        }
    }
    assert backend.seen == []


@pytest.mark.parametrize("target", [b"/v1/models", b"/v1/embeddings", b"/anything"])
async def test_every_path_but_probes_asks_for_the_key(
    target: bytes, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The key comes before routing."""
    router = await start_router(nursery, MemoryNetwork(), document_of(model_of(1), listener=KEYS))

    got = await router.ask(target=target, method=b"GET")
    probe = await router.ask(target=b"/health", method=b"GET")

    assert (got.status, probe.status) == (401, 200)
    assert got.is_reusable, "a refused request without a body costs nobody the connection"


async def test_key_is_checked_before_the_body_is_read(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Who has no key can't make us hold 500 MiB."""
    router = await start_router(nursery, MemoryNetwork(), document_of(model_of(1), listener=KEYS))
    client = await router.connect()

    await client.send(b"POST /x HTTP/1.1\r\nHost: r\r\nContent-Length: 1000000\r\n\r\n")
    answer = await client.receive()

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"connection: close" in answer
    assert trio.current_time() == 0


async def test_listener_without_keys_lets_authorization_through(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A backend without a credential of ours gets the client's own."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}")).start(nursery)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))

    await router.ask(chat_body(model="auto"), lines=[(b"authorization", b"Bearer own")])

    assert backend.seen[0][0].fields[b"authorization"] == b"Bearer own"


@pytest.mark.parametrize(("key", "status"), [(b"key-one", 200), (b"wrong", 401)])
async def test_messages_api_takes_its_clients_key(
    key: bytes, status: int, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Anthropic's clients put their key into `x-api-key`; it goes no further than any other."""
    network = MemoryNetwork()
    completion = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"}}]}'
    backend = await RawBackend(network, reply(200, completion)).start(nursery)
    document = document_of(model_of(backend.port), listener=KEYS)
    router = await start_router(nursery, network, document)
    body = b'{"model":"auto","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}'

    got = await router.ask(body, target=b"/v1/messages", lines=[(b"x-api-key", key)])

    assert got.status == status
    assert got.json()["type"] == ("message" if status == 200 else "error")
    assert all(b"x-api-key" not in head.fields for head, _ in backend.seen)
