"""The management API: paths, methods, permissions, what is noted."""

import pytest
import trio

from tests.fakes.configuration import Desk
from vsr.errors import BodyTooLarge, InvalidRequest, RequestTimedOut, VsrError
from vsr.resources.management import ROLES as BUILT_IN
from vsr.resources.management import Management, Token

BEARER = Management(
    asks_token=True, tokens=(Token("VIEW", "viewer"), Token("RUN", "operator"), Token("A", "admin"))
)
ROLES = dict(BUILT_IN)
TOKENS = {"VIEW": "viewer", "RUN": "operator", "A": "admin"}


@pytest.fixture
def desk() -> Desk:
    """Return one without tokens."""
    return Desk()


@pytest.fixture
def guarded() -> Desk:
    """Return one whose tokens are the names of their roles."""
    desk = Desk(environ=dict(TOKENS))
    desk.configuration.management = BEARER
    return desk


async def test_request_id_is_echoed_or_made(desk: Desk) -> None:
    """In the field and in bodies of refusals; one that could break a line is not taken over."""
    given = await desk.ask("GET", "/nope", lines=[(b"x-request-id", b"abc-1")])
    made = await desk.ask("GET", "/nope", lines=[(b"x-request-id", b"a b\xff")])

    assert (given.lines[b"x-request-id"], made.lines[b"x-request-id"]) == (b"abc-1", b"made-id")
    assert given.json()["error"] == {
        "code": "NOT_FOUND",
        "message": "This API has no such path; GET /api/v1 lists them.",
        "timestamp": "2023-11-14T22:13:20.000Z",
        "request_id": "abc-1",
    }


async def test_wrong_method_is_told_the_right_ones(desk: Desk) -> None:
    """405 with Allow; OPTIONS asks for nothing else."""
    got = await desk.ask("DELETE", "/api/v1/config")
    told = await desk.ask("OPTIONS", "/api/v1/drain")

    allowed = b"GET, HEAD, OPTIONS, PATCH, PUT"
    assert (got.status, got.lines[b"allow"], got.code) == (405, allowed, "METHOD_NOT_ALLOWED")
    assert (told.status, told.lines[b"allow"], told.body) == (204, b"OPTIONS, POST", b"")
    assert desk.serving.drains == 0


async def test_head_is_a_get(desk: Desk) -> None:
    """Whose body the connection leaves out."""
    assert (await desk.ask("HEAD", "/health")).status == 200


async def test_health_is_open_to_all(guarded: Desk) -> None:
    """Nothing else is."""
    answered = {
        route.path: (await guarded.ask(route.method, route.path)).status
        for route in guarded.app.routes
    }

    assert answered.pop("/health") == 200
    assert set(answered.values()) == {401}
    assert (await guarded.ask("GET", "/nope")).status == 401
    assert (await guarded.ask("PUT", "/health")).status == 405
    assert (await guarded.ask("PUT", "/ready")).status == 401


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
async def test_role_permits_what_its_table_says(guarded: Desk, role: str) -> None:
    """Every endpoint is asked by every role; refusals name the permission that is missing."""
    for route in guarded.app.routes:
        got = await guarded.ask(route.method, route.path, token=role)
        permitted = role == "admin" or route.permission in ROLES[role] or not route.permission
        assert (got.status != 403) is permitted, route.path
        if not permitted:
            assert got.code == "FORBIDDEN"
            assert route.permission in got.json()["error"]["message"]
    changes = {route.path: route.permission for route in guarded.app.routes if route.action}
    assert not set(changes.values()) & ROLES["viewer"]
    assert changes["/api/v1/drain"] not in ROLES["operator"]


async def test_attempts_to_change_are_noted_however_they_end(guarded: Desk) -> None:
    """Those that are not permitted, too."""
    await guarded.ask("POST", "/api/v1/drain", token="operator")
    await guarded.ask("PUT", "/api/v1/config", {"yaml": "a: 1"}, token="operator")
    await guarded.ask("POST", "/api/v1/drain", token="admin")
    await guarded.ask("GET", "/api/v1/status", token="admin")

    entries = guarded.audit.page({}).entries
    assert [(each.action, each.role, each.method, each.status) for each in entries] == [
        ("process.drain", "operator", "POST", 403),
        ("config.put", "operator", "PUT", 428),
        ("process.drain", "admin", "POST", 202),
    ]
    assert guarded.serving.drains == 1


async def test_client_that_leaves_is_noted(
    desk: Desk, autojump_clock: trio.testing.MockClock
) -> None:
    """And the next change finds the way free."""
    desk.configuration.deploy_s = 5
    with trio.move_on_after(1):
        await desk.ask("PUT", "/api/v1/config", {"yaml": "a: 1"}, if_match="*")

    again = await desk.ask("PUT", "/api/v1/config", {"yaml": "a: 2"}, if_match="*")

    assert again.status == 200
    assert [each.status for each in desk.audit.page({}).entries] == [499, 200]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (BodyTooLarge(10), 413, "REQUEST_BODY_TOO_LARGE"),
        (RequestTimedOut(), 408, "REQUEST_TIMEOUT"),
        (InvalidRequest("bad chunk"), 400, "INVALID_INPUT"),
    ],
)
async def test_body_that_cannot_be_read_is_refused(
    desk: Desk, error: VsrError, status: int, code: str
) -> None:
    """In the words of this API."""

    async def read_body(limit_bytes: int) -> bytes:
        await trio.lowlevel.checkpoint()
        assert limit_bytes == 10 * 1024 * 1024
        raise error

    host = [(b"host", b"localhost")]
    got, _, body = await desk.app.answer(b"POST", b"/api/v1/config/validate", host, read_body)

    assert got == status
    assert code.encode() in body


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"yaml": 1}',
        b'{"yaml": "a", "dsl": "b"}',
        b'{"yaml": "a", "yaml": "b"}',
        b'{"yaml": "a"} x',
        b"[" * 100_000,
        b'{"yaml": "\xff"}',
        b'{"mode": "replace"}',
    ],
)
async def test_body_is_strict_json(desk: Desk, body: bytes) -> None:
    """Of the members that the endpoint knows, each once."""
    got = await desk.ask("PUT", "/api/v1/config", body, if_match="*")

    assert (got.status, got.code) == (400, "INVALID_INPUT")
    assert desk.configuration.written == []


async def test_index_lists_every_endpoint(desk: Desk) -> None:
    """With the permission that it asks for."""
    got = (await desk.ask("GET", "/api/v1")).json()

    listed = {(each["method"], each["path"]): each["permission"] for each in got["endpoints"]}
    assert listed == {(route.method, route.path): route.permission for route in desk.app.routes}
    assert listed["GET", "/health"] == ""


async def test_readiness_follows_the_router(desk: Desk) -> None:
    """503 while it drains."""
    ready = await desk.ask("GET", "/ready")
    desk.serving.ready, desk.serving.drains = False, 1
    draining = await desk.ask("GET", "/ready")

    assert (ready.status, ready.json()["status"], ready.json()["phase"]) == (200, "ready", "ready")
    assert (draining.status, draining.json()["status"]) == (503, "starting")
    assert draining.json()["phase"] == "draining"


async def test_status_and_backends_tell_what_serves(desk: Desk) -> None:
    """Versions that requests still use, endpoints that are left out and for how long."""
    status = (await desk.ask("GET", "/api/v1/status")).json()
    backends = (await desk.ask("GET", "/api/v1/backends")).json()
    metrics = await desk.ask("GET", "/metrics")

    assert (status["state"], status["release"]) == ("serving", "1.2.3")
    assert status["serving"]["workers"] == 1
    assert status["serving"]["generations"] == [
        {"version": 3, "active": True, "leases": 2},
        {"version": 2, "active": False, "leases": 1},
    ]
    assert status["config"]["active"]["version"] == 3
    assert backends["config_version"] == 3
    [cluster] = backends["clusters"]
    assert cluster["endpoints"][0]["ejected_for_s"] == 12.0
    assert (metrics.body, metrics.lines[b"content-type"]) == (
        b"up 1.0\n",
        b"text/plain; version=0.0.4; charset=utf-8",
    )


async def test_target_may_be_a_whole_url(desk: Desk) -> None:
    """Its host counts, and not the field."""
    own = await desk.ask("GET", "http://localhost:8080/health?x=1")
    other = await desk.ask("GET", "http://somewhere.example/health")

    assert (own.status, other.status) == (200, 403)


async def test_path_may_be_escaped(desk: Desk) -> None:
    """A letter is the same letter."""
    assert (await desk.ask("GET", "/api/v1/%63onfig")).status == 200


async def test_fault_of_ours_is_noted_as_one(desk: Desk) -> None:
    """The change may have been made, and its client did not leave."""
    desk.configuration.faults["deploy"] = ZeroDivisionError()

    with pytest.raises(ZeroDivisionError):
        await desk.ask("PUT", "/api/v1/config", {"yaml": "a: 1"}, if_match="*")

    assert [each.status for each in desk.audit.page({}).entries] == [500]


async def test_answers_are_of_no_use_to_pages_of_others(desk: Desk) -> None:
    """Refusals, too."""
    for got in (await desk.ask("GET", "/health"), await desk.ask("GET", "/nope")):
        assert got.lines[b"x-content-type-options"] == b"nosniff"
        assert got.lines[b"cross-origin-resource-policy"] == b"same-origin"
        assert got.lines[b"cache-control"] == b"no-store"


async def test_what_this_version_does_not_have_is_told(guarded: Desk) -> None:
    """To whoever may ask for it; the list of endpoints says so, too."""
    flush = "/api/v1/response-cache/flush"
    denied = await guarded.ask("POST", flush, {}, token="operator")
    told = await guarded.ask("POST", flush, {}, token="admin")
    index = (await guarded.ask("GET", "/api/v1", token="viewer")).json()["endpoints"]

    assert (denied.status, denied.code) == (403, "FORBIDDEN")
    assert (told.status, told.code) == (503, "CACHE_UNAVAILABLE")
    missing = {each["path"] for each in index if not each["available"]}
    assert {flush, "/api/v1/classify/intent", "/v1/router/outcomes"} <= missing
    assert "/api/v1/config" not in missing


async def test_models_are_those_that_clients_see(desk: Desk) -> None:
    """By both paths."""
    for path in ("/v1/models", "/api/v1/models"):
        assert (await desk.ask("GET", path)).json()["object"] == "list"


async def test_startup_status_is_that_of_readiness(desk: Desk) -> None:
    """503 until it serves."""
    desk.serving.ready = False
    got = await desk.ask("GET", "/startup-status")

    assert (got.status, got.json()["ready"], got.json()["phase"]) == (503, False, "starting")
