"""The JSON schema of the document, made from its classes."""

import types
from collections.abc import Mapping
from typing import Annotated, Literal, Union, cast, get_args, get_origin

from vsr.config.document import store_backends
from vsr.config.document.decision_plugin import PLUGIN_CONFIGURATIONS, DecisionPlugin
from vsr.config.document.kinds import (
    AutoValue,
    Bounds,
    DurationText,
    MinLength,
    PairValue,
    PeriodValue,
    TokenCountValue,
)
from vsr.config.document.objects import DocumentObject, Field, fields_of
from vsr.config.document.root import Document
from vsr.config.document.router_settings import RouterLearningStateStoreConfig
from vsr.config.position import Value

Schema = dict[str, Value]

DEFINITION_NAMES: Mapping[str, str] = {
    "Algorithm": "AlgorithmConfig",
    "BackendRef": "CanonicalBackendRef",
    "CategoryModule": "CanonicalCategoryModule",
    "ClassifierModule": "CanonicalClassifierModule",
    "DataPolicy": "RoutingDataPolicy",
    "Distribution": "ModelDistribution",
    "DomainRule": "Category",
    "EmbeddingCatalog": "CanonicalEmbeddingModels",
    "Entrypoint": "CanonicalEntrypoint",
    "Evaluation": "CanonicalEvaluation",
    "EvaluationRecord": "CanonicalEvaluationRecord",
    "ExplainerModule": "CanonicalExplainerModule",
    "FactCheckModule": "CanonicalFactCheckModule",
    "FeedbackDetectorModule": "CanonicalFeedbackDetectorModule",
    "Global": "CanonicalGlobal",
    "HallucinationDetector": "CanonicalHallucinationDetector",
    "HallucinationModule": "CanonicalHallucinationModule",
    "Integrations": "CanonicalIntegrationGlobal",
    "ModelCard": "RoutingModel",
    "ModelCatalog": "CanonicalModelCatalog",
    "ModelModules": "CanonicalModelModules",
    "PIIModule": "CanonicalPIIModule",
    "Presentation": "ProviderPresentation",
    "Pricing": "ModelPricing",
    "Projections": "CanonicalProjections",
    "PromptGuardModule": "CanonicalPromptGuardModule",
    "ProviderDefaults": "CanonicalProviderDefaults",
    "ProviderModel": "CanonicalProviderModel",
    "Providers": "CanonicalProviders",
    "Reasoning": "CanonicalReasoning",
    "Recipe": "CanonicalRecipe",
    "RecipeRouting": "CanonicalRecipeRouting",
    "Reliability": "ProviderReliability",
    "RouterSettings": "CanonicalRouterGlobal",
    "Routing": "CanonicalRouting",
    "Services": "CanonicalServiceGlobal",
    "Signals": "CanonicalSignals",
    "Stores": "CanonicalStoreGlobal",
    "StreamedBody": "CanonicalStreamedBody",
    "SystemModels": "CanonicalSystemModels",
}
"""The canonical name of a definition, by class; others have the name of their class."""

_NAMED_BACKENDS = frozenset({"MilvusConfig", "QdrantConfig", "RedisConfig", "ValkeyConfig"})
_SCALARS: Mapping[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def json_schema() -> Schema:
    """Return the schema of the whole document, draft 2020-12."""
    definitions: dict[str, Value] = {}
    root = _object(Document, definitions)
    properties = root["properties"]
    if isinstance(properties, dict):
        properties["version"] = {"type": "string", "const": "v0.3"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://vllm-sr.ai/schemas/router-config-v0.3.schema.json",
        "title": "vLLM Semantic Router configuration, version v0.3",
        **root,
        "$defs": {name: definitions[name] for name in sorted(definitions)},
    }


def definition_name(cls: type) -> str:
    """Return the name under which the schema defines a class of the document."""
    return DEFINITION_NAMES.get(cls.__name__, cls.__name__)


def _object(cls: type[DocumentObject], definitions: dict[str, Value]) -> Schema:
    properties: dict[str, Value] = {}
    required: list[str] = []
    for key, field in fields_of(cls).items():
        properties[key] = {**_schema(field.kind, definitions), **_default(field)}
        if field.is_required:
            required.append(key)
    schema: Schema = {
        "type": "object",
        "description": (cls.__doc__ or "").partition("\n")[0],
        "properties": properties,
        "additionalProperties": False,
    }
    if required:
        schema["required"] = list[Value](required)
    if cls is DecisionPlugin:
        _add_configurations(schema, properties, definitions)
    if cls is RouterLearningStateStoreConfig:
        schema["allOf"] = [_if_word("backend", "redis", {"required": ["redis"]})]
    return schema


def _default(field: Field) -> Schema:
    if field.schema_default is not None:
        return {"default": cast("Value", field.schema_default.value)}
    value = field.default
    if value is False or value == "" or not isinstance(value, bool | int | float | str):
        return {}
    return {"default": value}


def _add_configurations(
    schema: Schema, properties: dict[str, Value], definitions: dict[str, Value]
) -> None:
    """The type of a plugin decides the definition of its configuration."""
    properties["type"] = {"type": "string", "enum": list[Value](sorted(PLUGIN_CONFIGURATIONS))}
    properties["configuration"] = {"type": "object", "additionalProperties": True}
    schema["allOf"] = [
        _if_word("type", kind, {"properties": {"configuration": _reference(cls, definitions)}})
        for kind, cls in PLUGIN_CONFIGURATIONS.items()
    ]


def _if_word(key: str, word: str, then: Schema) -> Schema:
    condition: Schema = {
        "properties": {key: {"const": word}},
        "required": list[Value]([key]),
    }
    return {"if": condition, "then": then}


def _schema(kind: object, definitions: dict[str, Value]) -> Schema:
    if kind is object:
        return {}
    if kind in _SCALARS:
        return {"type": _SCALARS[kind]}
    if isinstance(kind, type) and issubclass(kind, DocumentObject):
        is_inline = kind.__module__ == store_backends.__name__
        if is_inline and kind.__name__ not in _NAMED_BACKENDS:
            return _object(kind, definitions)
        return _reference(kind, definitions)
    return _generic(get_origin(kind), get_args(kind), definitions)


def _reference(cls: type[DocumentObject], definitions: dict[str, Value]) -> Schema:
    name = definition_name(cls)
    if name not in definitions:
        # First a place, since classes refer to themselves.
        definitions[name] = None
        definitions[name] = _object(cls, definitions)
    return {"$ref": f"#/$defs/{name}"}


def _generic(
    origin: object, arguments: tuple[object, ...], definitions: dict[str, Value]
) -> Schema:
    if origin is Annotated:
        return _marked(arguments[0], arguments[1], definitions)
    if origin in {types.UnionType, Union}:
        inner = [argument for argument in arguments if argument is not types.NoneType]
        return _schema(inner[0], definitions)
    if origin is Literal:
        return {"type": "string", "enum": [str(word) for word in arguments]}
    if origin is tuple:
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if arguments[1] is object:
        return {"type": "object", "additionalProperties": True}
    return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}


def _marked(kind: object, marker: object, definitions: dict[str, Value]) -> Schema:
    match marker:
        case Bounds(minimum, maximum):
            bounds = {"minimum": minimum, "maximum": maximum}
            given = {key: bound for key, bound in bounds.items() if bound is not None}
            schema: Schema = {**_schema(kind, definitions), **given}
        case MinLength(characters):
            schema = {"type": "string", "minLength": characters}
        case PeriodValue():
            schema = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
        case AutoValue(minimum):
            number: Schema = {"type": "integer", "minimum": minimum}
            schema = {"oneOf": [number, {"type": "string", "const": "auto"}]}
        case PairValue():
            schema = {**_schema(kind, definitions), "minItems": 2, "maxItems": 2}
        case TokenCountValue():
            schema = {"type": list[Value](["string", "number"])}
        case DurationText():
            schema = {"type": "string"}
        case _:
            raise TypeError(f"no schema for {marker!r}")
    return schema
