"""The end of a request: exactly once, and all of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vsr.routing.outcome import Cause, Outcome, Terminal
from vsr.routing.plan import Settlement

SERVED = Outcome(Terminal.SUCCEEDED, status=200)
GONE = Outcome(Terminal.CANCELLED, Cause.CLIENT_GONE)


class StepFailed(Exception):
    """What a failing step raises."""


def test_first_end_counts() -> None:
    """Client, deadline and backend may all end a request at the same time."""
    settlement = Settlement()
    seen: list[Outcome] = []
    settlement.on_finish(seen.append)

    results = [settlement.finish(GONE), settlement.finish(SERVED), settlement.finish(GONE)]

    assert results == [True, False, False]
    assert seen == [GONE]
    assert settlement.outcome is GONE


def test_request_under_way_has_no_outcome() -> None:
    """Nothing is settled before its time."""
    settlement = Settlement()
    settlement.on_finish(lambda _: pytest.fail("ran too early"))

    assert settlement.outcome is None


def test_steps_run_in_reverse_order() -> None:
    """What was set up last is taken down first."""
    log: list[str] = []
    settlement = Settlement(lambda _: log.append("a"), lambda _: log.append("b"))
    settlement.on_finish(lambda _: log.append("c"))

    settlement.finish(SERVED)

    assert log == ["c", "b", "a"]


@given(st.lists(st.booleans(), max_size=8))
def test_all_steps_run_whichever_of_them_fail(failing: list[bool]) -> None:
    """A failing step takes no other one with it, and its failure is told at the end."""
    settlement = Settlement()
    log: list[int] = []

    def make(index: int, *, fails: bool) -> None:
        def step(_: Outcome) -> None:
            log.append(index)
            if fails:
                raise StepFailed

        settlement.on_finish(step)

    for index, fails in enumerate(failing):
        make(index, fails=fails)

    if any(failing):
        with pytest.raises(StepFailed):
            settlement.finish(SERVED)
    else:
        settlement.finish(SERVED)

    assert log == list(reversed(range(len(failing))))
    assert settlement.finish(GONE) is False
    assert len(log) == len(failing)


def test_step_that_ends_the_request_again_changes_nothing() -> None:
    """Taking down may meet code that also wants to end the request."""
    settlement = Settlement()
    log: list[str] = []

    def end_again(_: Outcome) -> None:
        log.append(f"again: {settlement.finish(GONE)}")

    settlement.on_finish(lambda _: log.append("first"))
    settlement.on_finish(end_again)

    assert settlement.finish(SERVED)
    assert log == ["again: False", "first"]
    assert settlement.outcome is SERVED
