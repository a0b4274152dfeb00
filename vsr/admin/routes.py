"""The endpoints of the management API: path, method, permission, bodies.

Source of paths and permissions: standalone-mode 5.4, phases-and-plugins 11.2 to 11.5; `status`,
`backends` and `drain` are our addition.
"""

import msgspec

from vsr.admin.audit import AuditPage
from vsr.admin.call import Handler
from vsr.admin.config_reads import ConfigReads
from vsr.admin.config_writes import ConfigWrites
from vsr.admin.operations import Operations
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
    RollbackBody,
    Status,
    TextBody,
    ValidateBody,
    Validation,
    VersionEntry,
)

CONFIG = "/api/v1/config"


class Parameter(msgspec.Struct, frozen=True):
    """A member of an endpoint's query."""

    name: str
    type: str
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


_AUDIT_QUERY = (
    Parameter("action", "string", "only entries of this action"),
    Parameter("after_sequence", "integer", "only entries behind this one"),
    Parameter("limit", "integer", "how many at most, 1 to 1000; 100 if it is left out"),
)


def config_routes(reads: ConfigReads, writes: ConfigWrites) -> list[Route]:
    """Return the endpoints of the configuration."""
    read, write = "config.read", "config.write"
    deployed: dict[int, object] = {200: Deployed, 202: Deployed, 503: Deployed}
    return [
        Route("GET", CONFIG, read, "The persisted document", reads.document, {200: object}),
        Route(
            "PATCH",
            CONFIG,
            write,
            "Merge a part into the document and serve it",
            writes.patch,
            deployed,
            TextBody,
            "config.patch",
            has_precondition=True,
        ),
        Route(
            "PUT",
            CONFIG,
            write,
            "Replace the document and serve it",
            writes.put,
            deployed,
            TextBody,
            "config.put",
            has_precondition=True,
        ),
        Route(
            "GET",
            f"{CONFIG}/hash",
            read,
            "Whether what is persisted serves",
            reads.hashes,
            {200: Hashes},
        ),
        Route(
            "POST",
            f"{CONFIG}/validate",
            read,
            "Whether a document would be served",
            reads.validate,
            {200: Validation},
            ValidateBody,
        ),
        Route(
            "POST",
            f"{CONFIG}/plan",
            read,
            "What a change would come to",
            reads.plan,
            {200: Planned},
            PlanBody,
        ),
        Route(
            "POST",
            f"{CONFIG}/rollback",
            write,
            "Serve a recorded configuration again",
            writes.rollback,
            deployed,
            RollbackBody,
            "config.rollback",
            has_precondition=True,
        ),
        Route(
            "GET",
            f"{CONFIG}/versions",
            read,
            "Recorded configurations, newest first",
            reads.versions,
            {200: list[VersionEntry]},
        ),
    ]


def operation_routes(operations: Operations) -> list[Route]:
    """Return the endpoints of the process."""
    return [
        Route("GET", "/health", "", "The process runs", operations.health, {200: Health}),
        Route(
            "GET",
            "/ready",
            "ready.read",
            "Whether it serves",
            operations.ready,
            {200: Readiness, 503: Readiness},
        ),
        Route(
            "GET",
            "/metrics",
            "metrics.read",
            "All metrics",
            operations.metrics,
            {200: "text/plain"},
        ),
        Route(
            "GET",
            "/api/v1/status",
            "config.read",
            "The Router at this moment",
            operations.status,
            {200: Status},
        ),
        Route(
            "GET",
            "/api/v1/backends",
            "metrics.read",
            "Clusters and endpoints as they are doing",
            operations.backends,
            {200: Backends},
        ),
        Route(
            "POST",
            "/api/v1/drain",
            "process.drain",
            "Finish what is under way, and end",
            operations.drain,
            {202: Draining},
            action="process.drain",
        ),
        Route(
            "GET",
            "/api/v1/observability/audit",
            "config.read",
            "What was changed and by whom",
            operations.audit,
            {200: AuditPage},
            query=_AUDIT_QUERY,
        ),
    ]


def index_routes(index: Handler, openapi: Handler) -> list[Route]:
    """Return the endpoints about endpoints."""
    docs = "docs.read"
    return [
        Route("GET", "/api/v1", docs, "All endpoints", index, {200: Index}),
        Route("GET", "/openapi.json", docs, "This document", openapi, {200: object}),
    ]
