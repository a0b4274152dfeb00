"""Bodies of the management API: what requests send and answers say; the OpenAPI document too."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from vsr.admin.answer import ReasonView, rfc3339
from vsr.admin.ports import ServingView
from vsr.admin.views import ClusterView, QuarantineView
from vsr.config.attempt import ActiveConfiguration, Attempt, Reason
from vsr.config.diff import Change
from vsr.config.inspection import Mode
from vsr.config.origin import Origin

Text = Annotated[str, msgspec.Meta(extra_json_schema={"pattern": r"[^ \t\r\n]"})]
"""YAML that says something; blank text is refused in words of its own."""
MAX_DIGITS = 19
"""Of a version's number. Source: the reference."""
_NUMBER, _RECORD = "[1-9][0-9]{0,18}", "[0-9]{8}-[0-9]{6}(-[0-9]{3,9})?"
_BOUND = {"exclusiveMaximum": 10**MAX_DIGITS}
_INTEGER = msgspec.Meta(ge=1, extra_json_schema=_BOUND)
_WHOLE = msgspec.Meta(ge=1, multiple_of=1, extra_json_schema=_BOUND)
"""Source: JSON Schema: 3.0 is the integer 3."""
_VERSION = msgspec.Meta(extra_json_schema={"pattern": f"^({_NUMBER}|{_RECORD})$"})


class TextBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document, or a part of one."""

    yaml: Text


class ValidateBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document that is to be checked."""

    yaml: str
    compare_to_active: bool = False
    """Whether `diff` is wanted."""


class PlanBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change that is not made."""

    yaml: Text
    mode: Mode


class RollbackBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A recorded configuration: one of the two."""

    config_version: Annotated[int, _INTEGER] | Annotated[float, _WHOLE] | UnsetType = UNSET
    version: Annotated[str, _VERSION] | UnsetType = UNSET
    """Id of a record, or the number of a version."""


class Finding(msgspec.Struct, frozen=True):
    """What is wrong with a document, or strange. Source: standalone-mode 5.4, validate."""

    code: str
    severity: Literal["error", "warning"]
    resource: str
    """Top-level part that it is about."""
    recipe: str
    stage: str
    field: str
    """Path."""
    message: str
    file: str = ""
    line: int = 0


class Validation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether a document would be served."""

    contract_version: str
    valid: bool
    normalized_yaml: str
    """Empty where it is not valid."""
    errors: tuple[Finding, ...]
    warnings: tuple[Finding, ...]
    diff: tuple[Change, ...] | None = None


class Planned(msgspec.Struct, frozen=True):
    """What a change would come to."""

    mode: Mode
    valid: bool
    current_etag: str
    candidate_etag: str
    candidate_yaml: str
    """Its defaults filled in, its secrets replaced."""
    changes: tuple[Change, ...] | None
    """From the persisted document; null where one of the two is not valid."""
    reused: tuple[str, ...]
    """Components that would serve on as they are."""
    restart_required: tuple[ReasonView, ...]
    errors: tuple[Finding, ...]
    warnings: tuple[Finding, ...]


class Hashes(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether what is persisted serves."""

    source_config_hash: str
    """Of the persisted document."""
    generated_runtime_hash: str
    """Of it with the files that it includes, as far as that is known."""
    active_runtime_hash: str
    activation_status: str
    active_version: int
    last_rejection: "AttemptView | None" = None


class OriginView(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a configuration came from."""

    source: str
    principal: str = ""
    request_id: str = ""
    rollback_of: int = 0


class AttemptView(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change of the configuration, as far as it has come."""

    attempt: int
    document_hash: str
    status: str
    stage: str
    origin: OriginView
    started_at: str
    finished_at: str | None = None
    version: int = 0
    reused: tuple[str, ...] = ()
    reasons: tuple[ReasonView, ...] = ()
    error: str = ""
    """All reasons as one text."""


class Deployed(msgspec.Struct, frozen=True, omit_defaults=True):
    """What has become of a document that was written."""

    status: str
    version: str
    """Id of the record of the document that it replaced."""
    etag: str
    activation_status: str
    generated_runtime_hash: str
    message: str
    activation: AttemptView | None = None
    config_version: int = 0
    rollback_of: int = 0


class VersionEntry(msgspec.Struct, frozen=True):
    """A recorded configuration."""

    version: str
    timestamp: str
    source: str
    filename: str
    config_version: int
    hash: str
    rollback_of: int
    active: bool


class RecipeEntry(msgspec.Struct, frozen=True):
    """A recipe of the document."""

    name: str
    description: str
    decisions: tuple[str, ...]
    model_names: tuple[str, ...]
    """By which clients ask for it: those of entrypoints."""
    default: bool
    """Whether automatic model names lead there, too."""


class RecipeList(msgspec.Struct, frozen=True):
    """All recipes of the persisted document."""

    recipes: tuple[RecipeEntry, ...]


class RecipeView(msgspec.Struct, frozen=True):
    """A recipe as the persisted document has it."""

    name: str
    description: str
    routing: dict[str, object]


class ActiveView(msgspec.Struct, frozen=True):
    """The configuration that serves."""

    version: int
    hash: str
    origin: OriginView
    activated_at: str


class ConfigStatus(msgspec.Struct, frozen=True):
    """Where the configuration stands."""

    active: ActiveView | None
    latest: AttemptView | None
    last_rejection: AttemptView | None


class Status(msgspec.Struct, frozen=True):
    """The Router at one moment."""

    release: str
    state: Literal["serving", "starting", "draining"]
    gateway: str
    serving: ServingView
    config: ConfigStatus


class QuarantineEntry(msgspec.Struct, frozen=True):
    """An endpoint that an operator has taken out of rotation."""

    model: str
    endpoint: str
    since: str
    served: bool
    """Whether what serves has it; else it is out should it come back."""


class Backends(msgspec.Struct, frozen=True):
    """The clusters of what serves."""

    config_version: int
    clusters: tuple[ClusterView, ...]
    quarantine: tuple[QuarantineEntry, ...]
    """Endpoints that operators have taken out of rotation, served or not."""
    missing: tuple[int, ...]
    """Workers that did not answer: what they do and see is not in here."""


class Draining(msgspec.Struct, frozen=True):
    """The Router takes no new requests any more."""

    status: str = "draining"


class Health(msgspec.Struct, frozen=True):
    """The process runs."""

    status: str = "healthy"
    service: str = "classification-api"
    """Source: the reference; what probes of its users look for."""


class Readiness(msgspec.Struct, frozen=True):
    """Whether it serves. Members are the reference's; nothing is downloaded here."""

    status: str
    ready: bool
    phase: str
    message: str
    service: str = "classification-api"
    downloading_model: str = ""
    pending_models: tuple[str, ...] = ()
    ready_models: int = 0
    total_models: int = 0


class IndexEntry(msgspec.Struct, frozen=True):
    """An endpoint of the API."""

    method: str
    path: str
    summary: str
    permission: str
    """Empty: nobody is asked for any."""
    available: bool = True
    """Whether this version has what it is about."""


class Index(msgspec.Struct, frozen=True):
    """All endpoints of the API."""

    endpoints: tuple[IndexEntry, ...]
    openapi: str = "/openapi.json"


def reason_view(reason: Reason) -> ReasonView:
    """Return a reason as it is told."""
    return ReasonView(
        reason.stage, reason.code, reason.message, reason.path, reason.file, reason.line
    )


def attempt_view(attempt: Attempt) -> AttemptView:
    """Return an attempt as it is told."""
    return AttemptView(
        attempt.attempt,
        attempt.document_hash,
        attempt.status,
        attempt.stage,
        origin_view(attempt.origin),
        rfc3339(attempt.started_at),
        None if attempt.finished_at is None else rfc3339(attempt.finished_at),
        attempt.version,
        attempt.reused,
        tuple(reason_view(each) for each in attempt.reasons),
        attempt.text,
    )


def active_view(active: ActiveConfiguration) -> ActiveView:
    """Return what serves as it is told."""
    origin = origin_view(active.origin)
    return ActiveView(active.version, active.hash, origin, rfc3339(active.activated_at))


def origin_view(origin: Origin) -> OriginView:
    """Return an origin as it is told."""
    return OriginView(origin.source, origin.principal, origin.request_id, origin.rollback_of)


def quarantine_entry(view: QuarantineView) -> QuarantineEntry:
    """Return an endpoint that is out as it is told."""
    return QuarantineEntry(view.model, view.endpoint, rfc3339(view.since), view.served)


def finding(reason: Reason, severity: Literal["error", "warning"] = "error") -> Finding:
    """Return a reason in the form of a validation."""
    head, _, rest = reason.path.partition(".")
    recipe = head if head.startswith("recipes[") else ""
    resource = head.partition("[")[0]
    if resource in {"routing", "recipes", "providers", "global"} and rest:
        resource = f"{resource}.{rest.partition('.')[0].partition('[')[0]}"
    return Finding(
        reason.code,
        severity,
        resource,
        recipe,
        reason.stage,
        reason.path,
        reason.message,
        reason.file,
        reason.line,
    )
