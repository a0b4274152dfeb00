"""Changing the configuration: preconditions, refusals, outcomes."""

import hashlib
from functools import partial

import msgspec
import pytest
import trio
import trio.testing

from tests.fakes.configuration import CHANGED, TEXT, UNREADABLE, Desk, Got, record
from vsr.admin.ports import Checked
from vsr.config.attempt import AttemptStatus, Code, Reason, Stage
from vsr.config.history import Document
from vsr.config.inspection import Inspected, Mode
from vsr.config.origin import Origin

NEW = "version: v0.3\nrouting: {}\n"
FAULT = Reason(Stage.COMPILE, Code.INVALID_RESOURCE, "is unknown", "a.b", "config.yaml", 3)
UNPARSED = Reason(Stage.PARSE, Code.INVALID_DOCUMENT, "is not valid YAML", "", "config.yaml", 2)
RESTART = Reason(Stage.VALIDATE, Code.RESTART_REQUIRED, "restart it", "global.x")
CONFIG = "/api/v1/config"


def etag(text: bytes) -> str:
    """Return the ETag of a text."""
    return f'"{hashlib.sha256(text).hexdigest()}"'


@pytest.fixture
def desk() -> Desk:
    """Return one with a history of three."""
    desk = Desk()
    desk.configuration.history = {
        "20260103-000000": (record(3, "20260103-000000"), Document(b"three", {"g.yaml": b"g"})),
        "20260102-000000": (record(2, "20260102-000000", has_document=False), None),
        "20260101-000000-001": (record(0, "20260101-000000-001"), Document(b"kept")),
    }
    return desk


async def put(desk: Desk, if_match: str = "*") -> Got:
    """Replace the document."""
    return await desk.ask("PUT", CONFIG, {"yaml": NEW}, if_match=if_match)


async def roll_back(desk: Desk, **body: object) -> Got:
    """Serve a recorded configuration."""
    return await desk.ask("POST", f"{CONFIG}/rollback", body, if_match="*")


async def test_replaced_document_is_written_as_it_came_and_serves(desk: Desk) -> None:
    """200, with what was there before kept, and the origin that the version is told with."""
    got = await desk.ask(
        "PUT", CONFIG, {"yaml": NEW}, if_match=etag(TEXT), lines=[(b"x-request-id", b"r-1")]
    )

    configuration, told = desk.configuration, got.json()
    assert configuration.written == [(Document(NEW.encode()), Origin("api", "anonymous", "r-1"))]
    assert configuration.kept == [TEXT]
    assert got.status == 200
    assert got.lines[b"etag"].decode() == told["etag"] == etag(NEW.encode())
    assert (told["status"], told["activation_status"]) == ("success", "active")
    assert (told["config_version"], told["version"]) == (4, "20260101-000000")
    assert told["activation"]["attempt"] == 7
    assert told["activation"]["document_hash"] == told["generated_runtime_hash"]
    assert "rollback_of" not in told


@pytest.mark.parametrize(
    ("ends", "status", "outcome", "standing"),
    [
        (AttemptStatus.FAILED, 503, "activation_failed", "failed"),
        (None, 202, "accepted", "pending"),
        (AttemptStatus.SUPERSEDED, 202, "accepted", "superseded"),
    ],
)
async def test_outcome_follows_the_activation(
    desk: Desk, ends: AttemptStatus | None, status: int, outcome: str, standing: str
) -> None:
    """The document stays written."""
    desk.configuration.ends = ends

    got = await put(desk)

    assert (got.status, got.json()["status"]) == (status, outcome)
    assert got.json()["activation_status"] == standing
    assert "config_version" not in got.json()
    assert ("activation" in got.json()) is (ends is not None)
    assert desk.configuration.text == NEW.encode()


@pytest.mark.parametrize(
    ("if_match", "status", "code"),
    [
        ("", 428, "PRECONDITION_REQUIRED"),
        ('"0000"', 412, "CONFIG_CHANGED"),
        (f"W/{etag(TEXT)}", 412, "CONFIG_CHANGED"),
        (etag(TEXT).strip('"'), 412, "CONFIG_CHANGED"),
        (f'"a" {etag(TEXT)}', 412, "CONFIG_CHANGED"),
        (f"{etag(TEXT)}, x", 412, "CONFIG_CHANGED"),
        ('*, "a"', 412, "CONFIG_CHANGED"),
        ('"*"', 412, "CONFIG_CHANGED"),
        (f'W/"x, {etag(TEXT)}', 412, "CONFIG_CHANGED"),
    ],
)
async def test_precondition_must_hold(desk: Desk, if_match: str, status: int, code: str) -> None:
    """A refusal tells the ETag that would have."""
    got = await put(desk, if_match)

    assert (got.status, got.code) == (status, code)
    assert desk.configuration.written == []
    if status == 412:
        assert got.lines[b"etag"].decode() == etag(TEXT)


@pytest.mark.parametrize(
    "if_match",
    [" * ", etag(TEXT), f'"a", {etag(TEXT)}', f'W/"b",,"c,d" , {etag(TEXT)} ,', f", {etag(TEXT)}"],
)
async def test_precondition_that_holds(desk: Desk, if_match: str) -> None:
    """Also in a list."""
    assert (await put(desk, if_match)).status == 200


async def test_precondition_may_stand_in_several_lines(desk: Desk) -> None:
    """They are one list. Source: RFC 9110, section 5.3."""
    lines = [(b"if-match", b'"a"'), (b"if-match", etag(TEXT).encode())]

    got = await desk.ask("PUT", CONFIG, {"yaml": NEW}, lines=lines)

    assert got.status == 200


async def test_look_that_fails_is_no_fault_of_the_document(desk: Desk) -> None:
    """Nobody's but the Router's: 500."""
    broken = Reason(Stage.COMPILE, Code.BUILD_FAILED, "the process that compiles it was killed")
    desk.configuration.checked = Checked((broken,))

    got = await put(desk)

    assert (got.status, got.code) == (500, "RUNTIME_SYNC_ERROR")
    assert desk.configuration.written == []


async def test_second_change_at_a_time_is_refused(
    desk: Desk, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """Until the first has ended, its activation included."""
    desk.configuration.deploy_s = 10
    nursery.start_soon(put, desk)
    await trio.sleep(5)

    early = await put(desk)
    await trio.sleep(10)
    late = await put(desk)

    assert (early.status, early.code) == (409, "DEPLOY_IN_PROGRESS")
    assert late.status == 200


@pytest.mark.parametrize(
    ("checked", "status", "code"),
    [
        (Checked((FAULT,)), 400, "CONFIG_VALIDATION_ERROR"),
        (Checked((UNPARSED,)), 400, "YAML_PARSE_ERROR"),
        (Checked((), (RESTART,)), 409, "RESTART_REQUIRED"),
        (Checked((FAULT,), (RESTART,)), 400, "CONFIG_VALIDATION_ERROR"),
    ],
)
async def test_what_cannot_be_served_is_not_written(
    desk: Desk, checked: Checked, status: int, code: str
) -> None:
    """With every reason and its place."""
    desk.configuration.checked = checked

    got = await put(desk)

    assert (got.status, got.code) == (status, code)
    assert len(got.json()["error"]["reasons"]) == len(checked.reasons or checked.restarts)
    assert (desk.configuration.written, desk.configuration.kept) == ([], [])


@pytest.mark.parametrize("text", ["", "  \n"])
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_empty_text_is_refused(desk: Desk, method: str, text: str) -> None:
    """It would be the deletion of everything, or nothing at all."""
    got = await desk.ask(method, CONFIG, {"yaml": text}, if_match="*")

    assert (got.status, got.code) == (400, "INVALID_INPUT")


async def test_part_is_merged_into_what_is_persisted(desk: Desk) -> None:
    """And the result is checked and written."""
    got = await desk.ask("PATCH", CONFIG, {"yaml": NEW}, if_match="*")

    [question] = desk.configuration.questions
    assert (question.mode, question.base, question.text) == (Mode.MERGE, TEXT, NEW.encode())
    assert got.status == 200
    assert desk.configuration.asked == [Document(TEXT + NEW.encode())]
    assert desk.configuration.text == TEXT + NEW.encode()


async def test_part_that_cannot_be_merged_is_refused(desk: Desk) -> None:
    """Nothing is compiled then."""
    desk.configuration.inspected = Inspected(b"", (UNPARSED,))

    got = await desk.ask("PATCH", CONFIG, {"yaml": NEW}, if_match="*")

    assert (got.status, got.code) == (400, "YAML_PARSE_ERROR")
    assert desk.configuration.asked == []


@pytest.mark.parametrize(
    ("body", "text", "version"),
    [
        ({"config_version": 3}, b"three", 3),
        ({"config_version": 3.0}, b"three", 3),
        ({"version": "3"}, b"three", 3),
        ({"version": "20260103-000000"}, b"three", 3),
        ({"version": "20260101-000000-001"}, b"kept", 0),
    ],
)
async def test_recorded_configuration_serves_again(
    desk: Desk, body: dict[str, object], text: bytes, version: int
) -> None:
    """With the files that it included, as a new version that says of which it is one."""
    got = await roll_back(desk, **body)

    [(document, origin)] = desk.configuration.written
    assert (document.text, origin.source, origin.rollback_of) == (text, "rollback", version)
    assert document.included == ({"g.yaml": b"g"} if text == b"three" else {})
    assert got.status == 200
    assert got.json().get("rollback_of", 0) == version


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "INVALID_INPUT"),
        ({"config_version": 3, "version": "3"}, 400, "INVALID_INPUT"),
        ({"config_version": 0}, 400, "INVALID_INPUT"),
        ({"config_version": 3.5}, 400, "INVALID_INPUT"),
        ({"config_version": True}, 400, "INVALID_INPUT"),
        ({"config_version": 3, "version": None}, 400, "INVALID_INPUT"),
        ({"config_version": 10**19}, 400, "INVALID_INPUT"),
        ({"version": "03"}, 400, "INVALID_INPUT"),
        ({"version": ""}, 400, "INVALID_INPUT"),
        ({"version": "../config"}, 400, "INVALID_INPUT"),
        ({"version": "٣"}, 400, "INVALID_INPUT"),
        ({"config_version": 9}, 404, "VERSION_NOT_FOUND"),
        ({"version": "20200101-000000"}, 404, "VERSION_NOT_FOUND"),
        ({"config_version": 2}, 409, "VERSION_HAS_NO_DOCUMENT"),
    ],
)
async def test_rollback_needs_one_recorded_document(
    desk: Desk, body: dict[str, object], status: int, code: str
) -> None:
    """Named in one of the two ways."""
    got = await roll_back(desk, **body)

    assert (got.status, got.code) == (status, code)
    assert desk.configuration.written == []


async def test_recorded_document_that_is_no_longer_valid_is_refused(desk: Desk) -> None:
    """Also if it is no YAML at all."""
    for reason in (FAULT, UNPARSED):
        desk.configuration.checked = Checked((reason,))
        got = await roll_back(desk, config_version=3)
        assert (got.status, got.code) == (400, "BACKUP_INVALID")


@pytest.mark.parametrize(
    ("step", "error", "status", "code"),
    [
        ("read", UNREADABLE, 500, "READ_ERROR"),
        ("keep", UNREADABLE, 500, "BACKUP_ERROR"),
        ("deploy", UNREADABLE, 500, "WRITE_ERROR"),
        ("deploy", CHANGED, 409, "CONFIG_CHANGED"),
    ],
)
async def test_failure_of_a_file_is_told_and_frees_the_way(
    desk: Desk, step: str, error: Exception, status: int, code: str
) -> None:
    """The next change is not taken for the second at a time."""
    desk.configuration.faults = {step: error}
    failed = await put(desk)
    desk.configuration.faults = {}

    assert (failed.status, failed.code) == (status, code)
    assert (await put(desk)).status == 200


async def test_history_that_cannot_be_read_fails_a_rollback(desk: Desk) -> None:
    """Both its list and its documents."""
    for step in ("records", "recorded"):
        desk.configuration.faults = {step: UNREADABLE}
        got = await roll_back(desk, config_version=3)
        assert (got.status, got.code) == (500, "READ_ERROR")


async def test_cancelled_anywhere_the_way_is_free(
    desk: Desk, autojump_clock: trio.testing.MockClock
) -> None:
    """Whichever step a client leaves at."""
    for steps in range(1, 8):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as tasks:
                tasks.start_soon(partial(put, desk))
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
        desk.configuration.status = msgspec.structs.replace(desk.configuration.status)
        assert (await put(desk)).status == 200
