"""Compiling a document in a process of its own: the loop that serves has no time for that.

The child reads a question on its standard input and writes what the document comes to on its
standard output, both made by this module on both sides, so neither is data of strangers.
"""

import os
import pickle
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
import trio

from vsr.config.attempt import Code, Reason, Stage
from vsr.config.files import DocumentFiles
from vsr.config.history import Document
from vsr.config.lifecycle import Compiled, Refused, Update, reasons_of
from vsr.config.redaction import Redactor
from vsr.config.report import Report
from vsr.config.serving import Gateway
from vsr.config.source import check_bytes
from vsr.errors import ConfigRejected, Problem
from vsr.resources.snapshot import Snapshot

_MAGIC = b"\0vsr compiled\0"
"""In front of the answer: a package may print when it is imported."""
_END = b"\0end"
_LENGTH = 4
_BATCH = 32
"""Resources that are read between two looks at the loop; about a millisecond's worth."""
_TIMEOUT_S = 60.0
_NICE = 5
"""Requests go before it where they share a core."""


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
            with trio.fail_after(_TIMEOUT_S):
                done = await trio.run_process(
                    # Not the working directory's modules: whoever may write there is no author.
                    [sys.executable, "-P", "-m", self.module],
                    stdin=msgspec.json.encode(question),
                    capture_stdout=True,
                    check=False,
                    env=_environment(),
                )
        except trio.TooSlowError:
            raise _broken(f"compiling it took more than {_TIMEOUT_S:g} s") from None
        except OSError as error:
            what = error.strerror or "it cannot be started"
            raise _broken(f"no process can compile it: {what}") from error
        if done.returncode != 0:
            raise _broken(f"the process that compiles it ended with status {done.returncode}")
        try:
            return await _compiled(update, _parts(done.stdout))
        except _UNREADABLE as error:
            what = "what was compiled cannot be read; was the Router updated? Then restart it"
            raise _broken(what) from error


_UNREADABLE = (
    msgspec.MsgspecError,
    pickle.UnpicklingError,
    AttributeError,
    ImportError,
    LookupError,
    TypeError,
    ValueError,
)
"""What reading an answer raises that another release wrote, or that is cut off."""


def _environment() -> dict[str, str]:
    """Return that of a child which imports this very package, wherever it was found."""
    root = str(Path(__file__).parents[2])
    inherited = os.environ.get("PYTHONPATH")
    if root in sysconfig.get_paths().values():
        return dict(os.environ)
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{inherited}" if inherited else root}


def _broken(message: str) -> Refused:
    return Refused(Stage.COMPILE, (Reason(Stage.COMPILE, Code.BUILD_FAILED, message),))


async def _compiled(update: Update, parts: Iterator[bytes]) -> Compiled:
    head = msgspec.json.decode(next(parts, b""), type=_Head)
    update.on_included(head.included)
    if head.reasons:
        raise Refused(head.reasons[0].stage, head.reasons)
    members: dict[str, object] = {}
    for part in parts:
        if part == _END:
            break
        name, is_list, items = pickle.loads(part)  # noqa: S301  # our own child's
        if is_list:
            members[name] = (*members.get(name, ()), *items)  # type: ignore[misc]  # a tuple
        else:
            members[name] = items
        await trio.lowlevel.checkpoint()
    else:
        raise ValueError("it is cut off")
    included = {name: each for name, each in head.included.items() if each is not None}
    document = Document(update.document.text, included)
    return Compiled(Snapshot(**members), document, head.warnings)  # type: ignore[arg-type]  # of one


def _parts(output: bytes) -> Iterator[bytes]:
    """Yield the parts of an answer.

    Raises:
        ValueError: there is none, or it is cut off.
    """
    at = output.index(_MAGIC) + len(_MAGIC)
    while at < len(output):
        length = int.from_bytes(output[at : at + _LENGTH], "big")
        part = output[at + _LENGTH : at + _LENGTH + length]
        if len(part) < length:
            raise ValueError("it is cut off")
        yield part
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
        reasons = cleaned(staged_reasons(error), redactor_of(report, environ))
        yield msgspec.json.encode(_Head(reasons, _included(report)))
        return
    redactor = redactor_of(report, environ) if checked.warnings else Redactor()
    warnings = tuple(
        msgspec.structs.replace(each, what=redactor.clean(each.what)) for each in checked.warnings
    )
    yield msgspec.json.encode(_Head((), _included(report), warnings))
    snapshot = checked.snapshot
    for name in snapshot.__struct_fields__:
        value = getattr(snapshot, name)
        if not isinstance(value, tuple):
            yield pickle.dumps((name, False, value), -1)
            continue
        for at in range(0, len(value), _BATCH):
            yield pickle.dumps((name, True, value[at : at + _BATCH]), -1)


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
    os.nice(_NICE)
    sys.stdout.flush()
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as output:
        # What others print from now on goes where the Router's own messages go.
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        output.write(_MAGIC)
        for part in (*answer(sys.stdin.buffer.read(), os.environ, check), _END):
            output.write(len(part).to_bytes(_LENGTH, "big"))
            output.write(part)
