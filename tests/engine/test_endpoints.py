"""Which paths the Router answers itself and which go to the default backend."""

import pytest
import trio
import trio.testing

from tests.fakes.router import document_of, model_of, start_router
from tests.upstream.raw_backend import RawBackend, reply
from vsr.network.memory import MemoryNetwork

CHAT = b'{"model":"auto","messages":[]}'
OWN_400, OWN_404, OWN_405 = "400", "404", "405"

TABLE = [
    # method, target, what answers: a status of our own, or the target that the backend sees
    ("POST", "/v1/chat/completions", "/base/v1/chat/completions"),
    ("POST", "/v1/chat/completions/", "/base/v1/chat/completions"),
    ("POST", "/v1/chat/completions?x=1", "/base/v1/chat/completions"),
    ("GET", "/v1/chat/completions", OWN_405),
    ("PUT", "/v1/chat/completions", OWN_405),
    ("GET", "/v1/models", "200"),
    ("GET", "/v1/models?limit=1", "200"),
    ("POST", "/v1/models", OWN_405),
    ("DELETE", "/v1/models", OWN_405),
    ("POST", "/v1/responses", OWN_404),
    ("GET", "/v1/responses/resp_1", OWN_404),
    ("GET", "/v1/messages", "405"),
    ("POST", "/v1/messages/count_tokens", OWN_404),
    ("GET", "/v1/router_replay", OWN_404),
    ("POST", "/v1/embeddings", "/base/v1/embeddings"),
    ("POST", "/v1/embeddings?a=%20b&c=/v1/", "/base/v1/embeddings?a=%20b&c=/v1/"),
    ("GET", "/v1", "/base/v1"),
    ("GET", "/v1?q=1", "/base/v1?q=1"),
    ("GET", "/v1/", "/base/v1/"),
    ("GET", "/v1beta/models", "/v1beta/models"),
    ("GET", "/v10", "/v10"),
    ("GET", "/", "/"),
    ("DELETE", "/v1/files/f-1", "/base/v1/files/f-1"),
    ("OPTIONS", "/v1/embeddings", "/base/v1/embeddings"),
    ("PATCH", "/x/v1/y", "/x/v1/y"),
    ("GET", "/health/", "/health/"),
    ("POST", "/health", "/health"),
    ("GET", "/ready?x", "/ready?x"),
    ("POST", "/v1/%63hat/completions", "/base/v1/%63hat/completions"),
]


@pytest.mark.parametrize(("method", "target", "answer"), TABLE)
async def test_target_is_answered_by(
    method: str,
    target: str,
    answer: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Ours by path and method; the rest to the first model, `/v1` replaced by its base path."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b'{"from":"backend"}')).start(nursery)
    base_url = f"'http://b.test:{backend.port}/base/v1/'"
    router = await start_router(
        nursery, network, document_of(model_of(backend.port, base_url=base_url))
    )

    got = await router.ask(
        CHAT if method == "POST" else b"", method=method.encode(), target=target.encode()
    )

    if answer.isdigit():
        assert (str(got.status), backend.seen) == (answer, [])
        assert got.line(b"content-type") == b"application/json"
    else:
        [(head, _)] = backend.seen
        assert (got.status, got.body) == (200, b'{"from":"backend"}')
        assert (head.method, head.target) == (method.encode(), answer.encode())


@pytest.mark.parametrize(
    ("target", "status", "code", "message"),
    [
        (b"/v1/responses", 404, "not_found", "resource not found"),
        (b"/v1/models", 405, "method_not_allowed", "method not allowed"),
    ],
)
async def test_refused_path_is_told_in_openai_form(
    target: bytes,
    status: int,
    code: str,
    message: str,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """All four members, and the headers of a Router error in their order."""
    network = MemoryNetwork()
    router = await start_router(nursery, network, document_of(model_of(1)))

    got = await router.ask(CHAT, target=target)

    error = {"type": "invalid_request_error", "code": code, "message": message, "param": None}
    assert got.head is not None
    assert (got.status, got.json()) == (status, {"error": error})
    assert got.head.lines == [
        (b"content-type", b"application/json"),
        (b"x-vsr-schema-version", b"2"),
        (b"x-vsr-response-path", b"error"),
        (b"x-vsr-config-version", b"1"),
        (b"content-length", b"%d" % len(got.body)),
    ]


async def test_backend_answer_of_another_path_says_so_and_no_more(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Schema, path and version, but no model: nothing was selected."""
    network = MemoryNetwork()
    backend = await RawBackend(network, reply(200, b"{}", (b"x-own", b"1"))).start(nursery)
    router = await start_router(nursery, network, document_of(model_of(backend.port)))

    got = await router.ask(b'{"input":"x"}', target=b"/v1/embeddings")

    assert got.head is not None
    assert got.head.lines == [
        (b"content-type", b"application/json"),
        (b"x-own", b"1"),
        (b"x-vsr-schema-version", b"2"),
        (b"x-vsr-response-path", b"upstream"),
        (b"x-vsr-config-version", b"1"),
        (b"content-length", b"2"),
    ]
    assert backend.seen[0][1] == b'{"input":"x"}'
