"""The settings of fusion as written."""

import json

import msgspec
import pytest

from vsr.errors import InvalidRequest
from vsr.graph.transform.fusion.block import (
    FusionBlock,
    GroundingBlock,
    PanelOverride,
    find_fault,
    merge_block,
    read_plugin,
)


def _raw(plugins: object) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(plugins).encode())


def test_plugin_is_the_first_entry_of_fusion() -> None:
    """Entries of other plugins are not looked into; later ones of fusion are not read."""
    plugins = [
        {"id": "web", "enabled": "maybe", "model": 7},
        {"id": "openrouter:fusion", "model": "judge", "temperature": 0, "unknown": 1},
        {"id": "fusion", "model": 7},
    ]

    assert read_plugin(_raw(plugins)) == FusionBlock(model="judge", temperature=0.0)


@pytest.mark.parametrize(
    "plugins", [None, [], [{"id": "web"}], [{}], [{"id": "fusion", "enabled": False}]]
)
def test_plugin_may_be_absent(plugins: object) -> None:
    """Without an entry of fusion that is on, the configuration counts alone."""
    assert read_plugin(None) is None
    assert read_plugin(_raw(plugins)) is None


def test_plugin_that_is_off_hides_the_next() -> None:
    """The first entry of fusion counts, also to say that nothing changes."""
    plugins = [{"id": "fusion", "enabled": False}, {"id": "fusion", "model": "judge"}]

    assert read_plugin(_raw(plugins)) is None


@pytest.mark.parametrize(
    "plugins",
    [
        {},
        ["fusion"],
        [{"id": 7}],
        [{"id": "fusion", "enabled": "no"}],
        [{"id": "fusion", "analysis_models": "a"}],
        [{"id": "fusion", "analysis_models": [7]}],
        [{"id": "fusion", "analysis_mode": "twice"}],
        [{"id": "fusion", "max_concurrent": -1}],
        [{"id": "fusion", "max_completion_tokens": -1}],
        [{"id": "fusion", "round_timeout_seconds": -1}],
        [{"id": "fusion", "min_successful_responses": -1}],
        [{"id": "fusion", "temperature": -0.1}],
        [{"id": "fusion", "on_error": "retry"}],
        [{"id": "fusion", "analysis_overrides": [{"temperature": 1}]}],
        [{"id": "fusion", "analysis_overrides": [{"model": "a"}, {"model": " a "}]}],
        [{"id": "fusion", "analysis_overrides": [{"model": "a", "temperature": -1}]}],
        [{"id": "fusion", "analysis_overrides": [{"model": "a", "max_completion_tokens": -1}]}],
        [{"id": "fusion", "grounding": {"min_score": 1.5}}],
        [{"id": "fusion", "grounding": {"min_keep": -1}}],
        [{"id": "fusion", "grounding": {"nli_contradiction_penalty": -1}}],
        [{"id": "fusion", "grounding": {"policy": "guess"}}],
    ],
)
def test_malformed_plugin_is_the_clients_fault(plugins: object) -> None:
    """Whatever is malformed is a 400 that names the plugin and comes before any call."""
    with pytest.raises(InvalidRequest) as caught:
        read_plugin(_raw(plugins))

    assert caught.value.status == 400
    assert str(caught.value).startswith("invalid Fusion plugin: ")


def test_negative_count_names_the_field() -> None:
    """The text is the same wherever the setting was written."""
    assert find_fault(FusionBlock(max_concurrent=-1)) == "max_concurrent must be >= 1 when set"
    assert find_fault(FusionBlock(max_concurrent=0, on_error="", temperature=0.0)) is None


def test_plugin_replaces_only_what_it_sets() -> None:
    """Unset, empty and 0 keep the configuration's value; `false` and temperature 0 do not."""
    block = FusionBlock(
        model="judge",
        analysis_models=("a",),
        max_concurrent=3,
        temperature=1.0,
        include_analysis=True,
        grounding=GroundingBlock(enabled=True, policy="filter"),
    )
    plugin = FusionBlock(
        model="",
        analysis_models=(),
        max_concurrent=0,
        temperature=0.0,
        include_analysis=False,
        grounding=GroundingBlock(min_keep=2),
    )

    merged = merge_block(block, plugin)

    assert merged.model == "judge"
    assert merged.analysis_models == ("a",)
    assert merged.max_concurrent == 3
    assert merged.temperature == 0.0
    assert merged.include_analysis is False
    assert merged.grounding == GroundingBlock(min_keep=2)


def test_overrides_merge_by_model_and_field() -> None:
    """A client that limits a model's tokens keeps the author's temperature for it."""
    block = FusionBlock(
        analysis_models=("a", "b"),
        analysis_overrides=(PanelOverride("a", temperature=0.2), PanelOverride("b", 0.3)),
    )
    plugin = FusionBlock(
        analysis_models=("c",),
        analysis_overrides=(
            PanelOverride(" a ", max_completion_tokens=9),
            PanelOverride("c", temperature=0.0),
        ),
    )

    merged = merge_block(block, plugin)

    assert merged.analysis_models == ("c",)
    assert merged.analysis_overrides is not None
    assert {o.model.strip(): o for o in merged.analysis_overrides} == {
        "a": PanelOverride(" a ", 0.2, 9),
        "b": PanelOverride("b", 0.3),
        "c": PanelOverride("c", 0.0),
    }
