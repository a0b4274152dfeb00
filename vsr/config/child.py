"""Compiling a document in a process of its own: the loop that serves has no time for that.

The child reads a question on its standard input and writes what the document comes to on its
standard output, both made by this module on both sides, so neither is data of strangers.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
import trio

from vsr.config.attempt import Code, Reason, Stage
from vsr.config.files import DocumentFiles
from vsr.config.history import Document
from vsr.config.lifecycle import Compiled, Refused, Update, reasons_of
from vsr.config.parts import parts_of, reading
from vsr.config.report import Report
from vsr.config.serving import Gateway
from vsr.config.slicing import in_slices
from vsr.config.source import check_bytes
from vsr.errors import ConfigRejected, Problem
from vsr.resources.snapshot import Snapshot

_LENGTH = 4
_TIMEOUT_S = 60.0
_NICE = 10
"""Requests go before it where they share a core."""


class _Question(msgspec.Struct, frozen=True):
    text: bytes
    included: dict[str, bytes]
    file: str | None
    gateway: str


class _Head(msgspec.Struct, frozen=True):
    reasons: tuple[Reason, ...] = ()
    included: dict[str, bytes] = {}
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
        with trio.move_on_after(_TIMEOUT_S):
            done = await trio.run_process(
                [sys.executable, "-m", self.module],
                stdin=msgspec.json.encode(question),
                capture_stdout=True,
                check=False,
            )
            if done.returncode == 0:
                return await _compiled(update, _parts(done.stdout))
            raise _broken(f"the process that compiles it ended with status {done.returncode}")
        raise _broken(f"compiling it took more than {_TIMEOUT_S:g} s")


def _broken(message: str) -> Refused:
    return Refused(Stage.COMPILE, (Reason(Stage.COMPILE, Code.BUILD_FAILED, message),))


async def _compiled(update: Update, parts: Iterator[bytes]) -> Compiled:
    head = msgspec.json.decode(next(parts), type=_Head)
    update.on_included(head.included)
    if head.reasons:
        raise Refused(head.reasons[0].stage, head.reasons)
    snapshot = await in_slices(reading(parts))
    document = Document(update.document.text, head.included)
    return Compiled(snapshot, document, head.warnings)


def _parts(output: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(output):
        length = int.from_bytes(output[at : at + _LENGTH], "big")
        yield output[at + _LENGTH : at + _LENGTH + length]
        at += _LENGTH + length


Check = Callable[[Snapshot], None]
"""Raises `ConfigRejected` with what is wrong with resources that fit each other."""


def answer(question: bytes, environ: Mapping[str, str], check: Check) -> Iterable[bytes]:
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
        yield msgspec.json.encode(_Head(_staged(error), _included(report)))
        return
    yield msgspec.json.encode(_Head((), _included(report), checked.warnings))
    yield from parts_of(checked.snapshot)


def _staged(error: ConfigRejected) -> tuple[Reason, ...]:
    """Return the reasons, each with the stage that finds such a fault."""
    stages = {Code.INVALID_DOCUMENT: Stage.PARSE, Code.UNSUPPORTED: Stage.VALIDATE}
    return tuple(
        msgspec.structs.replace(reason, stage=stages.get(reason.code, Stage.COMPILE))
        for reason in reasons_of(error, Stage.COMPILE)
    )


def _included(report: Report) -> dict[str, bytes]:
    return {name: report.files.contents[name] for name in sorted(report.included)}


def run_child(check: Check) -> None:
    """Answer one question from standard input on standard output."""
    os.nice(_NICE)
    output = sys.stdout.buffer
    for part in answer(sys.stdin.buffer.read(), os.environ, check):
        output.write(len(part).to_bytes(_LENGTH, "big"))
        output.write(part)
