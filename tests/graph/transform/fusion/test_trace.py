"""Transformer `fusion_trace`."""

import msgspec
import pytest

from vsr.codec.chat_body import ChatBody
from vsr.codec.chat_reply import Reply
from vsr.graph.aggregate.fusion_panel import FailedModel, Panel
from vsr.graph.transform.fusion.analysis import Findings
from vsr.graph.transform.fusion.grounding import Grounded, ReplyScore
from vsr.graph.transform.fusion.settings import FusionSettings, ResolveFusion
from vsr.graph.transform.fusion.trace import TraceFusion
from vsr.graph.value import Inputs

INPUTS = Inputs(ChatBody({}))
PANEL = Panel((Reply("a", "one", "thought"), Reply("b", "two")))
FINDINGS = Findings(consensus=("x",))


def _trace(
    settings: FusionSettings, panel: Panel, grounded: Grounded, findings: Findings | None = None
) -> dict[str, object] | None:
    """Return what a client reads."""
    trace = TraceFusion(settings, panel, grounded, findings)(INPUTS)
    return msgspec.json.decode(msgspec.json.encode(trace), type=dict[str, object] | None)


def _settings(*, analysis: bool = True, responses: bool = True) -> FusionSettings:
    return ResolveFusion(
        model="j",
        analysis_models=("a", "b"),
        include_analysis=analysis,
        include_intermediate_responses=responses,
    )(INPUTS)


def test_trace_shows_how_the_answer_came_about() -> None:
    """Members that have nothing to say are absent; an empty reasoning is no member."""
    trace = _trace(_settings(), PANEL, Grounded(PANEL.replies), FINDINGS)

    assert trace == {
        "analysis": {"consensus": ["x"]},
        "responses": [
            {"model": "a", "content": "one", "reasoning": "thought"},
            {"model": "b", "content": "two"},
        ],
        "judge_model": "j",
        "analysis_models": ["a", "b"],
        "prompt_version": "fusion-v1",
    }


@pytest.mark.parametrize(
    ("shown", "member", "hidden"),
    [
        ({"analysis": False}, "responses", "analysis"),
        ({"responses": False}, "analysis", "responses"),
    ],
)
def test_trace_hides_what_is_switched_off(shown: dict[str, bool], member: str, hidden: str) -> None:
    """Each switch hides its own member."""
    trace = _trace(_settings(**shown), PANEL, Grounded(PANEL.replies), FINDINGS)

    assert trace is not None
    assert member in trace
    assert hidden not in trace


def test_trace_without_an_analysis_has_no_such_member() -> None:
    """An analysis that failed, or was not asked for, is absent and not null."""
    trace = _trace(_settings(), PANEL, Grounded(PANEL.replies))

    assert trace is not None
    assert "analysis" not in trace


def test_hidden_trace_appears_when_something_failed_or_was_scored() -> None:
    """With both switches off a smooth run says nothing; trouble and scores are always shown."""
    settings = _settings(analysis=False, responses=False)
    plain = Grounded(PANEL.replies)
    failed = Panel(PANEL.replies, (FailedModel("c", "status 429"),))
    scores = (ReplyScore("a", 0.5), ReplyScore("b", 0.1, ("a",), dropped=True))
    grounded = Grounded(PANEL.replies[:1], scores, "panel", "filter")

    smooth = _trace(settings, PANEL, plain, FINDINGS)
    trouble = _trace(settings, failed, plain, FINDINGS)
    scored = _trace(settings, PANEL, grounded, FINDINGS)

    assert smooth is None
    assert trouble is not None
    assert trouble["failed_models"] == [{"model": "c", "error": "status 429"}]
    assert "analysis" not in trouble
    assert scored is not None
    assert scored["grounding"] == {
        "reference_mode": "panel",
        "policy": "filter",
        "scores": [
            {"model": "a", "score": 0.5},
            {"model": "b", "score": 0.1, "flagged_spans": ["a"], "dropped": True},
        ],
    }


def test_trace_lists_the_panel_that_the_judge_saw() -> None:
    """Responses are the grounded panel in its order, not all that was said."""
    grounded = Grounded(PANEL.replies[::-1][:1], (ReplyScore("b", 1.0),), "context", "filter")

    trace = _trace(_settings(), PANEL, grounded, FINDINGS)

    assert trace is not None
    assert trace["responses"] == [{"model": "b", "content": "two"}]
