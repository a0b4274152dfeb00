"""Which endpoints a path has: `/a/b`, or `/a/{name}` for any one segment."""

from collections.abc import Iterable, Mapping
from urllib.parse import unquote

import attrs
import msgspec

from vsr.admin.routes import Route

_ANY = "{"


class Found(msgspec.Struct, frozen=True):
    """What a path leads to."""

    routes: Mapping[str, Route]
    """By method; empty: there is no such path."""
    parameters: Mapping[str, str] = {}
    """What stands in the place of names of the template."""


@attrs.frozen
class Paths:
    """The endpoints of the API by path; one that is written out hides a template.

    Source: OpenAPI 3.1, Paths Object, path templating matching.
    """

    exact: Mapping[str, dict[str, Route]]
    templates: tuple[tuple[tuple[str, ...], dict[str, Route]], ...]

    @classmethod
    def of(cls, routes: Iterable[Route]) -> "Paths":
        """Return the paths of endpoints."""
        found: dict[str, dict[str, Route]] = {}
        for route in routes:
            found.setdefault(route.path, {})[route.method] = route
        templates = tuple(
            (tuple(path.split("/")), methods) for path, methods in found.items() if _ANY in path
        )
        return cls({path: each for path, each in found.items() if _ANY not in path}, templates)

    def find(self, path: str) -> Found:
        """Return what a path leads to, as it was sent: escapes stand for what they mean.

        An escaped slash parts no segments. Source: RFC 3986, section 6.2.2.2.
        """
        segments = [unquote(each, errors="replace") for each in path.split("/")]
        if all("/" not in each for each in segments):
            routes = self.exact.get("/".join(segments))
            if routes is not None:
                return Found(routes)
        for template, methods in self.templates:
            match = _match(template, segments)
            if match is not None:
                return Found(methods, match)
        return Found({})


def _match(template: tuple[str, ...], segments: list[str]) -> dict[str, str] | None:
    if len(template) != len(segments):
        return None
    found: dict[str, str] = {}
    for expected, given in zip(template, segments, strict=True):
        if expected.startswith(_ANY):
            if not given:
                return None
            found[expected.strip("{}")] = given
        elif expected != given:
            return None
    return found
