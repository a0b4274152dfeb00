"""The timeline of a run as a chart of characters."""

from collections.abc import Iterator, Mapping

import msgspec

from vsr.dryrun.record import CallRecord, Record, StepRecord, in_tree_order
from vsr.dryrun.render.words import end_word, seconds

NAME_COLUMNS, WHO_COLUMNS, CHART_COLUMNS, NOTE_COLUMNS = 24, 11, 26, 16
_MAX_TICKS = 5
_NICE = (1, 2, 5, 10)
LEGEND = "= at work  . waits to retry  ! failed  x cancelled  - around others  | at once"


def timeline(record: Record) -> Iterator[str]:
    """Yield the lines: an axis, and a row for each step."""
    total = _total(record)
    scale = _Scale(total)
    head = f"{'TIMELINE':<{NAME_COLUMNS}} {'':<{WHO_COLUMNS}} "
    yield (head + scale.axis()).rstrip()
    calls = {call.step: call for call in record.calls}
    for step in in_tree_order(record.steps):
        yield _row(step, calls, scale).rstrip()


def _total(record: Record) -> float:
    ends = [step.ended_s for step in record.steps] + [call.ended_s for call in record.calls]
    return max([record.latency_s, *ends])


def _row(step: StepRecord, calls: Mapping[str, CallRecord], scale: "_Scale") -> str:
    name = _short(label(step.path), NAME_COLUMNS)
    call = calls.get(step.path)
    if call is None:
        who, bar, note = step.type, scale.span(step), _note(step)
    else:
        who, bar, note = call.model, scale.call(call), _call_note(call)
    cells = (
        f"{name:<{NAME_COLUMNS}}",
        f"{_short(who, WHO_COLUMNS):<{WHO_COLUMNS}}",
        f"{bar:<{CHART_COLUMNS}}",
        _short(note, NOTE_COLUMNS),
    )
    return " ".join(cells)


def label(path: str) -> str:
    """Return a step's name, indented by what it is in, with the number of its round or branch."""
    parts = path.split("/")
    indent = " " * (len(parts) - 1)
    number = parts[-2][parts[-2].index("[") :] if len(parts) > 1 and "[" in parts[-2] else ""
    name = parts[-1]
    return f"{indent}{number}{' ' if number else ''}{'' if '#' in name else name}".rstrip()


def _note(step: StepRecord) -> str:
    took = step.ended_s - step.started_s
    word = "failed" if step.failure is not None else "cut" if step.is_cut else ""
    return f"{seconds(took) if took >= 0.0005 else ''} {word}".strip()  # noqa: PLR2004  # half a ms


def _call_note(call: CallRecord) -> str:
    word = end_word(call)
    took = seconds(call.ended_s - call.started_s)
    return took if word == "ok" else f"{took} {word.split()[-1]}"


def _short(text: str, columns: int) -> str:
    return text if len(text) <= columns else f"{text[: columns - 1]}~"


class _Scale(msgspec.Struct, frozen=True):
    """From seconds to columns."""

    total: float

    def column(self, at: float) -> int:
        """Return the column of an instant."""
        if self.total <= 0:
            return 0
        return min(int(at / self.total * CHART_COLUMNS), CHART_COLUMNS - 1)

    def axis(self) -> str:
        """Return round times over their columns."""
        line = [" "] * (CHART_COLUMNS + NOTE_COLUMNS)
        step = self._step()
        at, number = 0, 0
        while number * step <= self.total and self.total > 0:
            text = f"{number * step:g}s"
            column = self.column(number * step)
            if column >= at or number == 0:
                line[column : column + len(text)] = text
                at = column + len(text) + 1
            number += 1
        return "".join(line).rstrip()

    def _step(self) -> float:
        size = 1e-9
        while True:
            for nice in _NICE[:3]:
                if self.total / (nice * size) <= _MAX_TICKS:
                    return nice * size
            size *= 10

    def span(self, step: StepRecord) -> str:
        """Return the bar of a step that is no call."""
        first, last = self.column(step.started_s), self.column(step.ended_s)
        if step.ended_s - step.started_s < self.total / CHART_COLUMNS / 2:
            bar = "!" if step.failure is not None else "|"
        else:
            bar = "-" * (last - first + 1)
            if step.is_cut:
                bar = f"{bar[:-1]}x"
            elif step.failure is not None:
                bar = f"{bar[:-1]}!"
        return " " * first + bar

    def call(self, call: CallRecord) -> str:
        """Return the bar of a call: its attempts, the waits between them, how it ended."""
        first, last = self.column(call.started_s), self.column(call.ended_s)
        bar = ["."] * (last - first + 1)
        for attempt in call.attempts:
            begin, end = self.column(attempt.started_s), self.column(attempt.ended_s)
            for at in range(begin, end + 1):
                if 0 <= at - first < len(bar):
                    bar[at - first] = "="
        for attempt in call.attempts[:-1]:
            bar[max(self.column(attempt.ended_s) - first, 0)] = "!"
        word = end_word(call)
        if word not in {"ok", "open"}:
            bar[-1] = "x" if call.was_cancelled else "!"
        return " " * first + "".join(bar)
