"""What the models of a scenario do: replies, usage, faults."""

import json
import re
from collections.abc import Mapping
from typing import cast

from vsr.codec.chat_reply import TokenLogprob, ToolCall
from vsr.config.checks import about_unknown
from vsr.config.position import Path, Value
from vsr.config.report import Report
from vsr.config.scalars import read_float, wrong_type
from vsr.config.structure import read_class
from vsr.demo.faults import Fault
from vsr.dryrun.read_times import read_latency, read_time
from vsr.dryrun.scenario import FaultScript, ModelScript, ReplyScript, Turn
from vsr.dryrun.written import (
    WrittenFault,
    WrittenModel,
    WrittenReply,
    WrittenToken,
    WrittenToolCall,
    WrittenTurn,
    WrittenUsage,
)
from vsr.routing.budget import Price
from vsr.routing.outcome import Usage

_WORDS: Mapping[str, Fault | None] = {
    "none": None,
    "reset": Fault.RESET_BEFORE_HEAD,
    "closed": Fault.CLOSE_BEFORE_HEAD,
    "timeout": Fault.SILENCE,
    "truncated": Fault.DROP_MIDSTREAM,
    "stalled": Fault.STALL_MIDSTREAM,
    "garbage": Fault.BAD_STATUS_LINE,
    **{fault.value: fault for fault in Fault if fault is not Fault.STATUS},
}
"""Names of faults: short ones for those that are usual, and every demo fault's own."""
_USUAL = "a status, or one of reset, timeout, truncated, slow_first_byte, stalled, garbage, none"
_FIRST_ERROR = 400
_TOKEN = re.compile(r"\s*\S+|\s+$")
_OTHER_LOGPROB = -2.5
"""Of what could have stood in a token's place, where nothing is said of it."""


def read_model(written: WrittenModel, path: Path, report: Report) -> ModelScript:
    """Return what a model does."""
    price = written.price
    return ModelScript(
        every=_turn(written, path, report),
        calls=tuple(
            _turn(turn, (*path, "calls", at), report) for at, turn in enumerate(written.calls)
        ),
        price=None if price is None else Price(price.prompt_per_1m, price.completion_per_1m),
        is_unreachable=written.unreachable,
    )


def tokens_of(content: str, logprob: float) -> tuple[TokenLogprob, ...]:
    """Return a text's words as tokens that are all equally sure."""
    other = (("?", logprob + _OTHER_LOGPROB),)
    return tuple(
        TokenLogprob(word, logprob, ((word, logprob), *other)) for word in _TOKEN.findall(content)
    )


def _turn(written: WrittenTurn | WrittenModel, path: Path, report: Report) -> Turn:
    usage = cast("Value", written.usage)
    is_untold = usage == "unknown"
    return Turn(
        latency=read_latency(cast("Value", written.latency), (*path, "latency"), report),
        chunk_interval_s=read_time(
            cast("Value", written.chunk_interval), (*path, "chunk_interval"), report
        ),
        reply=_reply(cast("Value", written.reply), (*path, "reply"), report),
        usage=None if is_untold else _usage(usage, (*path, "usage"), report),
        no_usage=is_untold,
        fault=_fault(cast("Value", written.fault), (*path, "fault"), report),
    )


def _usage(value: Value, path: Path, report: Report) -> Usage | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        wrong_type("unknown, or prompt_tokens and completion_tokens", value, path, report)
        return None
    written = read_class(WrittenUsage, value, path, report)
    return Usage(written.prompt_tokens, written.completion_tokens)


def _reply(value: Value, path: Path, report: Report) -> ReplyScript | None:
    if value is None:
        return None
    if isinstance(value, str):
        return ReplyScript(str(value))
    if not isinstance(value, dict):
        wrong_type("a text, or a mapping with content", value, path, report)
        return None
    written = read_class(WrittenReply, value, path, report)
    content = _text(written.content)
    return ReplyScript(
        content,
        written.reasoning,
        tuple(
            _tool_call(call, at, (*path, "tool_calls", at), report)
            for at, call in enumerate(written.tool_calls)
        ),
        _logprobs(cast("Value", written.logprobs), content, (*path, "logprobs"), report),
        written.finish_reason,
    )


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _tool_call(call: WrittenToolCall, at: int, path: Path, report: Report) -> ToolCall:
    if not isinstance(call.arguments, str | dict):
        place = (*path, "arguments")
        wrong_type("a mapping, or JSON as text", cast("Value", call.arguments), place, report)
    return ToolCall(call.id or f"call_{at + 1}", call.name, _text(call.arguments))


def _logprobs(
    value: Value, content: str, path: Path, report: Report
) -> tuple[TokenLogprob, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        return tokens_of(content, read_float(value, path, report))
    tokens = []
    for at, item in enumerate(value):
        token = read_class(WrittenToken, item, (*path, at), report)
        top = tuple(token.top.items()) or ((token.token, token.logprob),)
        tokens.append(TokenLogprob(token.token, token.logprob, top))
    return tuple(tokens)


def _fault(value: Value, path: Path, report: Report) -> FaultScript | None:
    if value is None:
        return None
    if isinstance(value, dict):
        return _whole_fault(read_class(WrittenFault, value, path, report), path, report)
    if isinstance(value, int) and not isinstance(value, bool):
        return _status(value, path, report)
    if isinstance(value, str):
        return FaultScript(_kind(str(value), path, report))
    wrong_type(_USUAL, value, path, report)
    return None


def _whole_fault(written: WrittenFault, path: Path, report: Report) -> FaultScript | None:
    if (written.kind is None) is (written.status is None):
        if not report.is_broken(path):
            report.add_broken(path, "must have one of kind and status", mend=f"kind: {_USUAL}")
        return None
    kind = Fault.STATUS
    if written.kind is not None:
        kind = _kind(written.kind, (*path, "kind"), report) or Fault.STATUS
    late_s = read_time(cast("Value", written.delay), (*path, "delay"), report)
    return FaultScript(
        kind,
        written.status or 503,
        written.retry_after,
        30.0 if late_s is None else late_s,
        written.after_events,
        written.rate,
    )


def _status(status: int, path: Path, report: Report) -> FaultScript | None:
    if not _FIRST_ERROR <= status <= 599:  # noqa: PLR2004  # the last status there is
        report.add_broken(path, f"{status} is no status of a failure", mend="give one from 400")
        return None
    return FaultScript(Fault.STATUS, status)


def _kind(word: str, path: Path, report: Report) -> Fault | None:
    if word not in _WORDS:
        what = f"{report.quote(path)} is unknown"
        report.add_broken(path, what, f"known are {_USUAL}", about_unknown(word, _WORDS)[1])
        return None
    return _WORDS[word]
