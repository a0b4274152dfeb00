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
    return [
        read(CONFIG, "The persisted document", reads.document, object),
        _write("PATCH", CONFIG, "Merge a part into the document, serve it", writes.patch, TextBody),
        _write("PUT", CONFIG, "Replace the document, and serve it", writes.put, TextBody),
        read(f"{CONFIG}/hash", "Whether what is persisted serves", reads.hashes, Hashes),
        _asks("validate", "Whether a document would be served", reads.validate, Validation),
        _asks("plan", "What a change would come to", reads.plan, Planned),
        _write(
            "POST",
            f"{CONFIG}/rollback",
            "Serve a recorded configuration again",
            writes.rollback,
            RollbackBody,
        ),
        read(f"{CONFIG}/versions", "Recorded configurations", reads.versions, list[VersionEntry]),
    ]


def operation_routes(operations: Operations) -> list[Route]:
    """Return the endpoints of the process."""
    ready: dict[int, object] = {200: Readiness, 503: Readiness}
    audit = "/api/v1/observability/audit"
    return [
        Route("GET", "/health", "", "The process runs", operations.health, {200: Health}),
        Route("GET", "/ready", "ready.read", "Whether it serves", operations.ready, ready),
        read("/metrics", "All metrics", operations.metrics, "text/plain", "metrics.read"),
        read("/api/v1/status", "The Router at this moment", operations.status, Status),
        read(
            "/api/v1/backends",
            "Clusters and endpoints as they are doing",
            operations.backends,
            Backends,
            "metrics.read",
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
        msgspec.structs.replace(
            read(audit, "What was changed and by whom", operations.audit, AuditPage),
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


def _write(
    method: str, path: str, summary: str, handler: Handler, body: type[msgspec.Struct]
) -> Route:
    action = "rollback" if body is RollbackBody else method.lower()
    return Route(
        method,
        path,
        "config.write",
        summary,
        handler,
        {200: Deployed, 202: Deployed, 503: Deployed},
        body,
        f"config.{action}",
        has_precondition=True,
    )
