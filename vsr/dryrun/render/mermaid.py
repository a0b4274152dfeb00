"""A run as a Mermaid Gantt diagram."""

import re
from collections.abc import Iterator

from vsr.dryrun.record import CallRecord, Record, critical_path
from vsr.dryrun.render.words import end_word, outcome, seconds

_SPECIAL = re.compile(r"[:;#,]")
"""What means something to Mermaid inside a task's name."""
_MS = 1_000


def render_mermaid(record: Record) -> str:
    """Return the diagram: a section for each step that makes calls, a task for each attempt."""
    return "\n".join(_lines(record)) + "\n"


def _lines(record: Record) -> Iterator[str]:
    title = f"{record.graph} - {outcome(record)} after {seconds(record.latency_s)}"
    yield "gantt"
    yield f"    title {_plain(title)}"
    yield "    dateFormat x"
    yield "    axisFormat %M:%S.%L"
    critical = {link.call.ordinal for link in critical_path(record) if link.call is not None}
    section = None
    for call in record.calls:
        if call.step != section:
            section = call.step
            yield f"    section {_plain(section or call.model)}"
        tags = ["crit"] if call.ordinal in critical else []
        yield from _tasks(call, tags)


def _tasks(call: CallRecord, tags: list[str]) -> Iterator[str]:
    attempts = call.attempts
    if not attempts:
        tag = ", ".join([*tags, "done"])
        start, end = _ms(call.started_s), _ms(call.ended_s)
        yield f"    {_plain(call.model)} {end_word(call)} :{tag}, {start}, {end}"
    for at, attempt in enumerate(attempts):
        is_last = at == len(attempts) - 1
        word = end_word(call) if is_last else attempt.end
        state = "active" if is_last and word == "ok" else "done"
        name = _plain(f"{call.model} {word}")
        start, end = _ms(attempt.started_s), max(_ms(attempt.ended_s), _ms(attempt.started_s) + 1)
        yield f"    {name} :{', '.join([*tags, state])}, {start}, {end}"


def _ms(value: float) -> int:
    return round(value * _MS)


def _plain(text: str) -> str:
    return _SPECIAL.sub(" ", text).replace("\n", " ")
