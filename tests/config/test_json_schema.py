"""Our schema against the reference's, key by key."""

import functools
import json
from collections.abc import Iterator, Mapping

import pytest

from tests.config.reference import reference_dir
from vsr.config.additions import ADDED_DEFINITIONS, ADDED_KEYS, ADDED_WORDS, WIDENED
from vsr.config.json_schema import json_schema
from vsr.config.position import Value

# The reference states few bounds and words; where it is silent, ours come from its prose.
OURS_MAY_ADD = {"default", "description", "enum", "maximum", "minimum"}


OURS = json_schema()


@functools.cache
def reference_schema() -> dict[str, Value]:
    """Return the reference's schema."""
    text = (reference_dir() / "router-config-v0.3.schema.json").read_text(encoding="utf-8")
    return json.loads(text)  # type: ignore[no-any-return]  # JSON


def definitions(schema: Mapping[str, Value]) -> dict[str, dict[str, Value]]:
    """Return the definitions by name, the root under the empty one."""
    defs = schema["$defs"]
    root = {key: schema[key] for key in ("type", "properties", "additionalProperties")}
    return {"": root, **defs}  # type: ignore[dict-item]  # a schema


def properties(definition: Mapping[str, Value]) -> dict[str, Value]:
    """Return the properties of a definition."""
    return definition["properties"]  # type: ignore[return-value]  # a schema


def whole(definition: Mapping[str, Value]) -> dict[str, Value]:
    """Return what a definition says apart from its properties."""
    return {key: value for key, value in definition.items() if key != "properties"}


def differences(ours: Value, theirs: Value, place: str) -> Iterator[str]:
    """Say where `ours` is not what `theirs` states."""
    if place in WIDENED:
        return
    if isinstance(ours, dict) and isinstance(theirs, dict):
        yield from _of_mappings(_telling(ours), _telling(theirs), place)
    elif isinstance(ours, list) and isinstance(theirs, list):
        added = ADDED_WORDS.get(place.removesuffix("/enum"), frozenset())
        if sorted(map(json.dumps, ours)) != sorted(map(json.dumps, [*theirs, *added])):
            yield f"{place}: {ours} is not {theirs}"
    elif ours != theirs:
        yield f"{place}: {ours!r} is not {theirs!r}"


def _of_mappings(ours: dict[str, Value], theirs: dict[str, Value], place: str) -> Iterator[str]:
    for key in {*ours, *theirs}:
        if key not in ours:
            yield f"{place}: {key} is missing"
        elif key in theirs:
            yield from differences(ours[key], theirs[key], f"{place}/{key}")
        elif key not in OURS_MAY_ADD:
            yield f"{place}: {key} is ours"


def _telling(schema: Mapping[str, Value]) -> dict[str, Value]:
    """Leave out what says nothing: prose, and that anything goes."""
    return {
        key: value
        for key, value in schema.items()
        if key != "description" and not (key == "additionalProperties" and value is True)
    }


def test_schema_defines_what_the_reference_defines() -> None:
    """Every definition, and no others but those listed."""
    ours, theirs = definitions(OURS), definitions(reference_schema())

    assert set(ours) - set(theirs) == ADDED_DEFINITIONS
    assert set(theirs) - set(ours) == set()


@pytest.mark.parametrize("name", sorted(set(definitions(OURS)) - ADDED_DEFINITIONS))
def test_definition_is_that_of_the_reference(name: str) -> None:
    """Names of properties, types, words and bounds where the reference states them, `required`."""
    ours = definitions(OURS)[name]
    theirs = definitions(reference_schema())[name]
    our_keys, their_keys = set(properties(ours)), set(properties(theirs))

    found = [
        difference
        for key in our_keys & their_keys
        for difference in differences(
            properties(ours)[key], properties(theirs)[key], f"{name}.{key}"
        )
    ]

    assert our_keys - their_keys == ADDED_KEYS.get(name, frozenset())
    assert their_keys <= our_keys
    assert found == []
    assert [*differences(whole(ours), whole(theirs), name)] == []


def test_additions_name_what_is_there() -> None:
    """An addition that the reference took up, or that we dropped, leaves the table."""
    ours, theirs = definitions(OURS), definitions(reference_schema())

    stale = {
        (name, key)
        for name, keys in ADDED_KEYS.items()
        for key in keys
        if key not in properties(ours[name]) or key in properties(theirs[name])
    }

    assert stale == set()


def test_every_reference_is_defined() -> None:
    """The schema stands on its own."""
    text = json.dumps(OURS)
    names = {part.partition('"')[0] for part in text.split('"#/$defs/')[1:]}

    assert names <= set(definitions(OURS))
