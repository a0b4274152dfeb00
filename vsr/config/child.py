"""Reading and compiling a document in a process of its own: the loop that serves has no time.

The child reads a question on its standard input and writes what the document comes to on its
standard output, both made by this package on both sides, so neither is data of strangers; see
`config.compiling`.
"""

from collections.abc import Callable, Iterator

import msgspec

from vsr.config.attempt import Code, Reason, Stage
from vsr.config.compiling import END, LENGTH, Head, Question
from vsr.config.history import Document
from vsr.config.inspection import Inspect, Inspected
from vsr.config.lifecycle import Compiled, Refused, Update
from vsr.config.own_python import ANOTHER_RELEASE, NoAnswer, ask
from vsr.config.parts import UNREADABLE, reading
from vsr.config.serving import Gateway
from vsr.config.slicing import in_slices


class ChildCompiler(msgspec.Struct, frozen=True):
    """Implements `config.lifecycle.Compiler`."""

    module: str
    """Run as a program, it calls `compiling.run_child`."""
    gateway: Gateway = Gateway.STANDALONE

    async def compile(self, update: Update, on_stage: Callable[[Stage], object]) -> Compiled:
        """Return what a document comes to; cancelled, the child is killed.

        Raises:
            Refused: with every reason.
        """
        on_stage(Stage.COMPILE)
        text = update.document.text
        file = None if update.file is None else str(update.file)
        question = Question(text, dict(update.document.included), file, self.gateway)
        try:
            parts = _parts(await ask(self.module, msgspec.json.encode(question)))
            head = msgspec.json.decode(next(parts, b""), type=Head)
            update.on_included(head.included)
            return await _compiled(text, head, parts)
        except NoAnswer as error:
            raise _broken(f"the process that compiles it {error}") from error
        except UNREADABLE as error:
            raise _broken("what was compiled cannot be read; " + ANOTHER_RELEASE) from error


class Examined(msgspec.Struct, frozen=True):
    """What becomes of a text, and what it comes to where it is asked for that."""

    inspected: Inspected
    compiled: Compiled | None = None
    """None: it is not valid, or not served."""
    reasons: tuple[Reason, ...] = ()
    """Why a valid one is not served."""


class ChildInspector(msgspec.Struct, frozen=True):
    """Tells the management API of documents."""

    module: str
    """As that of `ChildCompiler`."""
    gateway: Gateway = Gateway.STANDALONE

    async def inspect(self, question: Inspect, *, compiles: bool = False) -> Examined:
        """Return what becomes of a text; cancelled, the child is killed.

        Args:
            question: about it.
            compiles: whether a valid one is compiled, too, by the same child.
        """
        asked = Question(
            file=question.file, gateway=self.gateway, inspect=question, compiles=compiles
        )
        inspected = Inspected(question.text)
        try:
            parts = _parts(await ask(self.module, msgspec.json.encode(asked)))
            inspected = msgspec.json.decode(next(parts, b""), type=Inspected)
            if inspected.reasons or not compiles:
                return Examined(inspected)
            head = msgspec.json.decode(next(parts, b""), type=Head)
            return Examined(inspected, await _compiled(inspected.candidate, head, parts))
        except Refused as refused:
            return Examined(inspected, reasons=refused.reasons)
        except NoAnswer as error:
            why = str(error)
        except UNREADABLE:
            why = f"did not answer; {ANOTHER_RELEASE}"
        reason = Reason(Stage.PARSE, Code.BUILD_FAILED, f"the process that reads it {why}")
        return Examined(Inspected(question.text, (reason,)))


def _broken(message: str) -> Refused:
    return Refused(Stage.COMPILE, (Reason(Stage.COMPILE, Code.BUILD_FAILED, message),))


async def _compiled(text: bytes, head: Head, parts: Iterator[bytes]) -> Compiled:
    if head.reasons:
        raise Refused(head.reasons[0].stage, head.reasons)
    snapshot = await in_slices(reading(_to_the_end(parts)))
    included = {name: each for name, each in head.included.items() if each is not None}
    return Compiled(snapshot, Document(text, included), head.warnings)


def _parts(output: bytes) -> Iterator[bytes]:
    """Yield the parts of an answer.

    Raises:
        ValueError: it is cut off.
    """
    at = 0
    while at < len(output):
        length = int.from_bytes(output[at : at + LENGTH], "big")
        part = output[at + LENGTH : at + LENGTH + length]
        if len(part) < length:
            raise ValueError("it is cut off")
        yield part
        at += LENGTH + length


def _to_the_end(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the parts before the last one, which says that there are no more."""
    for part in parts:
        if part == END:
            return
        yield part
    raise ValueError("it is cut off")
