"""The process that reads and compiles a document for a Router that serves: its side of `child`."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from vsr.config.attempt import Code, Reason, Stage, reasons_of
from vsr.config.files import DocumentFiles
from vsr.config.inspection import Inspect
from vsr.config.one_answer import answer
from vsr.config.parts import parts_of
from vsr.config.redaction import Redactor
from vsr.config.report import Report
from vsr.config.serving import Gateway
from vsr.config.source import ValidDocument, check_bytes, check_valid
from vsr.errors import ConfigRejected, Problem
from vsr.resources.snapshot import Snapshot

END = b"\0end"
"""Stands for a part, and says that there are no more."""
LENGTH = 4
"""Bytes in front of every part; what follows has as many bytes as they say."""


class Question(msgspec.Struct, frozen=True):
    """What a child is asked."""

    text: bytes = b""
    """To be compiled."""
    included: dict[str, bytes] = {}
    """What it includes, as far as that is at hand."""
    file: str | None = None
    gateway: str = Gateway.STANDALONE
    inspect: Inspect | None = None
    """To be told of; takes the place of `text`."""
    compiles: bool = True


class Head(msgspec.Struct, frozen=True):
    """What stands before the parts of a snapshot."""

    reasons: tuple[Reason, ...] = ()
    """Why there is none."""
    included: dict[str, bytes | None] = {}
    """None: it could not be read."""
    warnings: tuple[Problem, ...] = ()


Check = Callable[[Snapshot], None]
"""Raises `ConfigRejected` with what is wrong with resources that fit each other."""


def answered(question: bytes, environ: Mapping[str, str], check: Check) -> Iterable[bytes]:
    """Yield the parts of the answer to a question, as the child writes them.

    Those of what is inspected come first, then those of the snapshot, if the text is valid.

    Args:
        question: a `Question`.
        environ: resolves references of the document.
        check: looks at its resources once they are valid by themselves.
    """
    asked = msgspec.json.decode(question, type=Question)
    if asked.inspect is None:
        yield from _compiled(_report(asked), asked, environ, check)
        return
    # What shows documents is loaded where somebody wants to see one.
    from vsr.config.inspecting import Subject  # noqa: PLC0415

    inspected, valid = Subject(environ).of(asked.inspect)
    yield msgspec.json.encode(inspected)
    if valid is not None and valid.report is not None and asked.compiles:
        yield from _compiled(valid.report, asked, environ, check, valid)


def _report(asked: Question) -> Report:
    file = None if asked.file is None else Path(asked.file)
    files = DocumentFiles(None if file is None else file.parent)
    files.contents.update(asked.included)
    return Report("document" if file is None else str(file), files=files)


def _compiled(
    report: Report,
    asked: Question,
    environ: Mapping[str, str],
    check: Check,
    valid: ValidDocument | None = None,
) -> Iterator[bytes]:
    gateway = Gateway(asked.gateway)
    try:
        if valid is None:
            checked = check_bytes(asked.text, environ, report, gateway=gateway)
        else:
            checked = check_valid(valid, environ, gateway=gateway)
        check(checked.snapshot)
    except ConfigRejected as error:
        reasons = cleaned(staged_reasons(error), redactor_of(report, environ))
        yield msgspec.json.encode(Head(reasons, _included(report)))
        return
    redactor = redactor_of(report, environ) if checked.warnings else Redactor()
    warnings = tuple(
        msgspec.structs.replace(each, what=redactor.clean(each.what)) for each in checked.warnings
    )
    yield msgspec.json.encode(Head((), _included(report), warnings))
    yield from parts_of(checked.snapshot)


def staged_reasons(error: ConfigRejected) -> tuple[Reason, ...]:
    """Return the reasons, each with the stage that finds such a fault."""
    stages = {Code.INVALID_DOCUMENT: Stage.PARSE, Code.UNSUPPORTED: Stage.VALIDATE}
    return tuple(
        msgspec.structs.replace(reason, stage=stages.get(reason.code, Stage.COMPILE))
        for reason in reasons_of(error, Stage.COMPILE)
    )


def redactor_of(report: Report, environ: Mapping[str, str]) -> Redactor:
    """Return what knows the credentials of the document that `report` is about."""
    contents = report.files.contents
    files = {name: each for name, each in contents.items() if name not in report.included}
    return Redactor.of(report.lines.root, environ, files)


def cleaned(reasons: tuple[Reason, ...], redactor: Redactor) -> tuple[Reason, ...]:
    """Return reasons without credentials: they are told to more than the document's author."""
    return tuple(
        msgspec.structs.replace(
            each, message=redactor.clean(each.message), path=redactor.clean(each.path)
        )
        for each in reasons
    )


def _included(report: Report) -> dict[str, bytes | None]:
    return {name: report.files.contents.get(name) for name in sorted(report.included)}


def run_child(check: Check) -> None:
    """Answer one question from standard input on standard output."""

    def produce(question: bytes) -> Iterator[bytes]:
        for part in (*answered(question, os.environ, check), END):
            yield len(part).to_bytes(LENGTH, "big")
            yield part

    answer(produce)
