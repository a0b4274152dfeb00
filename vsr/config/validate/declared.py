"""What one recipe declares: the names that its rules and projections may use."""

from collections.abc import Collection, Mapping

import msgspec

from vsr.config.document.graphs import Graph
from vsr.config.document.model_catalog import KnowledgeBaseConfig, ModelCatalog
from vsr.config.document.routing import RecipeRouting
from vsr.config.document.signals_learned import ClassifierSignalRule
from vsr.config.position import Path

BUILT_IN_KBS = ("privacy_kb", "mmlu_kb")
"""Knowledge bases that a document need not declare. Source: the reference."""

COLLECTIONS: Mapping[str, str] = {
    "authz": "role_bindings",
    "classifier": "classifiers",
    "complexity": "complexity",
    "context": "context",
    "conversation": "conversation",
    "domain": "domains",
    "embedding": "embeddings",
    "event": "events",
    "fact_check": "fact_check",
    "input_modality": "input_modality",
    "jailbreak": "jailbreak",
    "kb": "kb",
    "keyword": "keywords",
    "language": "language",
    "metadata": "metadata",
    "modality": "modality",
    "pii": "pii",
    "preference": "preferences",
    "reask": "reasks",
    "safety": "safety",
    "structure": "structure",
    "user_feedback": "user_feedbacks",
}
"""Collection of `routing.signals` by the type of its leaves."""


class Declared(msgspec.Struct, frozen=True):
    """The names of one recipe; a closed namespace."""

    path: Path
    """Of the recipe's routing."""
    by_type: Mapping[str, Collection[str]]
    outputs: frozenset[str]
    """Of projection mappings."""
    classifiers: Mapping[str, ClassifierSignalRule]
    calibrated: frozenset[str]
    """Classifiers whose binding brings a threshold for every label."""
    graphs: Mapping[str, Graph]
    bases: Mapping[str, KnowledgeBaseConfig]
    """Authored knowledge bases, which all recipes share."""

    def names(self, kind: str) -> Collection[str] | None:
        """Return the names that leaves of a type may use; None if any."""
        return self.outputs if kind == "projection" else self.by_type.get(kind)

    def place(self, kind: str) -> Path:
        """Return the path of the collection behind a type."""
        if kind == "projection":
            return (*self.path, "projections", "mappings")
        return (*self.path, "signals", COLLECTIONS[kind])


def declared_by(routing: RecipeRouting, path: Path, catalog: ModelCatalog) -> Declared:
    """Return what `routing` at `path` declares, and what all recipes share of the catalog."""
    signals = routing.signals
    by_type = {
        kind: frozenset(rule.name for rule in getattr(signals, collection))
        for kind, collection in COLLECTIONS.items()
        # Without any, a domain is made for every name that a rule uses.
        if kind != "domain" or signals.domains
    }
    # A binding answers to its own name and to that of its role.
    by_type["authz"] |= frozenset(binding.role for binding in signals.role_bindings)
    return Declared(
        path=path,
        by_type=by_type,
        outputs=frozenset(
            output.name for mapping in routing.projections.mappings for output in mapping.outputs
        ),
        classifiers={rule.name: rule for rule in signals.classifiers},
        calibrated=frozenset(
            role.removeprefix("classifier.")
            for role, binding in routing.model_bindings.items()
            if binding.operating_point is not None
        ),
        graphs=routing.graphs,
        bases={base.name: base for base in catalog.kbs or ()},
    )
