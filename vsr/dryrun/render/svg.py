"""A run as an SVG picture: its timeline."""

from collections.abc import Iterator
from html import escape

from vsr.dryrun.record import CallRecord, Record, StepRecord, critical_path, in_tree_order
from vsr.dryrun.render.timeline import label
from vsr.dryrun.render.words import end_word, outcome, seconds

_ROW, _TOP, _LEFT, _WIDTH, _RIGHT = 22, 56, 320, 560, 170
_TICKS = 5
_LETTER = 8
"""Width of a letter, rounded up."""
_STYLE = """
text { font: 12px ui-monospace, monospace; fill: #222 }
.title { font-weight: bold; font-size: 14px } .dim { fill: #777 }
.grid { stroke: #ddd } .group { fill: #d5dbe3 } .call { fill: #3b78c2 }
.critical { fill: #1f4f8b } .failed { fill: #c8442f } .cut { fill: #b9a14b } .wait { fill: #c9d6e8 }
"""


def render_svg(record: Record) -> str:
    """Return the picture, whole in one element."""
    height = _TOP + _ROW * len(record.steps) + 20
    width = _LEFT + _WIDTH + _RIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        *_body(record, height),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _body(record: Record, height: int) -> Iterator[str]:
    title = f"{record.graph}: {outcome(record)} after {seconds(record.latency_s)}"
    yield _text(10, 20, title, "title")
    total = max([record.latency_s, *(step.ended_s for step in record.steps)]) or 1.0
    for tick in range(_TICKS + 1):
        x = _LEFT + _WIDTH * tick / _TICKS
        yield f'<line class="grid" x1="{x:g}" y1="{_TOP - 8}" x2="{x:g}" y2="{height - 12}"/>'
        yield _text(x, _TOP - 14, seconds(total * tick / _TICKS), "dim")
    calls = {call.step: call for call in record.calls}
    critical = {link.call.ordinal for link in critical_path(record) if link.call is not None}
    for row, step in enumerate(in_tree_order(record.steps)):
        yield from _row(_TOP + _ROW * row, step, calls.get(step.path), (total, critical))


def _row(
    top: int, step: StepRecord, call: CallRecord | None, shared: tuple[float, set[int]]
) -> Iterator[str]:
    total, critical = shared
    indent = step.path.count("/") * 10
    who = step.type if call is None else call.model
    name = f"{label(step.path).strip()} {who}".strip()
    room = max((_LEFT - 10 - indent) // _LETTER, 1)
    yield _text(10 + indent, top + 14, name[:room], "")
    if call is None:
        kind = "failed" if step.failure is not None else "cut" if step.is_cut else "group"
        yield _bar(top, step.started_s, step.ended_s, kind, total)
        return
    word = end_word(call)
    if len(call.attempts) > 1:
        yield _bar(top, call.started_s, call.ended_s, "wait", total)
    good = "critical" if call.ordinal in critical else "call"
    kinds = ["failed"] * (len(call.attempts) - 1)
    kinds.append(good if word == "ok" else "cut" if call.was_cancelled else "failed")
    for attempt, kind in zip(call.attempts, kinds, strict=False):
        yield _bar(top, attempt.started_s, attempt.ended_s, kind, total)
    end = _LEFT + _WIDTH * call.ended_s / total + 6
    yield _text(end, top + 14, f"{seconds(call.ended_s - call.started_s)} {word}", "dim")


def _bar(top: int, start: float, end: float, kind: str, total: float) -> str:
    x = _LEFT + _WIDTH * start / total
    width = max(_WIDTH * (end - start) / total, 2.0)
    return f'<rect class="{kind}" x="{x:.2f}" y="{top + 4}" width="{width:.2f}" height="12"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.2f}" y="{y:g}">{escape(text)}</text>'
