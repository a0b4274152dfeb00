"""The JSON schema of the document, in parts. Source of path and query: phases-and-plugins 11.3."""

from typing import TypeVar

import attrs

from vsr.admin.answer import Answer, Invalid, Refusal, told
from vsr.admin.call import Call
from vsr.config.json_schema import json_schema
from vsr.config.schema_views import Kind, NoSuchPart, SchemaViews, View, Wanted

_Word = TypeVar("_Word", Kind, View)
_SWITCH = {"": False, "false": False, "0": False, "true": True, "1": True}


@attrs.define(eq=False)
class SchemaReads:
    """Handlers about the schema."""

    _views: SchemaViews | None = attrs.field(default=None, init=False)
    """Made for the first who asks."""

    async def schema(self, call: Call) -> Answer:  # noqa: ASYNC124  # as the others are
        """Answer `GET /api/v1/config/schema`."""
        wanted = _wanted(call.query)
        if self._views is None:
            self._views = SchemaViews(json_schema())
        try:
            return told(self._views.of(wanted))
        except NoSuchPart as error:
            raise Refusal(404, "NOT_FOUND", f"{error}.") from None


def _wanted(query: dict[str, str]) -> Wanted:
    """Return what is asked for; a path or a kind says by itself which view it belongs to.

    Raises:
        Invalid: a member of the query is none of its words.
    """
    path, name = query.get("path", ""), query.get("name", "")
    kind = _word(Kind, query, "kind")
    view = _word(View, query, "view")
    if view is None:
        view = View.SECTION if path else View.INDEX if kind is None else View.CATALOG
    expanded = _SWITCH.get(query.get("expanded", "").lower())
    if expanded is None:
        raise Invalid("expanded must be true or false.")
    return Wanted(view, path, kind, name, expanded)


def _word(words: type[_Word], query: dict[str, str], key: str) -> _Word | None:
    given = query.get(key, "")
    if not given:
        return None
    try:
        return words(given)
    except ValueError:
        raise Invalid(f"{key} must be one of {', '.join(words)}.") from None
