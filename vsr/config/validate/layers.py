"""The layers of a document that say something of calls, with their paths."""

from collections.abc import Iterator

from vsr.config.document.root import Document
from vsr.config.document.routing import RecipeRouting
from vsr.config.position import Path


def profiles_of(document: Document) -> Iterator[tuple[Path, RecipeRouting]]:
    """Return the routing of every recipe, the default one first."""
    yield ("routing",), document.routing
    for at, recipe in enumerate(document.recipes):
        yield ("recipes", at, "routing"), recipe.routing
