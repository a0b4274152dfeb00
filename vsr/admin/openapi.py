"""The OpenAPI document of the management API, made of its routes and the classes of its bodies."""

import re
from collections.abc import Iterable

import msgspec

from vsr.admin.answer import ErrorBody
from vsr.admin.routes import Route

_NAMES = re.compile(r"\{(\w+)\}")
_REF = "#/components/schemas/{name}"
_ERROR = {"$ref": _REF.format(name="ErrorBody")}
_BODY_ERRORS = {400: "The body is not acceptable.", 413: "The body is too large."}
_WRITE_ERRORS = {
    409: "Another change is in progress, or the document changed, or a restart is needed.",
    412: "The document is another one than If-Match says.",
    428: "If-Match is missing.",
    500: "The document cannot be read or written.",
}
_AUTH_ERRORS = {401: "No token of the API was sent.", 403: "The role does not permit it."}


def openapi_document(routes: Iterable[Route], release: str) -> dict[str, object]:
    """Return the document, version 3.1, in plain values."""
    routes = list(routes)
    paths: dict[str, dict[str, object]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "vllm-sr management API",
            "version": release,
            "description": "Configuration, status and drain of a Router that serves.",
        },
        "paths": paths,
        "components": {
            "schemas": _schemas(routes),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"bearer": []}],
    }


def _operation(route: Route) -> dict[str, object]:
    found: dict[str, object] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "responses": _responses(route),
    }
    if parameters := _parameters(route):
        found["parameters"] = parameters
    if route.body is not None:
        content = {"application/json": {"schema": {"$ref": _REF.format(name=route.body.__name__)}}}
        found["requestBody"] = {"required": True, "content": content}
    if not route.permission:
        found["security"] = []
    else:
        found["x-permission"] = route.permission
    return found


def _operation_id(route: Route) -> str:
    path = _NAMES.sub(r"\1", route.path.removeprefix("/api/v1"))
    words = path.replace(".", "/").split("/")
    return "_".join([route.method.lower(), *filter(None, words)])


def _parameters(route: Route) -> list[dict[str, object]]:
    found: list[dict[str, object]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": "as it was told",
            "schema": {"type": "string", "minLength": 1},
        }
        for name in _NAMES.findall(route.path)
    ]
    found += [
        {
            "name": each.name,
            "in": "query",
            "required": False,
            "description": each.text,
            "schema": {"type": each.type},
        }
        for each in route.query
    ]
    if route.has_precondition:
        text = "ETag of the document that is to be changed, or *"
        found.append(
            {
                "name": "If-Match",
                "in": "header",
                "required": True,
                "description": text,
                "schema": {"type": "string"},
            }
        )
    return found


def _responses(route: Route) -> dict[str, object]:
    found: dict[str, object] = {}
    for status, kind in route.answers.items():
        found[str(status)] = {"description": route.summary, "content": _content(kind)}
    for status, text in _errors(route).items():
        content = {"application/json": {"schema": _ERROR}}
        found.setdefault(str(status), {"description": text, "content": content})
    return found


def _errors(route: Route) -> dict[int, str]:
    errors = dict(_AUTH_ERRORS) if route.permission else {403: "A web page of another origin asks."}
    if route.body is not None:
        errors |= _BODY_ERRORS
    if route.query:
        errors[400] = "The query is not acceptable."
    if "{" in route.path:
        errors[404] = "There is nothing of that name."
    if route.has_precondition:
        errors |= _WRITE_ERRORS
        errors[404] = "The history has no such version."
    elif "/config" in route.path:
        errors[500] = "The document or its history cannot be read."
    return errors


def _content(kind: object) -> dict[str, object]:
    if isinstance(kind, str):
        return {kind: {"schema": {"type": "string"}}}
    if kind is object:
        return {"application/json": {"schema": {"type": "object"}}}
    ((schema,), _) = _components([kind])
    return {"application/json": {"schema": schema}}


def _schemas(routes: Iterable[Route]) -> dict[str, object]:
    kinds: list[object] = [ErrorBody]
    for route in routes:
        kinds += [kind for kind in route.answers.values() if kind is not object]
        kinds += [] if route.body is None else [route.body]
    kinds = [kind for kind in kinds if not isinstance(kind, str)]
    _, components = _components(kinds)
    return components


def _components(kinds: Iterable[object]) -> tuple[tuple[object, ...], dict[str, object]]:
    schemas, components = msgspec.json.schema_components(
        kinds, schema_hook=_schema_of, ref_template=_REF
    )
    return schemas, components


def _schema_of(kind: type) -> dict[str, object]:
    """Return the schema of what may be any value."""
    if kind is object:
        return {"description": "Any value."}
    raise NotImplementedError
