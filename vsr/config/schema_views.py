"""The JSON schema of the document in parts, so that nobody need read all of it to find one key.

Source of the words of the index: the `x-vllm-sr` member of the reference's schema.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import partial

import attrs
import msgspec

from vsr.config.checks import suggestion
from vsr.config.json_schema import Schema
from vsr.config.position import Value
from vsr.config.validate.declared import COLLECTIONS

CONTRACT = "vllm-sr/config-schema/v1"
_LAYERS = ("router", "services", "stores", "integrations", "model_catalog")
_INDEX = re.compile(r"\[[0-9]*\]")


class View(StrEnum):
    """What of the schema is wanted."""

    INDEX = "index"
    """What there is, and how to ask for it."""
    SECTION = "section"
    """What may stand at a path."""
    CATALOG = "catalog"
    """All of one kind, or one of them."""
    FULL = "full"


class Kind(StrEnum):
    """What a catalog is of."""

    SIGNAL = "signal"
    ALGORITHM = "algorithm"
    PLUGIN = "plugin"
    PROJECTION = "projection"
    GLOBAL_SECTION = "global_section"


class Wanted(msgspec.Struct, frozen=True):
    """A question about the schema."""

    view: View = View.INDEX
    path: str = ""
    """Of a section: `providers.models`; items of a list need no index."""
    kind: Kind | None = None
    name: str = ""
    """Of one of a catalog."""
    expanded: bool = False
    """Whether definitions that a part refers to come with it."""


class NoSuchPart(Exception):
    """The schema has no such part; `str` says which, and what it has."""


@attrs.frozen
class SchemaViews:
    """Answers questions about one schema."""

    schema: Schema

    def of(self, wanted: Wanted) -> Schema:
        """Return what is wanted, in plain values.

        Raises:
            NoSuchPart: there is no such path, kind or name.
        """
        match wanted.view:
            case View.FULL:
                return self.schema
            case View.SECTION:
                return self._section(wanted)
            case View.CATALOG:
                return self._catalog(wanted)
            case View.INDEX:
                return self._index()

    def _index(self) -> Schema:
        properties = _mapping(self.schema.get("properties"))
        sections = [{"path": key, **self._reference(each)} for key, each in properties.items()]
        return {
            "contract_version": CONTRACT,
            "config_version": "v0.3",
            "schema_endpoint": "/api/v1/config/schema",
            "validation": {
                "structural": "json-schema-draft-2020-12",
                "semantic": "router",
                "endpoint": "/api/v1/config/validate",
            },
            "views": [str(view) for view in View],
            "sections": list[Value](sections),
            **{f"{kind}s": list[Value](self._all_of(kind)) for kind in Kind},
        }

    def _section(self, wanted: Wanted) -> Schema:
        keys = [key for key in _INDEX.sub("", wanted.path).split(".") if key]
        if not keys:
            raise NoSuchPart("name the path of a section, as in path=providers.models")
        found: Schema = self.schema
        for at, key in enumerate(keys):
            members = self._members(found)
            if key not in members:
                above = ".".join(keys[:at]) or "the document"
                hint = suggestion(key, members) if members else "it has no keys of its own"
                raise NoSuchPart(f"{above} has no key {key!r}; {hint}")
            found = members[key]
        return self._told({"path": ".".join(keys)}, found, wanted)

    def _catalog(self, wanted: Wanted) -> Schema:
        if wanted.kind is None:
            kinds = ", ".join(Kind)
            raise NoSuchPart(f"name the kind of a catalog, one of {kinds}")
        entries = self._all_of(wanted.kind)
        if not wanted.name:
            return {"kind": str(wanted.kind), "entries": list[Value](entries)}
        key = "collection" if wanted.kind is Kind.PROJECTION else "type"
        key = "key" if wanted.kind is Kind.GLOBAL_SECTION else key
        for each in entries:
            if each[key] == wanted.name:
                found = self._target(each)
                return self._told({"kind": str(wanted.kind), **each}, found, wanted)
        names = ", ".join(str(each[key]) for each in entries)
        raise NoSuchPart(f"there is no {wanted.kind} {wanted.name!r}, only {names}")

    def _told(self, head: Schema, found: Schema, wanted: Wanted) -> Schema:
        part = found if "$ref" not in found else {**found, **self._target(found)}
        told: Schema = {**head, "schema": part}
        if wanted.expanded:
            told["$defs"] = self._definitions_under(part)
        return told

    def _all_of(self, kind: Kind) -> list[Schema]:
        found: Mapping[Kind, Callable[[], Iterator[Schema]]] = {
            Kind.SIGNAL: self._signals,
            Kind.ALGORITHM: self._algorithms,
            Kind.PLUGIN: self._plugins,
            Kind.PROJECTION: partial(self._collections, "CanonicalProjections"),
            Kind.GLOBAL_SECTION: self._global_sections,
        }
        return list(found[kind]())

    def _signals(self) -> Iterator[Schema]:
        types = {collection: kind for kind, collection in COLLECTIONS.items()}
        for each in self._collections("CanonicalSignals"):
            collection = str(each["collection"])
            yield {"type": types.get(collection, collection), **each}

    def _collections(self, definition: str) -> Iterator[Schema]:
        for key, part in self._properties(definition).items():
            item = _mapping(part.get("items"))
            if item:
                yield {"collection": key, **self._reference(item)}

    def _algorithms(self) -> Iterator[Schema]:
        properties = self._properties("AlgorithmConfig")
        for word in _list(properties["type"].get("enum")):
            field = str(word)
            block = properties.get(field, {})
            yield {
                "type": field,
                **({"config_field": field} if block else {}),
                **self._reference(block),
            }

    def _plugins(self) -> Iterator[Schema]:
        branches = _list(self._definition("DecisionPlugin").get("allOf"))
        for branch in map(_mapping, branches):
            kind = _mapping(_mapping(_mapping(branch["if"])["properties"])["type"])["const"]
            then = _mapping(_mapping(_mapping(branch["then"])["properties"])["configuration"])
            yield {"type": kind, **self._reference(then)}

    def _global_sections(self) -> Iterator[Schema]:
        layers = self._properties("CanonicalGlobal")
        for layer in _LAYERS:
            if layer == "router":
                yield _section(layer, (layer,), self._reference(layers[layer]))
                continue
            for key, part in self._members(layers[layer]).items():
                if key == "modules":
                    for module, below in self._members(part).items():
                        yield _section(layer, (layer, key, module), self._reference(below))
                else:
                    yield _section(layer, (layer, key), self._reference(part))

    def _members(self, part: Schema) -> Mapping[str, Schema]:
        """Return what may stand below a part by key; a list's items are looked through."""
        target = self._target(part)
        if "items" in target:
            return self._members(_mapping(target["items"]))
        values = target.get("additionalProperties")
        if isinstance(values, dict) and "properties" not in target:
            return self._members(values)
        return {key: _mapping(each) for key, each in _mapping(target.get("properties")).items()}

    def _properties(self, definition: str) -> dict[str, Schema]:
        properties = _mapping(self._definition(definition).get("properties"))
        return {key: _mapping(each) for key, each in properties.items()}

    def _definition(self, name: str) -> Schema:
        return _mapping(_mapping(self.schema["$defs"])[name])

    def _target(self, part: Schema) -> Schema:
        reference = part.get("$ref", part.get("schema_ref"))
        return self._definition(_name(reference)) if isinstance(reference, str) else part

    def _reference(self, part: Value) -> Schema:
        """Return what leads to the definition of a part, if it has one."""
        found = _mapping(part)
        reference = found.get("$ref", _mapping(found.get("items")).get("$ref"))
        return {"schema_ref": reference} if isinstance(reference, str) else {}

    def _definitions_under(self, part: Value) -> Schema:
        found: Schema = {}
        pending = list(_references(part))
        while pending:
            name = _name(pending.pop())
            if name not in found:
                found[name] = self._definition(name)
                pending += _references(found[name])
        return {name: found[name] for name in sorted(found)}


def _section(layer: str, path: tuple[str, ...], reference: Schema) -> Schema:
    return {"key": path[-1], "layer": layer, "path": list[Value](path), **reference}


def _references(part: Value) -> Iterator[str]:
    if isinstance(part, dict):
        for key, each in part.items():
            if key == "$ref" and isinstance(each, str):
                yield each
            yield from _references(each)
    elif isinstance(part, list):
        for each in part:
            yield from _references(each)


def _name(reference: str) -> str:
    return reference.removeprefix("#/$defs/")


def _mapping(value: Value) -> Schema:
    return value if isinstance(value, dict) else {}


def _list(value: Value) -> list[Value]:
    return value if isinstance(value, list) else []
