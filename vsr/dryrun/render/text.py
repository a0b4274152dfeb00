"""A run as text of 80 columns, without colour."""

import textwrap
from collections.abc import Iterator

from vsr.dryrun.record import CallRecord, Record, critical_path
from vsr.dryrun.render.timeline import LEGEND, timeline
from vsr.dryrun.render.words import (
    assumptions,
    count,
    dollars,
    end_word,
    outcome,
    seconds,
    why,
)

COLUMNS = 80
_MODEL_COLUMNS = 16
_MAX_ANSWER_LINES = 12
_NANO = 1e9
_ORDINALS = ("1st", "2nd", "3rd")


def render_text(record: Record) -> str:
    """Return the whole report."""
    parts = [
        _summary(record),
        [*timeline(record), f"  {LEGEND}"[:COLUMNS]] if record.steps else [],
        _calls(record),
        _retries(record),
        _policies(record),
        _failures(record),
        _cancelled(record),
        _critical(record),
        _budget(record),
        _assumed(record),
        _answer(record),
        _headers(record),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _summary(record: Record) -> list[str]:
    totals = record.totals
    told = [count(len(record.calls), "call")]
    extra = totals.attempts - len(record.calls)
    if extra > 0:
        told.append(count(extra, "retry"))
    told.append(count(totals.tokens, "token"))
    if totals.nano_usd is not None:
        told.append(dollars(totals.nano_usd))
    first = (
        f"{record.graph}: {outcome(record)} after {seconds(record.latency_s)}, {', '.join(told)}"
    )
    seed = f"A dry run: virtual time, scripted models, seed {record.seed}."
    if not record.is_dry:
        seed = "A real run."
    if record.decision is not None:
        seed += f" Parameters of decision {record.decision}."
    return [*_wrapped(first, ""), *_wrapped(seed, "")]


def _calls(record: Record) -> list[str]:
    if not record.calls:
        return []
    assumed = dict(record.assumed)
    head = ("#", "model", "start", "took", "tries", "in", "out", "cost", "end")
    lines = ["CALLS", _call_line(head)]
    for call in record.calls:
        mark = "~" if call.model in assumed.get("usage", ()) else ""
        cells = (
            str(call.ordinal),
            call.model,
            seconds(call.started_s),
            seconds(call.ended_s - call.started_s),
            str(len(call.attempts)),
            "-" if call.prompt_tokens is None else f"{mark}{call.prompt_tokens}",
            "-" if call.completion_tokens is None else f"{mark}{call.completion_tokens}",
            dollars(call.nano_usd),
            end_word(call),
        )
        lines.append(_call_line(cells))
    return lines


def _call_line(cells: tuple[str, ...]) -> str:
    ordinal, model, start, took, tries, prompt, output, cost, end = cells
    if len(model) > _MODEL_COLUMNS:
        model = f"{model[: _MODEL_COLUMNS - 1]}~"
    return (
        f"{ordinal:>3} {model:<{_MODEL_COLUMNS}} {start:>8} {took:>8} {tries:>5} "
        f"{prompt:>6} {output:>6} {cost:>9} {end}"
    ).rstrip()


def _retries(record: Record) -> list[str]:
    retried = [call for call in record.calls if len(call.attempts) > 1 or call.is_refused]
    return ["RETRIES", *(line for call in retried for line in _tries(call))] if retried else []


def _tries(call: CallRecord) -> Iterator[str]:
    before: float | None = None
    for at, attempt in enumerate(call.attempts):
        name = f"#{call.ordinal} {call.model}" if at == 0 else ""
        waited = "" if before is None else f" (waited {seconds(attempt.started_s - before)})"
        number = _ORDINALS[at] if at < len(_ORDINALS) else f"{at + 1}th"
        took = seconds(attempt.ended_s - attempt.started_s)
        text = f"{number} at {seconds(attempt.started_s)}{waited}: {attempt.end} in {took}"
        yield from _wrapped(f"{name[:20]:<20} {text}", "  ", " " * 23)
        before = attempt.ended_s
    if call.is_refused:
        yield f"{'':>23}the budget refused one try more"


def _policies(record: Record) -> list[str]:
    lines = []
    for note in record.policies:
        times = "once" if note.count == 1 else f"{note.count} times"
        what = f"{note.what} refused" if note.did == "refused" else f"ejected {note.what}"
        lines += _wrapped(f"{note.model}: {what} {times}", "  ", "    ")
    return ["POLICIES", *lines] if lines else []


def _failures(record: Record) -> list[str]:
    lines = []
    for step in record.steps:
        if step.failure is not None:
            lines += _wrapped(f"{step.path}: {step.failure}", "  ", "    ")
    return ["FAILED", *lines] if lines else []


def _cancelled(record: Record) -> list[str]:
    lines: list[str] = []
    for call in record.calls:
        if call.cause is None:
            continue
        ran = seconds(call.ended_s - call.started_s)
        text = (
            f"#{call.ordinal} {call.model} at {seconds(call.ended_s)}, "
            f"after {ran}: {why(record, call)}"
        )
        lines += _wrapped(text, "  ", "    ")
    if not lines:
        return []
    if record.cut_delays_s:
        worst = f"{max(record.cut_delays_s) * 1000:.3f}".rstrip("0").rstrip(".")
        lines.append(f"  The backends saw their connections close within {worst} ms.")
    if record.open_calls:
        lines.append(f"  {count(record.open_calls, 'call')} still at work at the backends")
    return ["CANCELLED", *lines]


def _critical(record: Record) -> list[str]:
    links = critical_path(record)
    if not any(link.call for link in links):
        return []
    lines = ["CRITICAL PATH"]
    for link in links:
        took = link.ended_s - link.started_s
        what = "no call"
        if link.call is not None:
            what = f"#{link.call.ordinal} {link.call.model}  {link.call.step}"
        elif took < 0.0005:  # noqa: PLR2004  # not to be seen
            continue
        share = took / record.latency_s if record.latency_s else 0.0
        line = f"  {seconds(link.started_s):>9} {seconds(took):>9} {share:>5.0%}  {what}"
        lines.append(line[:COLUMNS].rstrip())
    return lines


def _budget(record: Record) -> list[str]:
    totals, ceilings = record.totals, record.ceilings
    rows: list[tuple[str, str, str | None, str | None]] = [
        ("attempts", str(totals.attempts), None, _told(ceilings.max_hops))
    ]
    is_assumed = any(kind == "usage" for kind, _ in record.assumed)
    mark = "~" if is_assumed and totals.tokens else ""
    rows.append(
        (
            "tokens",
            f"{mark}{totals.tokens}",
            _told(totals.reserved_tokens),
            _told(ceilings.max_tokens),
        )
    )
    reserved_usd = totals.reserved_nano_usd
    limit_usd = ceilings.max_nano_usd
    if totals.nano_usd is not None or limit_usd is not None:
        rows.append(
            (
                "cost",
                f"{mark}{dollars(totals.nano_usd)}",
                None if reserved_usd is None else dollars(reserved_usd),
                None if limit_usd is None else dollars(limit_usd),
            )
        )
    lines = ["BUDGET           spent             reserved         limit"]
    for name, spent, reserved, limit in rows:
        lines.append(f"  {name:<14} {spent:<17} {reserved or '-':<16} {limit or '-'}".rstrip())
    if totals.unknown_usage:
        told = f"{count(totals.unknown_usage, 'call')} did not say what was used"
        if totals.reserved_tokens is not None:
            told += "; what was reserved counts"
        lines.append(f"  {'':<14} {told}")
    remaining = record.remaining_s
    if remaining is not None and ceilings.deadline_s is not None:
        left = f"{seconds(ceilings.deadline_s)}, {seconds(remaining)} left"
        lines.append(f"  {'time':<14} {seconds(record.latency_s):<17} {'-':<16} {left}")
    return lines


def _told(number: int | None) -> str | None:
    return None if number is None else str(number)


def _assumed(record: Record) -> list[str]:
    phrases = assumptions(record)
    if not phrases:
        return []
    lines = []
    for phrase in phrases:
        lines += _wrapped(phrase, "  ", "    ")
    return ["ASSUMED, since nobody says (~)", *lines]


def _answer(record: Record) -> list[str]:
    answer = record.answer
    lines = [f"ANSWER  {outcome(record)}"]
    if answer.first_byte_s is not None:
        lines[0] += f", first byte at {seconds(answer.first_byte_s)}"
        lines[0] += " (a comment)" if answer.body.startswith(":") else ""
    said = [line for part in answer.text.splitlines() for line in _wrapped(part, "  ")]
    lines += said[:_MAX_ANSWER_LINES]
    if len(said) > _MAX_ANSWER_LINES:
        lines.append(f"  ... and {count(len(said) - _MAX_ANSWER_LINES, 'line')} more")
    for name, arguments in answer.tool_calls:
        lines += _wrapped(f"calls {name}({arguments})", "  ", "    ")
    return lines


def _headers(record: Record) -> list[str]:
    lines = [f"  {name}: {value}" for name, value in record.answer.headers]
    short = [line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1]}~" for line in lines]
    return ["HEADERS", *short] if short else []


def _wrapped(text: str, indent: str, further: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        COLUMNS,
        initial_indent=indent,
        subsequent_indent=indent if further is None else further,
        break_long_words=True,
        break_on_hyphens=False,
    )
