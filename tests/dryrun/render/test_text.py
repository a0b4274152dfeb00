"""The report of a run."""

import pytest

from tests.dryrun.small_graphs import ONE_CALL, RACE, run
from vsr.dryrun.render.text import render_text


@pytest.mark.parametrize(
    ("graph", "scenario", "told"),
    [
        (
            RACE,
            "{models: {alpha: {latency: 5s}, beta: {latency: 1s}}}",
            "#1 alpha at 1.000s, after 1.000s: lost, race had enough",
        ),
        (
            RACE.replace("on_error: skip", "on_error: fail"),
            "{models: {alpha: {latency: 5s}, beta: {fault: 500, latency: 1s}}}",
            "#1 alpha at 1.000s, after 1.000s: lost, race had to end: a branch failed",
        ),
        (
            ONE_CALL,
            "{at: {client_leaves: 500ms}}",
            "#1 alpha at 0.500s, after 0.500s: the client left",
        ),
        (
            f"limits: {{timeout: 2s}}{ONE_CALL}",
            "{models: {alpha: {latency: 1h}}}",
            "#1 alpha at 2.000s, after 2.000s: its time was over",
        ),
    ],
)
def test_cancellation_is_told_with_its_reason(graph: str, scenario: str, told: str) -> None:
    """In words, not in codes."""
    assert told in render_text(run(graph, scenario))


def test_refused_retry_is_told() -> None:
    """The budget is why there was none."""
    graph = "limits: {max_hops: 1}" + ONE_CALL.replace(
        "alpha}", "alpha, reliability: {retry_count: 1, retry_on: 5xx}}"
    )

    text = render_text(run(graph, "{models: {alpha: {fault: 503}}}"))

    assert "the budget refused one try more" in text


def test_long_answer_is_cut_and_said_to_be() -> None:
    """The JSON form has all of it."""
    text = render_text(run(ONE_CALL, f"{{models: {{alpha: {{reply: '{'word ' * 400}'}}}}}}"))

    assert "more" in text.split("ANSWER")[1]
    assert max(map(len, text.splitlines())) <= 80
