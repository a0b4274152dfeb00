"""Reasoning of a decision's references, from the resources."""

import pytest

from vsr.codec.edits import Draft
from vsr.codec.envelope import open_envelope
from vsr.engine.plugins.reasoning import cluster_dialect, ref_reasoning
from vsr.resources.cluster import Cluster, Endpoint
from vsr.resources.program import ModelRef
from vsr.resources.reasoning import (
    ReasoningFamily,
    ReasoningKind,
    ReasoningMode,
    ReasoningTransport,
)

EFFORT = ReasoningFamily(ReasoningKind.REASONING_EFFORT, "reasoning_effort")
ENDPOINTS = (Endpoint("e", "api.example.com", 443),)
TOP_LEVEL = Cluster(
    "m",
    ENDPOINTS,
    "m-1",
    reasoning=EFFORT,
    provider="xai",
    reasoning_transport=ReasoningTransport.TOP_LEVEL_EFFORT,
)


@pytest.mark.parametrize(
    ("ref", "default", "mode", "expected"),
    [
        (ModelRef("m"), "high", "off", b'{"a":1}'),
        (ModelRef("m", use_reasoning=True), None, "on", b'{"a":1,"reasoning_effort":"medium"}'),
        (ModelRef("m", use_reasoning=True), "high", "on", b'{"a":1,"reasoning_effort":"high"}'),
        (
            ModelRef("m", reasoning_mode=ReasoningMode.ADAPTIVE, reasoning_effort="low"),
            "high",
            "on",
            b'{"a":1,"reasoning_effort":"low"}',
        ),
        (
            ModelRef("m", use_reasoning=True, reasoning_mode=ReasoningMode.DISABLED),
            "high",
            "off",
            b'{"a":1}',
        ),
    ],
)
def test_reference_says_how_much_to_reason(
    ref: ModelRef, default: str | None, mode: str, expected: bytes
) -> None:
    """Its mode, else its switch; its effort, else the document's, else the family's."""
    draft = Draft(open_envelope(b'{"a":1}'))

    reasoning = ref_reasoning(TOP_LEVEL, ref, default)

    if reasoning.edit is not None:
        draft.merge(reasoning.edit(draft))
    assert reasoning.mode == mode
    assert (draft.body() or b'{"a":1}') == expected


def test_model_without_family_is_reported_but_not_edited() -> None:
    """What the author wished is evidence even where nothing can be done about it."""
    cluster = Cluster("m", ENDPOINTS, "m-1")

    reasoning = ref_reasoning(cluster, ModelRef("m", use_reasoning=True), None)

    assert (reasoning.mode, reasoning.edit) == ("on", None)


def test_dialect_follows_the_first_endpoint() -> None:
    """Older documents call DeepSeek `openai`; a cluster without endpoints has no host."""
    deepseek = Cluster("m", (Endpoint("e", "api.deepseek.com", 443),), "m", provider="openai")
    bare = Cluster("m", (), "m", provider="openai")

    assert cluster_dialect(deepseek).own_members == {"thinking"}
    assert cluster_dialect(bare).own_members == frozenset()
