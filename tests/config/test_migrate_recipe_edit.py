"""One recipe of a document written anew, or taken away."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vsr.config.migrate.recipe_edit import remove_recipe, write_recipe
from vsr.errors import ConfigRejected

BASE = """\
# about all of it
version: v0.3
routing:
  # the cards
  modelCards:
    - name: small  # the only one
  # old ones
  decisions: []
# about recipes
recipes:
  # the first
  - name: a
    # inside
    routing: {strategy: x}  # behind
  # the second
  - name: b
    routing:
      decisions: []
global: {}  # at the end
"""
NEW = """\
# a new one
name: a
# why
routing:
  strategy: "0x1F"  # how
"""


def test_recipe_takes_the_place_of_the_one_before() -> None:
    """With its comments, which go with it; all else stands as it was written."""
    written = write_recipe(BASE, "a", NEW)

    place, rest = BASE.index("  # the first"), BASE.index("  # the second")
    assert written == (
        BASE[:place]
        + "  # a new one\n  - name: a\n    # why\n    routing:\n"
        + '      strategy: "0x1F"  # how\n'
        + BASE[rest:]
    )


def test_new_recipe_is_the_last() -> None:
    """Under the name that it is asked for by, if it has none itself."""
    written = write_recipe(BASE, "null", "routing: {strategy: y}\n")

    before, after = BASE.index("global"), '  - name: "null"\n    routing: {strategy: y}\n'
    assert written == BASE[:before] + after + BASE[before:]
    assert yaml.safe_load(written)["recipes"][2]["name"] == "null"


@pytest.mark.parametrize("base", ["version: v0.3\n", "version: v0.3\nrecipes: []\n", "recipes:\n"])
def test_first_recipe_makes_the_list(base: str) -> None:
    """However its absence was written."""
    written = yaml.safe_load(write_recipe(base, "", NEW))

    assert written["recipes"] == [{"name": "a", "routing": {"strategy": "0x1F"}}]


def test_default_recipe_is_the_routing() -> None:
    """Whose cards describe the models of all recipes, and stay."""
    written = write_recipe(BASE, "default", "routing:\n  # why\n  strategy: y\n")

    cards, recipes = BASE.index("  # old ones"), BASE.index("# about recipes")
    assert written == BASE[:cards] + "  # why\n  strategy: y\n" + BASE[recipes:]
    others = write_recipe(BASE, "default", "routing: {modelCards: []}\n")
    assert yaml.safe_load(others)["routing"] == {"modelCards": []}


def test_default_recipe_among_the_others_is_one_of_them() -> None:
    """The top-level routing is not touched."""
    base = "routing: {}\nrecipes:\n  - {name: default, routing: {}}\n"

    written = yaml.safe_load(write_recipe(base, "default", "routing: {strategy: y}\n"))

    assert written["routing"] == {}
    assert written["recipes"] == [{"name": "default", "routing": {"strategy": "y"}}]


def test_recipe_is_taken_away_with_its_comments() -> None:
    """The last one with the list."""
    without = remove_recipe(BASE, "a")
    empty = remove_recipe(without, "b")

    place, rest = BASE.index("  # the first"), BASE.index("  # the second")
    assert without == BASE[:place] + BASE[rest:]
    assert "recipes:" not in empty
    assert empty.endswith("global: {}  # at the end\n")


def test_recipe_that_is_not_there_is_not_taken_away() -> None:
    """Nor is the default one, which is the routing."""
    for name in ("c", "default", ""):
        with pytest.raises(ConfigRejected) as caught:
            remove_recipe(BASE, name)
        assert [problem.code for problem in caught.value.problems] == ["unresolved_reference"]


@pytest.mark.parametrize(
    ("name", "recipe", "path"),
    [
        ("a", "name: a\n", "routing"),
        ("a", "routing: 1\n", "routing"),
        ("a", "name: b\nrouting: {}\n", "name"),
        ("a", "name: [a]\nrouting: {}\n", "name"),
        ("", "routing: {}\n", "name"),
        ("", "name: ~\nrouting: {}\n", "name"),
        ("default", "description: x\nrouting: {}\n", "description"),
        ("a", "- 1\n", ""),
        ("a", "a: [\n", ""),
    ],
)
def test_what_is_no_recipe_is_refused(name: str, recipe: str, path: str) -> None:
    """As the fault of what was sent."""
    with pytest.raises(ConfigRejected) as caught:
        write_recipe(BASE, name, recipe)

    assert [(each.file, each.path) for each in caught.value.problems] == [("recipe", path)]


def test_list_that_is_none_is_refused() -> None:
    """Of the document."""
    with pytest.raises(ConfigRejected, match="recipes: is no list"):
        write_recipe("recipes: {a: 1}\n", "a", NEW)


_NAMES = st.sampled_from(["a", "b", "c", "default", "true", "1", "x: y", "é"])
_EDITS = st.lists(st.tuples(_NAMES, st.sampled_from(["x", "y", None])), max_size=6)


@given(_EDITS)
def test_edits_say_what_they_are_to_say(edits: list[tuple[str, str | None]]) -> None:
    """Whatever came before."""
    text = BASE
    model: dict[str, object] = {"a": {"strategy": "x"}, "b": {"decisions": []}}
    for name, strategy in edits:
        if strategy is None:
            if name in model:
                text = remove_recipe(text, name)
                del model[name]
        else:
            text = write_recipe(text, name, f"routing: {{strategy: {strategy}}}\n")
            if name == "default":
                assert yaml.safe_load(text)["routing"]["strategy"] == strategy
            else:
                model[name] = {"strategy": strategy}

    recipes = yaml.safe_load(text).get("recipes", [])
    assert {each["name"]: each["routing"] for each in recipes} == model
    assert text.startswith("# about all of it\n")
