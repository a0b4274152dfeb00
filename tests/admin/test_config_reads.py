"""Reading the configuration, and asking what a change would do."""

import hashlib

import msgspec
import pytest

from tests.fakes.configuration import NOW, TEXT, UNREADABLE, Desk, record
from vsr.admin.ports import Checked
from vsr.config.attempt import Attempt, AttemptStatus, Code, Reason, Stage
from vsr.config.diff import Change, ChangeKind
from vsr.config.history import Document
from vsr.config.inspection import Inspected, Mode
from vsr.config.origin import Origin
from vsr.resources.management import Management, Token

SHA = hashlib.sha256(TEXT).hexdigest()
FAULT = Reason(
    Stage.COMPILE, Code.INVALID_RESOURCE, "is unknown", "recipes[1].routing.x", "config.yaml", 3
)
WARNING = Reason(Stage.COMPILE, Code.INVALID_RESOURCE, "is odd", "listeners[0]")
RESTART = Reason(Stage.VALIDATE, Code.RESTART_REQUIRED, "restart it", "global.services.x")
CHANGE = Change("routing", ChangeKind.ADDED, after={})
CONFIG = "/api/v1/config"


@pytest.fixture
def desk() -> Desk:
    """Return one whose texts are valid."""
    desk = Desk()
    desk.configuration.inspected = Inspected(
        b"", json=msgspec.Raw(b'{"version":"v0.3"}'), yaml="version: v0.3\n", changes=(CHANGE,)
    )
    return desk


async def test_document_comes_with_its_etag_and_what_serves(desk: Desk) -> None:
    """The ETag is of what is persisted, the other two of the snapshot."""
    desk.configuration.text = b"other"

    got = await desk.ask("GET", CONFIG)

    assert (got.status, got.json()) == (200, {"version": "v0.3"})
    assert got.lines[b"etag"].decode() == f'"{hashlib.sha256(b"other").hexdigest()}"'
    assert got.lines[b"x-vsr-config-version"] == b"3"
    assert got.lines[b"x-vsr-config-hash"].decode() == SHA
    assert got.lines[b"cache-control"] == b"no-store"


@pytest.mark.parametrize(
    ("role", "reveals"), [("viewer", False), ("operator", False), ("admin", True)]
)
async def test_secrets_are_for_who_may_see_them(desk: Desk, role: str, *, reveals: bool) -> None:
    """And files for who may write."""
    desk.environ["T"] = "token"
    tokens = (Token("T", role),)
    desk.configuration.management = Management(asks_token=True, tokens=tokens)

    await desk.ask("GET", CONFIG, token="token")
    await desk.ask("POST", f"{CONFIG}/validate", {"yaml": "a"}, token="token")

    shown, validated = desk.configuration.questions
    assert shown.reveals is reveals
    assert not validated.reveals
    assert validated.may_read_files is (role != "viewer")
    assert validated.known == (TEXT if role == "viewer" else b"")


async def test_document_that_is_not_valid_is_told_with_its_etag(desk: Desk) -> None:
    """Whoever mends it needs that."""
    desk.configuration.inspected = Inspected(b"", (FAULT,))

    got = await desk.ask("GET", CONFIG)

    assert (got.status, got.code) == (500, "READ_ERROR")
    assert got.json()["error"]["reasons"][0]["path"] == "recipes[1].routing.x"
    assert got.lines[b"etag"].decode() == f'"{SHA}"'


async def test_hashes_tell_whether_what_is_persisted_serves(desk: Desk) -> None:
    """With the last rejection, whatever came after it."""
    refused = Attempt(2, "bad", Origin("file"), NOW, AttemptStatus.FAILED, reasons=(FAULT,))
    desk.configuration.status = msgspec.structs.replace(
        desk.configuration.status, last_rejection=refused
    )

    told = (await desk.ask("GET", f"{CONFIG}/hash")).json()
    desk.configuration.text = b"other"
    other = (await desk.ask("GET", f"{CONFIG}/hash")).json()

    assert (told["source_config_hash"], told["active_runtime_hash"]) == (SHA, SHA)
    assert (told["activation_status"], told["active_version"]) == ("active", 3)
    assert told["generated_runtime_hash"] == SHA
    assert told["last_rejection"]["error"] == "recipes[1].routing.x: is unknown"
    assert (other["activation_status"], other["active_runtime_hash"]) == ("unknown", SHA)


async def test_valid_document_is_told_with_its_normal_form(desk: Desk) -> None:
    """And compared with what serves, where that is asked for."""
    desk.configuration.history = {"20260103-000000": (record(3, "20260103-000000"), Document(b"s"))}
    desk.configuration.checked = Checked((), (RESTART,))

    told = (
        await desk.ask("POST", f"{CONFIG}/validate", {"yaml": "a", "compare_to_active": True})
    ).json()

    assert (told["contract_version"], told["valid"]) == ("v1", True)
    assert told["normalized_yaml"] == "version: v0.3\n"
    assert told["diff"] == [{"path": "routing", "kind": "added", "after": {}}]
    assert [each["code"] for each in told["warnings"]] == ["restart_required"]
    assert desk.configuration.questions[0].base == b"s"
    assert desk.configuration.written == []


async def test_faulty_document_is_answered_with_every_finding(desk: Desk) -> None:
    """200: the question was answered; it is not compiled any more."""
    desk.configuration.inspected = Inspected(b"", (FAULT,), (WARNING,))

    got = await desk.ask("POST", f"{CONFIG}/validate", {"yaml": "a"})

    told = got.json()
    assert (got.status, told["valid"], desk.configuration.asked) == (200, False, [])
    assert told["errors"] == [
        {
            "code": "invalid_resource",
            "severity": "error",
            "resource": "recipes.routing",
            "recipe": "recipes[1]",
            "stage": "compile",
            "field": "recipes[1].routing.x",
            "message": "is unknown",
            "file": "config.yaml",
            "line": 3,
        }
    ]
    assert told["warnings"][0]["resource"] == "listeners"
    assert "diff" not in told


async def test_document_that_this_router_cannot_serve_is_not_valid_here(desk: Desk) -> None:
    """Though it is a document."""
    desk.configuration.checked = Checked((FAULT,))

    told = (await desk.ask("POST", f"{CONFIG}/validate", {"yaml": "a"})).json()

    assert (told["valid"], len(told["errors"])) == (False, 1)


async def test_plan_tells_what_would_change(desk: Desk) -> None:
    """From what is persisted, with the ETag that the change would need."""
    desk.configuration.checked = Checked(reused=("upstream",))

    got = await desk.ask("POST", f"{CONFIG}/plan", {"yaml": "a: 1", "mode": "merge"})

    told, [question] = got.json(), desk.configuration.questions
    assert (question.mode, question.base) == (Mode.MERGE, TEXT)
    assert (told["valid"], told["current_etag"]) == (True, f'"{SHA}"')
    assert told["candidate_etag"] == f'"{hashlib.sha256(TEXT + b"a: 1").hexdigest()}"'
    assert (told["changes"][0]["path"], told["reused"]) == ("routing", ["upstream"])
    assert desk.configuration.written == []


@pytest.mark.parametrize(
    "body", [{"yaml": "a"}, {"yaml": "a", "mode": "x"}, {"yaml": " ", "mode": "merge"}]
)
async def test_plan_needs_a_text_and_a_mode(desk: Desk, body: dict[str, str]) -> None:
    """One of the two that there are."""
    got = await desk.ask("POST", f"{CONFIG}/plan", body)

    assert (got.status, got.code) == (400, "INVALID_INPUT")


async def test_versions_are_listed_with_where_they_came_from(desk: Desk) -> None:
    """Newest first; the one that serves is marked."""
    desk.configuration.history = {
        "20260103-040506-001": (record(3, "20260103-040506-001", source="api"), Document(b"")),
        "20260102-000000": (record(2, "20260102-000000", has_document=False), None),
    }

    newest, other = (await desk.ask("GET", f"{CONFIG}/versions")).json()

    assert newest == {
        "version": "20260103-040506-001",
        "timestamp": "2026-01-03 04:05:06",
        "source": "api",
        "filename": "config.20260103-040506-001.yaml",
        "config_version": 3,
        "hash": "hash-3",
        "rollback_of": 0,
        "active": True,
    }
    assert (other["filename"], other["active"]) == ("", False)


async def test_files_that_cannot_be_read_are_told(desk: Desk) -> None:
    """Without their place."""
    desk.configuration.faults = {"read": UNREADABLE, "records": UNREADABLE}

    for path in (CONFIG, f"{CONFIG}/hash", f"{CONFIG}/versions"):
        got = await desk.ask("GET", path)
        assert (got.status, got.code) == (500, "READ_ERROR")
        assert "Permission denied" in got.json()["error"]["message"]
