"""Times, money and lists in words, the same in every rendering."""

from collections.abc import Sequence

from vsr.dryrun.record import CallRecord, Record
from vsr.routing.outcome import Cause, Terminal

_LONG_S = 1_000
_NANO = 1e9
_THINGS = ("parameter", "model", "environment variable")
"""Kinds of assumptions that are not about anything else."""
_WHY = {
    Cause.LOST: "lost, nobody waited for it any more",
    Cause.CLIENT_GONE: "the client left",
    Cause.DEADLINE: "its time was over",
    Cause.BUDGET: "the budget was exhausted",
    Cause.DRAIN: "the Router stopped",
}


def why(record: Record, call: CallRecord) -> str:
    """Return the reason for which a call was ended before its time."""
    if call.cause is Cause.LOST:
        around = [
            step
            for step in record.steps
            if step.type == "parallel" and call.step.startswith(f"{step.path}[")
        ]
        if around:
            group = max(around, key=lambda step: len(step.path))
            failed = group.failure is not None
            ended = "had to end: a branch failed" if failed else "had enough"
            return f"lost, {group.path} {ended}"
    return _WHY.get(call.cause, "") if call.cause is not None else ""


def seconds(value: float) -> str:
    """Return a time: `1.250s`."""
    return f"{value:.3f}s" if value < _LONG_S else f"{value:.1f}s"


def dollars(nano_usd: int | None) -> str:
    """Return an amount with as many digits as it needs; `-` where it is unknown."""
    if nano_usd is None:
        return "-"
    amount = nano_usd / _NANO
    text = f"{amount:.6f}".rstrip("0")
    whole, _, digits = text.partition(".")
    return f"${whole}.{digits:0<2}"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 call`, `2 calls`."""
    plural = "ies" if noun == "retry" else "s"
    stem = noun[:-1] if noun == "retry" and number != 1 else noun
    return f"{number} {stem}{'' if number == 1 else plural}"


def joined(names: Sequence[str]) -> str:
    """Return a list in words: `a, b and c`."""
    if len(names) < 2:  # noqa: PLR2004  # nothing to join
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def end_word(call: CallRecord) -> str:
    """Return how a call ended, in at most eleven characters."""
    match call.terminal:
        case Terminal.SUCCEEDED:
            return "ok"
        case Terminal.CANCELLED:
            return {Cause.CLIENT_GONE: "client left"}.get(call.cause, str(call.cause))  # type: ignore[arg-type]  # there is one
        case Terminal.TIMED_OUT:
            return "timed out"
        case None:
            return "open"
    status = call.status or next((a.status for a in reversed(call.attempts) if a.status), None)
    error = call.attempts[-1].error if call.attempts else ""
    return f"failed {status}" if status and not error else "failed"


def outcome(record: Record) -> str:
    """Return what the client got, in few words."""
    answer = record.answer
    match answer.end:
        case "left":
            return "the client left"
        case "never":
            return "no answer"
        case "cut":
            return f"{answer.status or 'nothing'}, cut off"
    return str(answer.status)


def assumptions(record: Record) -> list[str]:
    """Return what was made up, one phrase for things that hold for the same names."""
    by_names: dict[tuple[str, ...], list[str]] = {}
    for kind, names in record.assumed:
        by_names.setdefault(names, []).append(kind)
    phrases = []
    for names, kinds in by_names.items():
        if names == ("",):
            phrases.append(f"the {joined(kinds)}")
        elif kinds[0] in _THINGS and len(kinds) == 1:
            phrases.append(f"{kinds[0]}{'' if len(names) == 1 else 's'} {joined(names)}")
        else:
            made = [kind for kind in kinds if kind != "model"]
            word = joined(made)
            phrases.append(f"{word} of {joined(names)}")
    return phrases
