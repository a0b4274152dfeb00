"""The endpoints of the management API: path, method, permission, bodies.

Source of paths and permissions: standalone-mode 5.4, phases-and-plugins 11.2 to 11.5; `status`,
`backends`, `quarantine` and `drain` are our addition.
"""

from collections.abc import Mapping

import msgspec

from vsr.admin.audit import AuditPage
from vsr.admin.call import Handler
from vsr.admin.config_reads import ConfigReads
from vsr.admin.config_writes import ConfigWrites
from vsr.admin.operations import Operations
from vsr.admin.quarantine import QuarantineChange
from vsr.admin.recipes import Recipes
from vsr.admin.schema_reads import SchemaReads
from vsr.admin.shapes import (
    Backends,
    Deployed,
    Draining,
    Hashes,
    Health,
    Index,
    PlanBody,
    Planned,
    Readiness,
    RecipeList,
    RecipeView,
    RollbackBody,
    Status,
    TextBody,
    ValidateBody,
    Validation,
    VersionEntry,
)
from vsr.config.schema_views import Kind, View

CONFIG = "/api/v1/config"


class Parameter(msgspec.Struct, frozen=True):
    """A member of an endpoint's query."""

    name: str
    schema: Mapping[str, object]
    text: str


class Route(msgspec.Struct, frozen=True):
    """One endpoint."""

    method: str
    path: str
    permission: str
    """Empty: nobody is asked who they are."""
    summary: str
    handler: Handler
    answers: dict[int, object]
    """What it says where all is well, by status: a struct, a list of one, a type of text."""
    body: type[msgspec.Struct] | None = None
    action: str = ""
    """In the audit; empty: it changes nothing."""
    has_precondition: bool = False
    query: tuple[Parameter, ...] = ()
    is_available: bool = True
    """Whether this version has what it is about."""
    errors: Mapping[int, str] = {}
    """Of its own, beside those that endpoints of its kind have."""

    @property
    def is_named(self) -> bool:
        """Return whether it is about one of several, which may not be there."""
        return "{" in self.path or self.body is RollbackBody or self.query is _SCHEMA_QUERY

    @property
    def reads_document(self) -> bool:
        """Return whether it needs the document's file, or the history."""
        return self.path.startswith(CONFIG) and self.query is not _SCHEMA_QUERY


_TEXT: Mapping[str, object] = {"type": "string"}
_AUDIT_QUERY = (
    Parameter("action", _TEXT, "only entries of this action"),
    Parameter(
        "after_sequence",
        {"type": "integer", "minimum": 0, "exclusiveMaximum": 10**18},
        "only entries behind this one",
    ),
    Parameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
        "how many at most",
    ),
)
_SCHEMA_QUERY = (
    Parameter(
        "view",
        {"type": "string", "enum": [*View]},
        "index says what there is; section wants path, catalog wants kind; what is left out follows"
        " from these",
    ),
    Parameter("path", _TEXT, "of a section, as providers.models"),
    Parameter("kind", {"type": "string", "enum": [*Kind]}, "of a catalog"),
    Parameter("name", _TEXT, "of one entry of a catalog"),
    Parameter(
        "expanded",
        {"type": "boolean", "default": False},
        "whether definitions that are referred to come along",
    ),
)
_QUARANTINE = "/api/v1/backends/{model}/{endpoint}/quarantine"
_QUARANTINE_QUERY = (
    Parameter(
        "allow_empty",
        {"type": "boolean", "default": False},
        "whether it may be the last endpoint of its model",
    ),
)


def config_routes(reads: ConfigReads, writes: ConfigWrites, schema: SchemaReads) -> list[Route]:
    """Return the endpoints of the configuration."""
    return [
        msgspec.structs.replace(
            read(f"{CONFIG}/schema", "The JSON schema in parts", schema.schema, object),
            query=_SCHEMA_QUERY,
        ),
        read(CONFIG, "The persisted document", reads.document, object),
        _write(
            "PATCH",
            CONFIG,
            "Merge a part into the document, serve it",
            writes.patch,
            TextBody,
            "config.patch",
        ),
        _write(
            "PUT", CONFIG, "Replace the document, and serve it", writes.put, TextBody, "config.put"
        ),
        read(f"{CONFIG}/hash", "Whether what is persisted serves", reads.hashes, Hashes),
        _asks("validate", "Whether a document would be served", reads.validate, Validation),
        _asks("plan", "What a change would come to", reads.plan, Planned),
        _write(
            "POST",
            f"{CONFIG}/rollback",
            "Serve a recorded configuration again",
            writes.rollback,
            RollbackBody,
            "config.rollback",
        ),
        read(f"{CONFIG}/versions", "Recorded configurations", reads.versions, list[VersionEntry]),
    ]


def recipe_routes(recipes: Recipes) -> list[Route]:
    """Return the endpoints of recipes."""
    place = f"{CONFIG}/recipes"
    one = f"{place}/{{name}}"
    return [
        read(place, "All recipes of the persisted document", recipes.all, RecipeList),
        Route(
            "POST",
            f"{place}/validate",
            "config.write",
            "Whether the document would be served with a recipe",
            recipes.validate,
            {200: Validation},
            TextBody,
        ),
        read(one, "One recipe", recipes.one, RecipeView),
        _write("PUT", one, "Write a recipe, and serve it", recipes.save, TextBody, "recipe.save"),
        _write("DELETE", one, "Take a recipe away", recipes.delete, None, "recipe.delete"),
    ]


def operation_routes(operations: Operations) -> list[Route]:
    """Return the endpoints of the process."""
    ready: dict[int, object] = {200: Readiness, 503: Readiness}
    models = "The models that clients may ask for"
    audit = "/api/v1/observability/audit"
    return [
        Route("GET", "/health", "", "The process runs", operations.health, {200: Health}),
        Route("GET", "/ready", "ready.read", "Whether it serves", operations.ready, ready),
        Route(
            "GET",
            "/startup-status",
            "ready.read",
            "How far the start has come",
            operations.ready,
            ready,
        ),
        read("/v1/models", models, operations.models, object),
        read("/api/v1/models", models, operations.models, object),
        read("/metrics", "All metrics", operations.metrics, "text/plain", "metrics.read"),
        read("/api/v1/status", "The Router at this moment", operations.status, Status),
        read(
            "/api/v1/backends",
            "Clusters and endpoints as they are doing",
            operations.backends,
            Backends,
            "metrics.read",
        ),
        *_quarantine_routes(operations),
        Route(
            "POST",
            "/api/v1/drain",
            "process.drain",
            "Finish what is under way, and end",
            operations.drain,
            {202: Draining},
            action="process.drain",
        ),
        msgspec.structs.replace(
            read(audit, "What was changed and by whom", operations.audit, AuditPage),
            query=_AUDIT_QUERY,
        ),
    ]


def _quarantine_routes(operations: Operations) -> list[Route]:
    return [
        Route(
            "POST",
            _QUARANTINE,
            "backend.quarantine",
            "Take an endpoint out of rotation",
            operations.take_out,
            {200: QuarantineChange, 202: QuarantineChange},
            action="backend.quarantine",
            query=_QUARANTINE_QUERY,
            errors={409: "It is the last endpoint of its model."},
        ),
        Route(
            "DELETE",
            _QUARANTINE,
            "backend.quarantine",
            "Put an endpoint back into rotation",
            operations.put_back,
            {200: QuarantineChange, 202: QuarantineChange},
            action="backend.release",
        ),
    ]


def index_routes(index: Handler, openapi: Handler, page: Handler) -> list[Route]:
    """Return the endpoints about endpoints."""
    docs = "docs.read"
    return [
        Route("GET", "/api/v1", docs, "All endpoints", index, {200: Index}),
        Route("GET", "/openapi.json", docs, "This document", openapi, {200: object}),
        Route("GET", "/docs", docs, "The same as a page", page, {200: "text/html"}),
    ]


def read(
    path: str, summary: str, handler: Handler, kind: object, permission: str = "config.read"
) -> Route:
    """Return an endpoint that changes nothing."""
    return Route("GET", path, permission, summary, handler, {200: kind})


def _asks(what: str, summary: str, handler: Handler, kind: object) -> Route:
    """Return a question that is too long for a path."""
    body = ValidateBody if kind is Validation else PlanBody
    path = f"{CONFIG}/{what}"
    return Route("POST", path, "config.read", summary, handler, {200: kind}, body)


def _write(  # one per column
    method: str,
    path: str,
    summary: str,
    handler: Handler,
    body: type[msgspec.Struct] | None,
    action: str,
) -> Route:
    return Route(
        method,
        path,
        "config.write",
        summary,
        handler,
        {200: Deployed, 202: Deployed, 503: Deployed},
        body,
        action,
        has_precondition=True,
    )
