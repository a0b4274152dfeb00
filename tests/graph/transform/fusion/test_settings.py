"""Transformer `fusion_settings`."""

import json

import msgspec
import pytest

from vsr.codec.chat_body import ChatBody
from vsr.errors import GraphFailed, InvalidRequest
from vsr.graph.transform.fusion.settings import (
    GroundingSettings,
    PanelMember,
    ResolveFusion,
)
from vsr.graph.value import Inputs, ModelRef

INPUTS = Inputs(ChatBody({}))
REFS = (ModelRef("a", "a"), ModelRef("b", "adapter"), ModelRef("c", "a"))


def _asking(**plugin: object) -> Inputs:
    raw = msgspec.Raw(json.dumps([{"id": "fusion", **plugin}]).encode())
    return Inputs(ChatBody({"plugins": raw}))


def test_settings_without_a_block_come_from_the_candidates() -> None:
    """The candidates as they are called are the panel, the first judges, and all must answer."""
    settings = ResolveFusion(refs=REFS)(INPUTS)

    assert settings.models == ("a", "adapter")
    assert settings.panel == (PanelMember("a"), PanelMember("adapter"))
    assert settings.judge == "a"
    assert (settings.max_concurrent, settings.quorum, settings.iterations) == (2, 2, 4)
    assert settings.models_used == ("a", "adapter")
    assert settings.prompt_version == "fusion-v1"
    assert settings.on_error == "skip"
    assert settings.round_timeout_s is None
    assert settings.grounding is None
    assert settings.include_analysis
    assert settings.include_responses


def test_settings_trim_names_and_leave_out_repetitions() -> None:
    """A name that is blank or was there before adds no call; overrides of others no member."""
    settings = ResolveFusion(
        model=" judge ",
        analysis_models=("x", " ", " y ", "x "),
        analysis_overrides=(
            {"model": " y", "temperature": 0.0},
            {"model": "ghost", "temperature": 0.9},
        ),
        temperature=0.5,
        max_completion_tokens=64,
        max_concurrent=9,
        min_successful_responses=1,
        round_timeout_seconds=3,
    )(INPUTS)

    assert settings.panel == (PanelMember("x", 0.5, 64), PanelMember("y", 0.0, 64))
    assert settings.models_used == ("x", "y", "judge")
    assert (settings.max_concurrent, settings.quorum) == (2, 1)
    assert settings.round_timeout_s == 3.0


@pytest.mark.parametrize(("mode", "calls"), [("separate", 4), ("one_call", 3), ("none", 3)])
def test_settings_count_the_judges_calls(mode: str, calls: int) -> None:
    """A mode without an analysis call makes one call less."""
    settings = ResolveFusion(refs=REFS, analysis_mode=mode)(INPUTS)  # type: ignore[arg-type]

    assert settings.iterations == calls


def test_settings_of_a_fallback_name_its_model() -> None:
    """Blanks around the name are no part of it."""
    settings = ResolveFusion(
        refs=REFS, model="j", quorum_failure_policy="fallback", quorum_fallback_target=" z "
    )(INPUTS)

    assert settings.on_quorum_failure == "fallback"
    assert settings.fallback_model == "z"


def test_grounding_takes_over_the_error_policy() -> None:
    """Grounding that says nothing of errors is as strict as the panel; 0 means the default."""
    written = {"enabled": True, "min_keep": 0, "nli_contradiction_penalty": 0}

    strict = ResolveFusion(refs=REFS, on_failure="fail", grounding=written)(INPUTS)
    mild = ResolveFusion(refs=REFS, on_failure="fail", grounding={**written, "on_error": "skip"})(
        INPUTS
    )
    off = ResolveFusion(refs=REFS, grounding={"policy": "filter"})(INPUTS)

    assert strict.grounding == GroundingSettings(on_error="fail")
    assert mild.grounding == GroundingSettings(on_error="skip")
    assert off.grounding is None


def test_settings_follow_the_clients_plugin_unless_told_not_to() -> None:
    """The plugin stands above the configuration; an author may switch it off."""
    inputs = _asking(model="j2", analysis_models=["b", "a"], temperature=0)

    followed = ResolveFusion(refs=REFS, model="j", temperature=1.0)(inputs)
    ignored = ResolveFusion(refs=REFS, model="j", temperature=1.0, reads_plugin=False)(inputs)

    assert (followed.judge, followed.models, followed.temperature) == ("j2", ("b", "a"), 0.0)
    assert (ignored.judge, ignored.models, ignored.temperature) == ("j", ("a", "adapter"), 1.0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "fusion analysis_models cannot be empty"),
        ({"analysis_models": (" ",)}, "fusion analysis_models cannot be empty"),
        ({"refs": REFS, "on_failure": "retry"}, "fusion on_error must be skip or fail"),
        (
            {"refs": REFS, "model": "vllm-sr/fusion"},
            'fusion model "vllm-sr/fusion" cannot be used as a judge or analysis model',
        ),
        (
            {"analysis_models": ("a", "mine"), "slugs": ("mine",)},
            'fusion model "mine" cannot be used as a judge or analysis model',
        ),
        (
            {
                "refs": REFS,
                "quorum_failure_policy": "fallback",
                "quorum_fallback_target": "vllm-sr/fusion",
            },
            'fusion model "vllm-sr/fusion" cannot be used as a judge or analysis model',
        ),
        (
            {"refs": REFS, "min_successful_responses": 3},
            "fusion min_successful_responses is more than the panel has (2)",
        ),
        (
            {"refs": REFS, "analysis_mode": "none", "analysis_template": "x"},
            "fusion analysis_template has no use in analysis_mode none",
        ),
        (
            {"refs": REFS, "quorum_failure_policy": "fallback"},
            "fusion quorum_fallback_target is required by quorum_failure_policy fallback",
        ),
        (
            {"refs": REFS, "quorum_fallback_target": "z"},
            "fusion quorum_fallback_target needs quorum_failure_policy fallback",
        ),
        (
            {
                "refs": REFS,
                "quorum_failure_policy": "fallback",
                "quorum_fallback_target": " adapter",
            },
            "fusion quorum_fallback_target is a member of the panel",
        ),
        (
            {"refs": REFS, "grounding": {"policy": 7}},
            "fusion settings are malformed: ",
        ),
    ],
)
def test_settings_that_cannot_work_fail_the_run(fields: dict[str, object], message: str) -> None:
    """The author's own faults are found before any call is made."""
    with pytest.raises(GraphFailed) as caught:
        ResolveFusion(**fields)(INPUTS)  # type: ignore[arg-type]

    assert str(caught.value).startswith(message)


def test_conflict_is_the_fault_of_who_made_it() -> None:
    """A client that shrinks the panel below the quorum gets a 400; an author's fault stays one."""
    inputs = _asking(analysis_models=["a"])

    with pytest.raises(InvalidRequest, match=r"^invalid Fusion plugin: min_successful_responses"):
        ResolveFusion(refs=REFS, min_successful_responses=2)(inputs)
    with pytest.raises(GraphFailed):
        ResolveFusion(refs=REFS, quorum_fallback_target="z")(inputs)


def test_settings_may_be_stored_with_a_run() -> None:
    """A suspended run comes back with the settings it was begun with."""
    settings = ResolveFusion(refs=REFS, temperature=0.5, grounding={"enabled": True})(INPUTS)

    stored = msgspec.json.encode(settings)

    assert msgspec.json.decode(stored, type=type(settings)) == settings
