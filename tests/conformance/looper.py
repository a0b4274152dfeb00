"""Looper fixtures, each run through a whole Router on a network in memory and a virtual clock."""

import itertools
import json
import logging
import signal
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import attrs
import trio
import trio.testing

from tests.conformance.looper_calls import call_differences, model_of
from tests.conformance.looper_case import Case, Turn, UnreadableCase, read_case, with_tool_call_ids
from tests.conformance.looper_document import document_of, native_names
from tests.conformance.looper_grounding import ScriptedClassifiers
from tests.conformance.looper_matching import differences
from tests.conformance.looper_reply import Response, refusal_of, reply_of, verifier_reply_of
from tests.conformance.looper_response import ClientReply, response_differences
from tests.conformance.looper_server import ScriptedServer, SeenCall
from tests.demo.raw_client import read_answer
from tests.fakes.router import RunningRouter, start_router
from vsr.config.report import Report
from vsr.config.serving import Gateway
from vsr.config.source import check_bytes, read_bytes, unserved
from vsr.errors import ConfigRejected
from vsr.headers import HeaderLine
from vsr.http.h1_client import encode_request
from vsr.network.memory import MemoryNetwork
from vsr.resources.snapshot import Snapshot

AUTHORITY = b"router"
MOST_VIRTUAL_S = 7_200.0
"""Of one turn; the longest limit that a case may wait for is the Router's 1,200 s per call."""
MOST_REAL_S = 20.0
"""Of one case; the slowest takes some hundredths."""
_VERIFY = "/verify"


@attrs.frozen
class LooperResult:
    """What one case came to."""

    name: str
    differences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What was not checked, and what the Router logged while something differed."""
    is_unserved: bool = False
    """The document is valid and needs what this version does not serve; nothing was run."""

    @property
    def has_passed(self) -> bool:
        """Return whether the case was run and nothing differed."""
        return not self.differences


class _TooLong(BaseException):
    """A case has had its real time; no handler of the Router's may take it for a failure."""


def run_file(path: Path) -> LooperResult:
    """Return what the case in a file comes to; whatever fails is a difference."""
    try:
        case = read_case(path)
    except (UnreadableCase, OSError) as error:
        return LooperResult(path.stem, (f"fixture: can't be read: {error}",))
    return run_case(case)


def run_case(case: Case, most_real_s: float = MOST_REAL_S) -> LooperResult:
    """Return what a case comes to, within its real time."""
    run = CaseRun(case)
    try:
        with _at_most(most_real_s), _logged(run.logged):
            trio.run(run.serve, clock=trio.testing.MockClock(autojump_threshold=0))
    except (Exception, BaseExceptionGroup, _TooLong) as error:
        if not isinstance(error, Exception) and not _is_too_long(error):
            raise
        run.differences.append(_failure(error, most_real_s))
    logged = run.logged if run.differences else []
    return LooperResult(
        case.name, tuple(run.differences), (*run.notes, *logged), is_unserved=run.is_unserved
    )


@attrs.define(eq=False)
class CaseRun:
    """One case under way: its Router, its servers, what differed so far."""

    case: Case
    differences: list[str] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)
    logged: list[str] = attrs.field(factory=list)
    is_unserved: bool = False
    _turn: Turn | None = None
    _answered: dict[str, int] = attrs.field(factory=dict)
    """By model: replies given in this turn."""
    _verified: int = 0
    _unscripted: list[str] = attrs.field(factory=list)
    _tool_call_ids: list[str] = attrs.field(factory=list)
    _classifiers: ScriptedClassifiers = attrs.field(factory=ScriptedClassifiers)
    _native: Mapping[str, str] = attrs.field(factory=dict)

    async def serve(self) -> None:
        """Start everything and run the turns in order, until one differs."""
        network, events = MemoryNetwork(), itertools.count()
        self._native = native_names(self.case)
        backend = ScriptedServer(network, self._reply, events)
        verifier = ScriptedServer(network, self._verify, events)
        async with trio.open_nursery() as nursery:
            await backend.start(nursery)
            await verifier.start(nursery)
            snapshot = self._snapshot(document_of(self.case, backend.port, verifier.port))
            if snapshot is not None:
                router = await start_router(nursery, network, snapshot, runtime=self._classifiers)
                await self._run_turns(router, backend, verifier)
            nursery.cancel_scope.cancel(reason="the case is over")

    def _snapshot(self, document: bytes) -> Snapshot | None:
        name = "document"
        try:
            valid = read_bytes(document, {}, Report(name))
        except ConfigRejected as error:
            self.differences += (f"refused: {problem}" for problem in error.problems)
            return None
        problems = unserved(valid, {}, file=name, gateway=Gateway.STANDALONE)
        if problems:
            self.is_unserved = True
            self.differences += (f"not served: {problem}" for problem in problems)
            return None
        return check_bytes(document, {}, Report(name)).snapshot

    async def _run_turns(
        self, router: RunningRouter, backend: ScriptedServer, verifier: ScriptedServer
    ) -> None:
        for number, turn in enumerate(self.case.turns, 1):
            self._begin(turn)
            found: list[str] = []
            with trio.move_on_after(MOST_VIRTUAL_S) as scope:
                reply = await self._ask(router, turn)
                found += response_differences(turn.expect.get("response") or {}, reply)
                self._tool_call_ids = reply.tool_call_ids() or self._tool_call_ids
            if scope.cancelled_caught:
                found.append(f"response: expected within {MOST_VIRTUAL_S:g} virtual s, got none")
            # So that calls which were left have ended.
            await trio.testing.wait_all_tasks_blocked()
            calls = backend.take_calls()
            found = [
                *self._unscripted,
                *call_differences(turn.expect, calls, self._native),
                *_left_behind(calls),
                *_verifier_differences(turn, verifier.take_calls()),
                *self._evidence_differences(turn),
                *found,
            ]
            where = f"turn {number}: " if len(self.case.turns) > 1 else ""
            self.differences += (where + each for each in found)
            if found:
                return  # what follows would only repeat it

    def _begin(self, turn: Turn) -> None:
        self._turn, self._answered, self._verified, self._unscripted = turn, {}, 0, []
        self._classifiers.grounding = turn.grounding

    async def _ask(self, router: RunningRouter, turn: Turn) -> ClientReply:
        try:
            body = with_tool_call_ids(turn.body, self._tool_call_ids)
        except LookupError:
            self._unscripted.append("request: names a tool call that no earlier turn returned")
            body = turn.body
        data = json.dumps(body, ensure_ascii=False).encode()
        lines: dict[str, str] = {"content-type": "application/json", **turn.headers}
        fields: list[HeaderLine] = [(key.encode(), text.encode()) for key, text in lines.items()]
        connection = await router.connect()
        try:
            head = encode_request(b"POST", turn.path.encode(), AUTHORITY, fields, len(data))
            await connection.send(head + data)
            got = await read_answer(connection, patience_s=2 * MOST_VIRTUAL_S)
        finally:
            connection.close()
        headers = got.head.lines if got.head else []
        found = {key.decode("latin-1"): text.decode("latin-1") for key, text in reversed(headers)}
        return ClientReply(got.status, found, got.body, str(got.end))

    def _reply(self, call: SeenCall) -> Response:
        model = model_of(call, self._native)
        replies = self._turn.backend.get(model, ()) if self._turn else ()
        number = self._answered.get(model, 0)
        self._answered[model] = number + 1
        if number < len(replies):
            return reply_of(replies[number], model)
        message = f"backend: call {number + 1} of {model!r} has no scripted reply"
        self._unscripted.append(message)
        return refusal_of(message)

    def _verify(self, call: SeenCall) -> Response:
        del call
        replies = self._turn.verifier if self._turn else ()
        number, self._verified = self._verified, self._verified + 1
        if number < len(replies):
            return verifier_reply_of(replies[number])
        message = f"verifier: call {number + 1} has no scripted reply"
        self._unscripted.append(message)
        return refusal_of(message)

    def _evidence_differences(self, turn: Turn) -> Iterator[str]:
        if "evidence" in turn.expect:
            # Nothing shows what a failed run has spent, so there is nothing to compare with.
            self.notes.append("evidence is not checked: nothing shows that of a failed run")
        return iter(())


def _left_behind(calls: list[SeenCall]) -> Iterator[str]:
    for at, call in enumerate(calls):
        if call.ended is None:
            yield f"calls[{at}]: expected to have ended with the answer, got one still under way"


def _verifier_differences(turn: Turn, calls: list[SeenCall]) -> Iterator[str]:
    wanted = turn.expect.get("verifier_calls", [] if not turn.verifier else None)
    if wanted is None:
        return
    if len(wanted) != len(calls):
        yield f"verifier_calls: expected {len(wanted)}, got {len(calls)}"
    for at, (entry, call) in enumerate(zip(wanted, calls, strict=False)):
        yield from differences(_VERIFY, call.target, f"verifier_calls[{at}].target")
        yield from differences(entry.get("body", {}), call.body, f"verifier_calls[{at}].body")


def _failure(error: BaseException, most_real_s: float) -> str:
    if _is_too_long(error):
        return f"run: expected to end within {most_real_s:g} s of real time, got no end"
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"run: expected to go through, got {_described(error)}"


def _described(error: BaseException) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = "".join(f" ({Path(each.filename).name}:{each.lineno})" for each in place)
    what = " ".join(str(error).split())
    return f"{type(error).__name__}: {what}{where}"


def _is_too_long(error: BaseException | None) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(map(_is_too_long, error.exceptions))
    if error is None:
        return False
    return isinstance(error, _TooLong) or _is_too_long(error.__cause__ or error.__context__)


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise `_TooLong` wherever the main thread is by then, again and again until it is out."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise _TooLong

    previous = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@contextmanager
def _logged(lines: list[str]) -> Iterator[None]:
    """Collect the errors that the Router logs meanwhile: a bug of its own shows as a plain 500."""
    handler = _ErrorLines(lines)
    log = logging.getLogger("vsr")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


class _ErrorLines(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        what = f": {_described(error)}" if error is not None else ""
        self._lines.append(f"the Router logged {record.getMessage()}{what}")
