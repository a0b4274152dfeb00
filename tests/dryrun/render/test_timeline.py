"""The timeline as a chart of characters."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dryrun.records import call, record
from vsr.dryrun.record import Record, StepRecord
from vsr.dryrun.render.timeline import label, timeline
from vsr.routing.outcome import Cause

TIMES = st.floats(0, 1e5, allow_nan=False)
PATHS = st.text("abc[]0/#é", min_size=1, max_size=90)


def steps(*calls: tuple[str, float, float]) -> tuple[StepRecord, ...]:
    """Return call steps."""
    return tuple(StepRecord(path, "call", start, end) for path, start, end in calls)


def chart(run: Record) -> list[str]:
    """Return the bars alone."""
    return [line[37:63].rstrip() for line in timeline(run)][1:]


def test_bars_lie_where_their_time_is() -> None:
    """Three seconds are 26 columns."""
    run = record(call(1, "a", (0, 1.5)), call(2, "b", (1.5, 3)))
    run = Record(
        "t",
        0,
        run.answer,
        steps(("panel[0]/answer", 0, 1.5), ("panel[1]/answer", 1.5, 3)),
        run.calls,
    )

    assert chart(run) == ["=" * 14, " " * 13 + "=" * 13]


def test_cancelled_bar_ends_with_an_x() -> None:
    """And its note says why."""
    lost = call(1, "a", (0, 3), cause=Cause.LOST)
    run = Record("t", 0, record().answer, steps(("panel[0]/answer", 0, 3)), (lost,))

    assert chart(run) == ["=" * 25 + "x"]
    assert list(timeline(run))[1].endswith("3.000s lost")


def test_labels_show_what_is_in_what() -> None:
    """With the number of the round or branch; a step without a name has none."""
    assert label("panel") == "panel"
    assert label("panel[2]/answer") == " [2] answer"
    assert label("rounds[0]/panel[2]/transform#1") == "  [2]"


@given(
    spans=st.lists(st.tuples(PATHS, TIMES, TIMES, st.booleans()), max_size=5),
    model=st.text(min_size=1, max_size=40, alphabet="mé-"),
)
@settings(max_examples=80, deadline=None)
def test_no_line_is_wider_than_80_columns(
    spans: list[tuple[str, float, float, bool]], model: str
) -> None:
    """Whatever the names and the times."""
    found = []
    calls = []
    for at, (path, one, two, is_cut) in enumerate(spans):
        start, end = sorted((one, two))
        found.append(StepRecord(path, "parallel", start, end, is_cut=is_cut))
        calls.append(call(at + 1, model, (start, end), cause=Cause.CLIENT_GONE if is_cut else None))
    run = Record("t", 0, record().answer, tuple(found), tuple(calls))

    assert all(len(line) <= 80 for line in timeline(run))
