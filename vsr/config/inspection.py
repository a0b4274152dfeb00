"""What the management API wants to know of a document: asked of a process of its own.

Parsing takes time that the serving loop does not have; see `config.child`, whose ways this follows.
"""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import attrs
import msgspec

from vsr.config.attempt import Code, Reason, Stage
from vsr.config.diff import Change
from vsr.config.own_python import ANOTHER_RELEASE, NoAnswer, answer, ask


class Mode(StrEnum):
    """What a text does to the document that there is."""

    REPLACE = "replace"
    MERGE = "merge"


class Inspect(msgspec.Struct, frozen=True):
    """A question about a text."""

    text: bytes
    mode: Mode = Mode.REPLACE
    base: bytes | None = None
    """The document that there is: merged into, and compared with."""
    file: str | None = None
    """That the document stands in."""
    may_read_files: bool = True
    """Whether it may name any file; else those that `known` names. Faults quote what files hold."""
    known: bytes = b""
    """A document that somebody who may has written."""
    reveals: bool = False
    """Whether secrets that stand in the document are shown."""


class Inspected(msgspec.Struct, frozen=True):
    """What becomes of it."""

    candidate: bytes
    """The document: the text, or what it is merged to."""
    reasons: tuple[Reason, ...] = ()
    """Why it is no valid document; that it is served is another question."""
    warnings: tuple[Reason, ...] = ()
    json: msgspec.Raw = msgspec.Raw(b"null")
    """The valid document with its defaults, as JSON."""
    yaml: str = ""
    """The same as YAML, without secrets."""
    changes: tuple[Change, ...] | None = None
    """From `base` to it; None: one of them is not valid, or there is no base."""


@attrs.frozen
class ChildInspector:
    """Asks a process of its own."""

    module: str
    """Run as a program, it calls `run_child`."""

    async def inspect(self, question: Inspect) -> Inspected:
        """Return what becomes of a text; cancelled, the child is killed."""
        try:
            answered = await ask(self.module, msgspec.json.encode(question))
            return msgspec.json.decode(answered, type=Inspected)
        except NoAnswer as error:
            why = str(error)
        except msgspec.MsgspecError:
            why = f"did not answer; {ANOTHER_RELEASE}"
        reason = Reason(Stage.PARSE, Code.BUILD_FAILED, f"the process that reads it {why}")
        return Inspected(question.text, (reason,))


def inspected(question: Inspect, environ: Mapping[str, str]) -> Inspected:
    """Return what becomes of a text; takes its time."""
    # What documents are read by is loaded by the child alone.
    from vsr.config.inspecting import Subject  # noqa: PLC0415

    return Subject(environ, None if question.file is None else Path(question.file)).of(question)


def run_child() -> None:
    """Answer one question from standard input on standard output."""
    answer(lambda question: [_answered(question)])


def _answered(question: bytes) -> bytes:
    asked = msgspec.json.decode(question, type=Inspect)
    return msgspec.json.encode(inspected(asked, os.environ))
