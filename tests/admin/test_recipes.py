"""Recipes, one by one."""

import json

import msgspec
import pytest

from tests.fakes.configuration import TEXT, Desk
from vsr.admin.ports import Checked
from vsr.config.attempt import Code, Reason, Stage
from vsr.config.inspection import Inspected

RECIPES = "/api/v1/config/recipes"
DOCUMENT = {
    "routing": {"decisions": [{"name": "all"}], "strategy": "priority"},
    "recipes": [{"name": "cheap", "description": "costs little", "routing": {"decisions": []}}],
    "entrypoints": [
        {"model_names": ["low", "lower"], "recipe": "cheap"},
        {"model_names": ["top"], "recipe": "default"},
    ],
}
FAULT = Reason(Stage.COMPILE, Code.INVALID_RESOURCE, "is unknown", "recipes[0].x", "c.yaml", 3)
MISSING = Reason(Stage.PARSE, Code.UNRESOLVED_REFERENCE, "there is no recipe 'x'", "recipes")


def holding(document: object) -> Desk:
    """Return a desk with a document."""
    desk = Desk()
    json_text = msgspec.Raw(json.dumps(document).encode())
    desk.configuration.inspected = Inspected(b"", json=json_text)
    return desk


@pytest.fixture
def desk() -> Desk:
    """Return one with two recipes."""
    return holding(DOCUMENT)


async def test_recipes_are_listed_with_what_leads_to_them(desk: Desk) -> None:
    """The default one is the top-level routing; the ETag is that of the document."""
    got = await desk.ask("GET", RECIPES)
    document = await desk.ask("GET", "/api/v1/config")

    assert got.json()["recipes"] == [
        {
            "name": "default",
            "description": "",
            "decisions": ["all"],
            "model_names": ["top"],
            "default": True,
        },
        {
            "name": "cheap",
            "description": "costs little",
            "decisions": [],
            "model_names": ["low", "lower"],
            "default": False,
        },
    ]
    assert got.lines[b"etag"] == document.lines[b"etag"]


async def test_default_recipe_may_be_one_of_the_others() -> None:
    """Then the top-level routing is none."""
    desk = holding({"routing": {}, "recipes": [{"name": "default", "routing": {"strategy": "x"}}]})

    listed = (await desk.ask("GET", RECIPES)).json()["recipes"]
    got = (await desk.ask("GET", f"{RECIPES}/default")).json()

    assert [(each["name"], each["default"]) for each in listed] == [("default", True)]
    assert got["routing"] == {"strategy": "x"}


async def test_one_recipe_is_shown(desk: Desk) -> None:
    """Or told not to be there."""
    got = await desk.ask("GET", f"{RECIPES}/cheap")
    default = await desk.ask("GET", f"{RECIPES}/default")
    missing = await desk.ask("GET", f"{RECIPES}/dear")

    assert got.json() == DOCUMENT["recipes"][0]  # type: ignore[index]  # a list
    assert default.json()["routing"] == DOCUMENT["routing"]
    assert (missing.status, missing.code) == (404, "RECIPE_NOT_FOUND")


async def test_recipe_is_written_by_the_rules_of_the_document(desk: Desk) -> None:
    """Precondition, look, write, audit; the child is asked to put it in its place."""
    without = await desk.ask("PUT", f"{RECIPES}/a%20b", {"yaml": "routing: {}"})
    got = await desk.ask("PUT", f"{RECIPES}/a%20b", {"yaml": "routing: {}"}, if_match="*")

    assert (without.status, without.code) == (428, "PRECONDITION_REQUIRED")
    assert (got.status, got.json()["config_version"]) == (200, 4)
    [question] = desk.configuration.questions
    assert (question.recipe, question.text, question.base) == ("a b", b"routing: {}", TEXT)
    assert [(each.action, each.path, each.status) for each in desk.audit.page({}).entries] == [
        ("recipe.save", f"{RECIPES}/a%20b", 428),
        ("recipe.save", f"{RECIPES}/a%20b", 200),
    ]


async def test_recipe_is_taken_away(desk: Desk) -> None:
    """By an empty text."""
    got = await desk.ask("DELETE", f"{RECIPES}/cheap", if_match="*")

    assert got.status == 200
    [question] = desk.configuration.questions
    assert (question.recipe, question.text) == ("cheap", b"")
    assert [each.action for each in desk.audit.page({}).entries] == ["recipe.delete"]


@pytest.mark.parametrize("name", ["x", "default"])
async def test_recipe_that_is_not_there_is_not_taken_away(desk: Desk, name: str) -> None:
    """404; the default one stays."""
    desk.configuration.inspected = Inspected(b"", (MISSING,))

    got = await desk.ask("DELETE", f"{RECIPES}/{name}", if_match="*")

    assert (got.status, got.code) == (404, "RECIPE_NOT_FOUND")
    assert desk.configuration.written == []


async def test_recipe_with_faults_is_refused_with_all_of_them(desk: Desk) -> None:
    """Whether it is written or only looked at."""
    desk.configuration.checked = Checked((FAULT,))

    put = await desk.ask("PUT", f"{RECIPES}/x", {"yaml": "routing: {}"}, if_match="*")
    looked = await desk.ask("POST", f"{RECIPES}/validate", {"yaml": "name: x"})

    assert (put.status, put.code) == (400, "CONFIG_VALIDATION_ERROR")
    assert put.json()["error"]["reasons"][0]["path"] == "recipes[0].x"
    assert (looked.status, looked.json()["valid"]) == (200, False)
    assert looked.json()["errors"][0]["recipe"] == "recipes[0]"
    assert desk.configuration.questions[-1].recipe == ""
    assert desk.configuration.written == []


async def test_empty_recipe_is_refused(desk: Desk) -> None:
    """It would take one away."""
    put = await desk.ask("PUT", f"{RECIPES}/x", {"yaml": "  "}, if_match="*")
    looked = await desk.ask("POST", f"{RECIPES}/validate", {"yaml": ""})

    assert {put.status, looked.status} == {400}
    assert desk.configuration.questions == []
