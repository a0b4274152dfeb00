"""One recipe of a document written anew, or taken away; all else stands as it was written."""

from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from vsr.config.migrate.merge import Page
from vsr.config.migrate.round_trip import is_empty
from vsr.config.migrate.spots import TAIL
from vsr.config.names import DEFAULT_RECIPE
from vsr.errors import ConfigRejected, Problem

_PATCH = "recipe"
"""Names what a recipe is written by in problems."""
_CARDS = "modelCards"
"""Of the top-level routing, and of no recipe: what stands there describes models of all."""


def write_recipe(base: str, name: str, recipe: str, *, file: str = "") -> str:
    """Return `base` with a recipe as it is written in `recipe`, new or in place of the one before.

    The recipe `default` is the top-level routing, unless there is one that is called so.

    Args:
        base: a document.
        name: of the recipe; empty: `recipe` has it.
        recipe: a mapping with `routing`, and at most `name` and `description` beside.
        file: names `base` in problems; the other is `recipe`.

    Raises:
        ConfigRejected: one of them is no YAML mapping or too unusual, or the recipe has no routing
            or another name.
    """
    page, added = Page.of(base, file), Page.of(recipe, _PATCH)
    fresh = _checked(added.root, name)
    name = str(fresh["name"])
    page.comments.take_over(added.comments)
    at = _place(page.root, name)
    if name == DEFAULT_RECIPE and at is None:
        _write_default(page, fresh)
    elif at is None:
        _list_of(page.root).append(fresh)
    else:
        recipes = _list_of(page.root)
        page.comments.forget(recipes[at])
        recipes[at] = fresh
    return page.text()


def remove_recipe(base: str, name: str, *, file: str = "") -> str:
    """Return `base` without a recipe.

    Raises:
        ConfigRejected: it has none of that name, or is too unusual.
    """
    page = Page.of(base, file)
    at = _place(page.root, name)
    if at is None:
        what = f"there is no recipe {name!r}"
        raise ConfigRejected(
            [Problem("recipes", what, file=file, line=1, code="unresolved_reference")]
        )
    recipes = _list_of(page.root)
    page.comments.forget(recipes[at])
    del recipes[at]
    if not recipes:
        page.comments.hand_down(page.root, "recipes", page.root, _next_key(page.root, "recipes"))
        del page.root["recipes"]
    return page.text()


def _checked(recipe: CommentedMap, name: str) -> CommentedMap:
    if not isinstance(recipe.get("routing"), CommentedMap):
        raise _refused("routing", "is missing or no mapping", "a recipe is its routing")
    if name and "name" not in recipe:
        recipe.insert(0, "name", DoubleQuotedScalarString(name))
    given = recipe.get("name")
    if not isinstance(given, str) or is_empty(given):
        raise _refused("name", "is missing", "a recipe is known by it")
    if name not in {"", given}:
        raise _refused("name", "is another one than that of the request", "")
    return recipe


def _refused(path: str, what: str, why: str) -> ConfigRejected:
    problem = Problem(path, what, why, file=_PATCH, line=1, code="invalid_document")
    return ConfigRejected([problem])


def _write_default(page: Page, fresh: CommentedMap) -> None:
    for key in fresh:
        if key not in {"name", "routing"}:
            raise _refused(str(key), "is no key of the default recipe", "it is the routing alone")
    routing, before = fresh["routing"], page.root.get("routing")
    if isinstance(before, CommentedMap):
        if _CARDS in before and _CARDS not in routing:
            routing.insert(0, _CARDS, before[_CARDS])
            page.comments.move((before, _CARDS), (routing, _CARDS))
            del before[_CARDS]
        page.comments.forget(before)
    page.root["routing"] = routing


def _place(root: CommentedMap, name: str) -> int | None:
    recipes = root.get("recipes")
    if not isinstance(recipes, CommentedSeq):
        return None
    for at, each in enumerate(recipes):
        if isinstance(each, CommentedMap) and str(each.get("name", "")) == name:
            return at
    return None


def _list_of(root: CommentedMap) -> CommentedSeq:
    recipes = root.get("recipes")
    if isinstance(recipes, CommentedSeq):
        if not recipes:
            recipes.fa.set_block_style()
        return recipes
    if "recipes" in root and not is_empty(recipes):
        raise _refused("recipes", "is no list in the document", "")
    fresh = CommentedSeq()
    root["recipes"] = fresh
    return fresh


def _next_key(root: CommentedMap, key: str) -> str | int:
    names = list(root)
    return next(iter(names[names.index(key) + 1 :]), TAIL)
