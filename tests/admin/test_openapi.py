"""The OpenAPI document: it says of every endpoint what the endpoint does."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.fakes.configuration import TEXT, Desk, detail, record
from vsr.config.attempt import AttemptStatus
from vsr.config.history import Document
from vsr.config.inspection import Inspected

DOCUMENT = b'{"routing": {}, "recipes": [{"name": "{name}", "routing": {"decisions": []}}]}'
BODIES: dict[str, dict[str, object]] = {
    "TextBody": {"yaml": "a: 1"},
    "ValidateBody": {"yaml": "a: 1", "compare_to_active": True},
    "PlanBody": {"yaml": "a: 1", "mode": "replace"},
    "RollbackBody": {"config_version": 3},
}


RECORD = "20260103-000000"


@pytest.fixture
def desk() -> Desk:
    """Return one with a history."""
    desk = Desk()
    desk.configuration.inspected = Inspected(b"", json=msgspec.Raw(DOCUMENT), changes=())
    desk.configuration.history = {
        each: (record(version, each), Document(TEXT))
        for version, each in ((3, RECORD), (2, "20260102-000000"))
    }
    desk.serving.details = [detail(RECORD)]
    return desk


async def document_of(desk: Desk) -> dict[str, Any]:
    """Return the document that is served."""
    document: dict[str, Any] = (await desk.ask("GET", "/openapi.json")).json()
    return document


async def test_document_has_every_endpoint(desk: Desk) -> None:
    """And no other."""
    document = await document_of(desk)

    told = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    assert document["openapi"] == "3.1.0"
    assert told == {(route.method, route.path) for route in desk.app.routes}
    ids = [each["operationId"] for _, _, each in operations(document)]
    assert len(ids) == len(set(ids))


async def test_references_lead_somewhere(desk: Desk) -> None:
    """All of them."""
    document = await document_of(desk)
    names = set(document["components"]["schemas"])

    found = {each.removeprefix("#/components/schemas/") for each in references(document)}

    assert found == names


async def test_answers_are_as_the_document_says(desk: Desk) -> None:
    """Every endpoint is asked in a good way; status and body are among what is announced."""
    document = await document_of(desk)

    for method, path, operation in operations(document):
        got = await desk.ask(method, path, body_for(operation), if_match="*")
        is_missing = operation.get("x-available") is False
        assert got.status == 503 if is_missing else got.status < 300, path
        check(got.status, got.body, operation, document)


async def test_refusals_are_as_the_document_says(desk: Desk) -> None:
    """Whatever is wrong: no body, no precondition, no file, a change that is refused."""
    document = await document_of(desk)
    desk.configuration.ends = AttemptStatus.FAILED

    for method, path, operation in operations(document):
        for body, if_match in (
            (b"nonsense", "*"),
            (body_for(operation), ""),
            (body_for(operation), '"x"'),
            (body_for(operation), "*"),
        ):
            got = await desk.ask(method, path, body, if_match=if_match)
            check(got.status, got.body, operation, document)
        got = await desk.ask(method, f"{path}?limit=nonsense")
        check(got.status, got.body, operation, document)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield method, path with its names filled in, and operation."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield (
                method.upper(),
                path.format(model="small", endpoint="one", name="{name}", id=RECORD),
                operation,
            )


def body_for(operation: dict[str, Any]) -> object:
    """Return a body that an operation takes."""
    if "requestBody" not in operation:
        return b""
    reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    return BODIES[reference.rpartition("/")[2]]


def references(value: object) -> Iterator[str]:
    """Yield every reference in a value."""
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref":
                yield item
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def check(status: int, body: bytes, operation: dict[str, Any], document: dict[str, Any]) -> None:
    """Check an answer against what an operation announces."""
    assert str(status) in operation["responses"], (operation["operationId"], status)
    content = operation["responses"][str(status)]["content"]
    if "application/json" in content:
        schema = content["application/json"]["schema"]
        assert_fits(json.loads(body), schema, document["components"]["schemas"], "$")


def assert_fits(value: object, schema: dict[str, Any], schemas: dict[str, Any], path: str) -> None:
    """Check a value against the part of JSON schema that the document uses."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        fits = [each for each in schema["anyOf"] if type_fits(value, each, schemas)]
        assert fits, (path, value)
        assert_fits(value, fits[0], schemas, path)
        return
    assert type_fits(value, schema, schemas), (path, value, schema)
    assert value in schema.get("enum", [value]), (path, value)
    if isinstance(value, dict):
        assert set(schema.get("required", ())) <= set(value), path
        for key, item in value.items():
            inner = schema.get("properties", {}).get(key) or schema.get("additionalProperties")
            if inner is None and "properties" not in schema:
                continue
            assert inner is not None, f"{path}.{key} is not announced"
            assert_fits(item, inner, schemas, f"{path}.{key}")
    if isinstance(value, list) and "items" in schema:
        for at, item in enumerate(value):
            assert_fits(item, schema["items"], schemas, f"{path}[{at}]")


def type_fits(value: object, schema: dict[str, Any], schemas: dict[str, Any]) -> bool:
    """Return whether a value is of a schema's type."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    kinds: dict[str, type | tuple[type, ...]] = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "integer": int,
        "number": (int, float),
        "null": type(None),
    }
    return "type" not in schema or isinstance(value, kinds[schema["type"]])
