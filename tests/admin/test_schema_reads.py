"""The JSON schema in parts, as it is asked for."""

import pytest

from tests.fakes.configuration import Desk

SCHEMA = "/api/v1/config/schema"


@pytest.mark.parametrize(
    ("query", "member"),
    [
        ("", "sections"),
        ("?view=index", "algorithms"),
        ("?view=full", "$id"),
        ("?path=providers.models", "schema"),
        ("?view=section&path=listeners&expanded=true", "$defs"),
        ("?kind=plugin", "entries"),
        ("?kind=signal&name=keyword&expanded=FALSE", "schema"),
    ],
)
async def test_part_is_told(query: str, member: str) -> None:
    """What is asked for says which view is meant."""
    got = await Desk().ask("GET", SCHEMA + query)

    assert got.status == 200
    assert member in got.json()


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?view=all", 400),
        ("?kind=thing", 400),
        ("?path=listeners&expanded=perhaps", 400),
        ("?path=nowhere", 404),
        ("?kind=signal&name=nothing", 404),
        ("?view=section", 404),
    ],
)
async def test_part_that_is_not_there_is_told(query: str, status: int) -> None:
    """By what there is."""
    got = await Desk().ask("GET", SCHEMA + query)

    assert got.status == status
    assert got.json()["error"]["message"]
