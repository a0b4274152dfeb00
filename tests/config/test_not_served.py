"""The served and the known, against the reference's schema."""

import json

import attrs
import pytest

from tests.config.reference import reference_dir
from vsr.config import document
from vsr.config.document import Document, key_of
from vsr.config.not_served import NOT_SERVED_KEYS, NOT_SERVED_VALUES, RENAMED_KEYS

SCHEMA_NAMES = {
    document.Listener: "Listener",
    document.BackendRef: "CanonicalBackendRef",
    document.Reliability: "ProviderReliability",
    document.ProviderModel: "CanonicalProviderModel",
    document.ProviderDefaults: "CanonicalProviderDefaults",
    document.Providers: "CanonicalProviders",
    document.ModelCard: "RoutingModel",
    document.Presentation: "ProviderPresentation",
    document.Distribution: "ModelDistribution",
    document.Modalities: "Modalities",
    document.KeywordRule: "KeywordRule",
    document.ContextRule: "ContextRule",
    document.Signals: "CanonicalSignals",
    document.RuleNode: "RuleNode",
    document.ModelRef: "ModelRef",
    document.Algorithm: "AlgorithmConfig",
    document.Decision: "Decision",
    document.Routing: "CanonicalRouting",
    document.RouterSettings: "CanonicalRouterGlobal",
    document.Global: "CanonicalGlobal",
    Document: None,
}
OURS = {"Listener": {"max_body_bytes", "max_connections"}}
# Documented for standalone mode, newer than the schema.
NEWER = {"Reliability": {"connect_timeout", "total_timeout", "idle_timeout"}}


def served_keys(cls: type[attrs.AttrsInstance]) -> set[str]:
    """Return the keys that a class of the document takes."""
    return {key_of(field.name) for field in attrs.fields(cls)}


@pytest.mark.parametrize("cls", SCHEMA_NAMES, ids=lambda cls: cls.__name__)
def test_every_canonical_key_is_served_or_refused_by_name(
    cls: type[attrs.AttrsInstance],
) -> None:
    """Nothing of the canonical document is taken for a typing error, and nothing is made up."""
    schema = json.loads((reference_dir() / "router-config-v0.3.schema.json").read_text())
    definition = SCHEMA_NAMES[cls]
    canonical = set((schema["$defs"][definition] if definition else schema)["properties"])
    name = cls.__name__
    not_served = NOT_SERVED_KEYS.get(name, frozenset())

    served = served_keys(cls)

    assert canonical <= served | not_served
    assert served <= canonical | OURS.get(name, set()) | NEWER.get(name, set())


def test_every_canonical_word_of_rules_and_algorithms_is_known() -> None:
    """Signal and algorithm types of the schema are refused by name too."""
    definitions = json.loads((reference_dir() / "router-config-v0.3.schema.json").read_text())[
        "$defs"
    ]

    types = set(definitions["RuleNode"]["properties"]["type"]["enum"])
    algorithms = set(definitions["AlgorithmConfig"]["properties"]["type"]["enum"])

    assert types == NOT_SERVED_VALUES["RuleNode.type"] | {"keyword", "context"}
    assert algorithms <= NOT_SERVED_VALUES["Algorithm.type"] | {"static"}


def test_tables_name_classes_and_fields_of_the_document() -> None:
    """A renamed class would silently turn its refusals into `unknown key`."""
    classes = {cls.__name__: cls for cls in SCHEMA_NAMES}

    assert set(NOT_SERVED_KEYS) | set(RENAMED_KEYS) <= set(classes)
    for name, keys in NOT_SERVED_KEYS.items():
        assert not keys & served_keys(classes[name])
    for field in NOT_SERVED_VALUES:
        name, _, key = field.partition(".")
        assert key in served_keys(classes[name])
