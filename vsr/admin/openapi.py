"""The OpenAPI document of the management API, made of its routes and the classes of its bodies."""

import re
from collections.abc import Iterable

import msgspec

from vsr.admin.answer import ErrorBody
from vsr.admin.routes import Route
from vsr.admin.shapes import RollbackBody

_REF = "#/components/schemas/{name}"
_NAMES = re.compile(r"\{(\w+)\}")
_BODY_ERRORS = {
    400: "The body is not acceptable.",
    408: "The body did not come in time.",
    413: "The body is too large.",
}
_WRITE_ERRORS = {
    400: "The document is not valid, or this version does not serve it.",
    409: "Another change is in progress, or the document changed, or a restart is needed.",
    412: "The document is another one than If-Match says.",
    428: "If-Match is missing.",
    500: "The document, or what it replaces, cannot be read, looked at or written.",
}
_AUTH_ERRORS = {
    401: "No token of the API was sent.",
    403: "The role does not permit it, or a web page asks.",
}
_NOT_FOUND = "There is nothing of that name."


def openapi_document(
    routes: Iterable[Route], release: str, *, asks_token: bool
) -> dict[str, object]:
    """Return the document, version 3.1, in plain values.

    Args:
        routes: all endpoints.
        release: of the Router.
        asks_token: whether the API is only asked with one.
    """
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
        "security": [{"bearer": []}] if asks_token else [{}, {"bearer": []}],
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
    if not route.is_available:
        found["x-available"] = False
    return found


def _operation_id(route: Route) -> str:
    path = _NAMES.sub(r"\1", route.path.removeprefix("/api/v1"))
    words = path.replace(".", "/").replace("-", "/").split("/")
    return "_".join([route.method.lower(), *filter(None, words)])


def _parameters(route: Route) -> list[dict[str, object]]:
    text: dict[str, object] = {"type": "string", "minLength": 1}
    found = [
        _parameter(name, "path", "as the document has it", text)
        for name in _NAMES.findall(route.path)
    ]
    found += [_parameter(each.name, "query", each.text, dict(each.schema)) for each in route.query]
    if route.has_precondition:
        told = "ETag of the document that is to be changed, or *"
        found.append(_parameter("If-Match", "header", told, {"type": "string"}))
    return found


def _parameter(name: str, place: str, text: str, schema: dict[str, object]) -> dict[str, object]:
    return {
        "name": name,
        "in": place,
        "required": place != "query",
        "description": text,
        "schema": schema,
    }


def _responses(route: Route) -> dict[str, object]:
    found: dict[str, object] = {}
    for status, kind in route.answers.items():
        found[str(status)] = {"description": route.summary, "content": _content(kind)}
    error = {"application/json": {"schema": {"$ref": _REF.format(name="ErrorBody")}}}
    for status, text in sorted(_errors(route).items()):
        found.setdefault(str(status), {"description": text, "content": error})
    return found


def _errors(route: Route) -> dict[int, str]:
    errors = dict(_AUTH_ERRORS) if route.permission else {403: "A web page of another origin asks."}
    if route.body is not None:
        errors |= _BODY_ERRORS
    errors |= route.errors
    if route.query:
        errors |= {400: "The query is not acceptable."}
    if route.is_named:
        errors |= {404: _NOT_FOUND}
    if route.has_precondition:
        errors |= _WRITE_ERRORS
    elif route.reads_document:
        errors |= {500: "The document or its history cannot be read."}
    if not route.is_available:
        errors |= {503: "This version does not have it."}
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
    if rollback := components.get(RollbackBody.__name__):
        # One of its members, which msgspec has no way to say.
        alone = [{"required": [each.name]} for each in msgspec.structs.fields(RollbackBody)]
        assert isinstance(rollback, dict)  # noqa: S101  # as every schema of a struct
        rollback["oneOf"] = alone
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
