"""Compiling a document in a process of its own: the loop that serves has no time for that.

The child reads a question on its standard input and writes what the document comes to on its
standard output, both made by this module on both sides, so neither is data of strangers.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from vsr.config.attempt import Code, Reason, Stage
from vsr.config.files import DocumentFiles
from vsr.config.history import Document
from vsr.config.lifecycle import Compiled, Refused, Update, reasons_of
from vsr.config.own_python import ANOTHER_RELEASE, NoAnswer, answer, ask
from vsr.config.parts import UNREADABLE, parts_of, reading
from vsr.config.redaction import Redactor
from vsr.config.report import Report
from vsr.config.serving import Gateway
from vsr.config.slicing import in_slices
from vsr.config.source import check_bytes
from vsr.errors import ConfigRejected, Problem
from vsr.resources.snapshot import Snapshot

_END = b"\0end"
_LENGTH = 4


class _Question(msgspec.Struct, frozen=True):
    text: bytes
    included: dict[str, bytes]
    file: str | None
    gateway: str


class _Head(msgspec.Struct, frozen=True):
    reasons: tuple[Reason, ...] = ()
    included: dict[str, bytes | None] = {}
    """None: it could not be read."""
    warnings: tuple[Problem, ...] = ()


class ChildCompiler(msgspec.Struct, frozen=True):
    """Implements `config.lifecycle.Compiler`."""

    module: str
    """Run as a program, it calls `run_child`."""
    gateway: Gateway = Gateway.STANDALONE

    async def compile(self, update: Update, on_stage: Callable[[Stage], object]) -> Compiled:
        """Return what a document comes to; cancelled, the child is killed.

        Raises:
            Refused: with every reason.
        """
        on_stage(Stage.COMPILE)
        question = _Question(
            update.document.text,
            dict(update.document.included),
            None if update.file is None else str(update.file),
            self.gateway,
        )
        try:
            output = await ask(self.module, msgspec.json.encode(question))
        except NoAnswer as error:
            raise _broken(f"the process that compiles it {error}") from error
        try:
            return await _compiled(update, _parts(output))
        except UNREADABLE as error:
            raise _broken("what was compiled cannot be read; " + ANOTHER_RELEASE) from error


def _broken(message: str) -> Refused:
    return Refused(Stage.COMPILE, (Reason(Stage.COMPILE, Code.BUILD_FAILED, message),))


async def _compiled(update: Update, parts: Iterator[bytes]) -> Compiled:
    head = msgspec.json.decode(next(parts, b""), type=_Head)
    update.on_included(head.included)
    if head.reasons:
        raise Refused(head.reasons[0].stage, head.reasons)
    snapshot = await in_slices(reading(_to_the_end(parts)))
    included = {name: each for name, each in head.included.items() if each is not None}
    return Compiled(snapshot, Document(update.document.text, included), head.warnings)


def _parts(output: bytes) -> Iterator[bytes]:
    """Yield the parts of an answer.

    Raises:
        ValueError: it is cut off.
    """
    at = 0
    while at < len(output):
        length = int.from_bytes(output[at : at + _LENGTH], "big")
        part = output[at + _LENGTH : at + _LENGTH + length]
        if len(part) < length:
            raise ValueError("it is cut off")
        yield part
        at += _LENGTH + length


def _to_the_end(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the parts before the last one, which says that there are no more."""
    for part in parts:
        if part == _END:
            return
        yield part
    raise ValueError("it is cut off")


Check = Callable[[Snapshot], None]
"""Raises `ConfigRejected` with what is wrong with resources that fit each other."""


def answered(question: bytes, environ: Mapping[str, str], check: Check) -> Iterable[bytes]:
    """Yield the parts of the answer to a question, as the child writes them.

    Args:
        question: what `ChildCompiler` asks.
        environ: resolves references of the document.
        check: looks at its resources once they are valid by themselves.
    """
    asked = msgspec.json.decode(question, type=_Question)
    file = None if asked.file is None else Path(asked.file)
    files = DocumentFiles(None if file is None else file.parent)
    files.contents.update(asked.included)
    report = Report("document" if file is None else str(file), files=files)
    try:
        checked = check_bytes(asked.text, environ, report, gateway=Gateway(asked.gateway))
        check(checked.snapshot)
    except ConfigRejected as error:
        reasons = cleaned(staged_reasons(error), redactor_of(report, environ))
        yield msgspec.json.encode(_Head(reasons, _included(report)))
        return
    redactor = redactor_of(report, environ) if checked.warnings else Redactor()
    warnings = tuple(
        msgspec.structs.replace(each, what=redactor.clean(each.what)) for each in checked.warnings
    )
    yield msgspec.json.encode(_Head((), _included(report), warnings))
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
        for part in (*answered(question, os.environ, check), _END):
            yield len(part).to_bytes(_LENGTH, "big")
            yield part

    answer(produce)
