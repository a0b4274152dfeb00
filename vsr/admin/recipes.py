"""Recipes of the document, one by one: read, written and taken away as the whole document is.

Source of paths and audit actions: standalone-mode 5.4, phases-and-plugins 11.3; of what a recipe
holds: config-document 9.
"""

import attrs
import msgspec

from vsr.admin.answer import JSON, Answer, Refusal, told
from vsr.admin.call import Call
from vsr.admin.config_reads import ConfigReads, Read
from vsr.admin.config_writes import Change, ConfigWrites, origin_of, refuse, text_of
from vsr.admin.shapes import RecipeEntry, RecipeList
from vsr.config.attempt import Code
from vsr.config.history import Document
from vsr.config.inspection import Inspect, Inspected
from vsr.config.names import DEFAULT_RECIPE
from vsr.config.origin import OriginSource


class _Entrypoint(msgspec.Struct, frozen=True):
    model_names: tuple[str, ...] = ()
    recipe: str = ""


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _Routing(msgspec.Struct, frozen=True):
    decisions: tuple[_Named, ...] = ()


class _Recipe(msgspec.Struct, frozen=True):
    name: str
    routing: msgspec.Raw = msgspec.Raw(b"{}")
    description: str = ""


class _Document(msgspec.Struct, frozen=True):
    routing: msgspec.Raw = msgspec.Raw(b"{}")
    recipes: tuple[_Recipe, ...] = ()
    entrypoints: tuple[_Entrypoint, ...] = ()

    def all(self) -> list[_Recipe]:
        """Return every recipe, the default one first unless it is written among the others."""
        if any(each.name == DEFAULT_RECIPE for each in self.recipes):
            return list(self.recipes)
        return [_Recipe(DEFAULT_RECIPE, self.routing), *self.recipes]


class _Shown(msgspec.Struct, frozen=True):
    """A `RecipeView` whose routing was not taken apart."""

    name: str
    description: str
    routing: msgspec.Raw


@attrs.frozen
class Recipes:
    """Handlers about recipes."""

    reads: ConfigReads
    writes: ConfigWrites

    async def all(self, call: Call) -> Answer:
        """Answer `GET /api/v1/config/recipes`."""
        read = await self.reads.read(call)
        document = _decoded(read)
        entries = tuple(_entry(each, document) for each in document.all())
        return told(RecipeList(entries), lines=read.lines)

    async def one(self, call: Call) -> Answer:
        """Answer `GET /api/v1/config/recipes/{name}`."""
        read = await self.reads.read(call)
        name = call.parameters["name"]
        for each in _decoded(read).all():
            if each.name == name:
                body = msgspec.json.encode(_Shown(each.name, each.description, each.routing))
                return Answer(200, body + b"\n", JSON, read.lines)
        raise _unknown(name)

    async def save(self, call: Call) -> Answer:
        """Answer `PUT /api/v1/config/recipes/{name}`."""
        return await self._edit(call, text_of(call))

    async def delete(self, call: Call) -> Answer:
        """Answer `DELETE /api/v1/config/recipes/{name}`."""
        return await self._edit(call, b"")

    async def validate(self, call: Call) -> Answer:
        """Answer `POST /api/v1/config/recipes/validate`."""
        return await self.reads.validate_recipe(call, text_of(call))

    async def _edit(self, call: Call, text: bytes) -> Answer:
        name = call.parameters["name"]

        async def edited(current: bytes) -> Change:
            question = Inspect(text, base=current, recipe=name, compares=False)
            inspected, checked = await self.writes.configuration.examine(question)
            if not text and _is_missing(inspected):
                raise _unknown(name)
            refuse(inspected.reasons, "CONFIG_VALIDATION_ERROR")
            origin = origin_of(call, OriginSource.API)
            return Change(Document(inspected.candidate), origin, checked=checked)

        return await self.writes.in_turn(call, edited)


def _is_missing(inspected: Inspected) -> bool:
    """Return whether there is no such recipe: the document itself was not looked at."""
    return any(
        each.code is Code.UNRESOLVED_REFERENCE and each.path == "recipes"
        for each in inspected.reasons
    )


def _unknown(name: str) -> Refusal:
    message = f"The document has no recipe {name!r}."
    if name == DEFAULT_RECIPE:
        message = "The default recipe is the document's own routing, which stays."
    return Refusal(404, "RECIPE_NOT_FOUND", message)


def _decoded(read: Read) -> _Document:
    return msgspec.json.decode(read.json, type=_Document)


def _entry(recipe: _Recipe, document: _Document) -> RecipeEntry:
    routing = msgspec.json.decode(recipe.routing, type=_Routing)
    names = [
        name
        for each in document.entrypoints
        if (each.recipe or DEFAULT_RECIPE) == recipe.name
        for name in each.model_names
    ]
    return RecipeEntry(
        recipe.name,
        recipe.description,
        tuple(each.name for each in routing.decisions),
        tuple(names),
        default=recipe.name == DEFAULT_RECIPE,
    )
