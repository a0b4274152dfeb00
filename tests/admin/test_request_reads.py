"""Requests as operators read them: lists, one of them, and questions that make no sense."""

from urllib.parse import quote

import pytest

from tests.fakes.configuration import Desk, detail
from vsr.resources.management import Management, Token

EARLY, LATE = "2026-01-01T00:00:00.000000000Z", "2026-01-01T00:00:01.000000000Z"


@pytest.fixture
def desk() -> Desk:
    """Return one with requests, two of them with the same id."""
    desk = Desk()
    desk.serving.details = [detail("a/1 é", LATE), detail("b", EARLY), detail("b", LATE)]
    return desk


async def test_requests_are_listed_up_to_a_limit(desk: Desk) -> None:
    """The newest first."""
    every = (await desk.ask("GET", "/api/v1/requests")).json()
    one = (await desk.ask("GET", "/api/v1/requests?limit=1")).json()

    assert [each["start_time"] for each in every["ended"]] == [LATE, LATE, EARLY]
    assert (len(one["ended"]), one["kept"], one["under_way"]) == (1, 200, [])


async def test_one_is_found_by_its_id_whatever_that_is(desk: Desk) -> None:
    """An id is the client's: a slash in it parts nothing if it is escaped."""
    got = await desk.ask("GET", f"/api/v1/requests/{quote('a/1 é', safe='')}")

    assert got.json()["request"]["id"] == "a/1 é"


async def test_time_of_the_start_tells_twins_apart(desk: Desk) -> None:
    """Both are there."""
    starts = [
        (await desk.ask("GET", f"/api/v1/requests/b?start_time={at}")).json()["request"]
        for at in (EARLY, LATE)
    ]

    assert [each["start_time"] for each in starts] == [EARLY, LATE]


async def test_request_that_is_gone_is_not_found(desk: Desk) -> None:
    """As any other name."""
    got = await desk.ask("GET", "/api/v1/requests/gone")

    assert (got.status, got.code) == (404, "REQUEST_NOT_FOUND")


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "x", "", "9" * 5000, "²"])
async def test_limit_is_a_number_in_range(desk: Desk, limit: str) -> None:
    """Anything else is refused."""
    got = await desk.ask("GET", f"/api/v1/requests?limit={quote(limit)}")

    assert (got.status, got.code) == (400, "INVALID_INPUT")


async def test_permission_is_its_own() -> None:
    """A viewer has it; a role that is written without it has not."""
    roles = (*Management().roles, ("pager", frozenset({"config.read", "metrics.read"})))
    tokens = (Token("VIEW", "viewer"), Token("PAGE", "pager"))
    desk = Desk(environ={"VIEW": "v", "PAGE": "p"})
    desk.configuration.management = Management(asks_token=True, tokens=tokens, roles=roles)
    desk.serving.details = [detail("a")]

    statuses = [
        (await desk.ask("GET", path, token=token)).status
        for token in ("v", "p")
        for path in ("/api/v1/requests", "/api/v1/requests/a")
    ]

    assert statuses == [200, 200, 403, 403]
