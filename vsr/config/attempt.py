"""What becomes of a change of the configuration. Source of all names: standalone-mode 5.1."""

from enum import StrEnum

import msgspec

from vsr.config.origin import Origin
from vsr.errors import ConfigRejected


class Stage(StrEnum):
    """What a change goes through, in order."""

    PARSE = "parse"
    COMPILE = "compile"
    VALIDATE = "validate"
    WARM = "warm"
    ACTIVATE = "activate"


class Code(StrEnum):
    """Why a change is refused."""

    INVALID_DOCUMENT = "invalid_document"
    DUPLICATE_NAME = "duplicate_name"
    UNRESOLVED_REFERENCE = "unresolved_reference"
    INVALID_RESOURCE = "invalid_resource"
    RESTART_REQUIRED = "restart_required"
    ARTIFACT_UNAVAILABLE = "artifact_unavailable"
    """A file that the document names cannot be used."""
    UNSUPPORTED = "unsupported"
    """The mode that is active cannot honour it."""
    MODEL_UNAVAILABLE = "model_unavailable"
    """A model that the Router runs itself cannot be had."""
    BUILD_FAILED = "build_failed"
    WARMUP_FAILED = "warmup_failed"
    ACTIVATION_FAILED = "activation_failed"
    SHUTTING_DOWN = "shutting_down"
    CANCELED = "canceled"


class AttemptStatus(StrEnum):
    """How far a change has come."""

    PREPARING = "preparing"
    ACTIVE = "active"
    FAILED = "failed"
    SUPERSEDED = "superseded"
    """A newer document of its source took its place."""


class Reason(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a change was refused: one of all reasons."""

    stage: Stage
    code: Code
    message: str
    """Safe to show: it quotes nothing that came from the environment."""
    path: str = ""
    file: str = ""
    """That `path` stands in; empty: the document came from no file."""
    line: int = 0
    """1-based; 0: unknown."""


class Attempt(msgspec.Struct, frozen=True):
    """One change, as far as it has come."""

    attempt: int
    """From 1, in the order in which changes began."""
    document_hash: str
    """Of the document alone until it is compiled, then with the files that it includes."""
    origin: Origin
    started_at: float
    """Seconds since 1970, as is `finished_at`."""
    status: AttemptStatus = AttemptStatus.PREPARING
    stage: Stage = Stage.PARSE
    version: int = 0
    """0 until it serves."""
    reused: tuple[str, ...] = ()
    """Components that serve on as they were."""
    reasons: tuple[Reason, ...] = ()
    finished_at: float | None = None

    @property
    def text(self) -> str:
        """Return all reasons as one text."""
        return "; ".join(
            f"{reason.path}: {reason.message}" if reason.path else reason.message
            for reason in self.reasons
        )


class ActiveConfiguration(msgspec.Struct, frozen=True):
    """What serves."""

    version: int
    hash: str
    origin: Origin
    activated_at: float
    """Seconds since 1970."""


class LifecycleStatus(msgspec.Struct, frozen=True):
    """Where the configuration stands; reading it never waits for a change in progress."""

    active: ActiveConfiguration | None = None
    latest: Attempt | None = None
    last_rejection: Attempt | None = None
    """The last change that was refused; later ones that are not do not erase it."""


def reasons_of(error: ConfigRejected, stage: Stage, code: Code | None = None) -> tuple[Reason, ...]:
    """Return the reasons of a rejection.

    Args:
        error: it.
        stage: that found them.
        code: of all of them; None: each problem has its own.
    """
    return tuple(
        Reason(
            stage,
            code or Code(problem.code),
            problem.told,
            problem.path,
            problem.file,
            problem.line,
        )
        for problem in error.problems
    )
