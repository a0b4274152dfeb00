"""From values to the document's classes; refusals stand in the golden documents."""

import pytest

from vsr.config.document.root import Document
from vsr.config.load import load
from vsr.config.report import Report
from vsr.config.structure import structure


def structured(text: str, **environ: str) -> Document:
    """Return the document of a text without faults."""
    report = Report("doc.yaml")
    loaded = load(text.encode(), environ, report)
    assert loaded is not None
    document = structure(loaded.values, report)
    assert report.problems() == ()
    return document


@pytest.mark.parametrize("given", ["8801", "0x2261", "'${NONE:-8801}'", "$PORT", "'${PORT}'"])
def test_whole_reference_stands_for_a_number(given: str) -> None:
    """What the environment gives is typed by the field that takes it."""
    document = structured(f"listeners: [{{port: {given}}}]", PORT="8801")

    assert document.listeners is not None
    assert document.listeners[0].port == 8801


@pytest.mark.parametrize(("given", "expected"), [("true", True), ("FALSE", False)])
def test_whole_reference_stands_for_a_truth_value(given: str, *, expected: bool) -> None:
    """Spelled as YAML 1.2 spells it."""
    text = "global: {router: {include_config_models_in_list: $LIST}}"

    document = structured(text, LIST=given)

    assert document.global_.router.include_config_models_in_list is expected


def test_text_that_looks_like_a_number_stays_text() -> None:
    """A field that takes text is not re-typed, and the environment's text is plain text."""
    document = structured("routing: {decisions: [{name: $NAME}]}", NAME="007")

    assert document.routing.decisions[0].name == "007"
    assert type(document.routing.decisions[0].name) is str


def test_whole_number_stands_for_a_number() -> None:
    """A weight of 2 is 2.0; the reverse is refused."""
    document = structured(
        "routing: {decisions: [{modelRefs: [{weight: 2}, {weight: $W}]}]}", W=".5"
    )

    weights = [ref.weight for ref in document.routing.decisions[0].modelRefs]
    assert weights == [2.0, 0.5]
    assert type(weights[0]) is float


def test_omission_differs_from_an_empty_list() -> None:
    """No listeners at all get the default one; an empty list means none."""
    assert structured("{}").listeners is None
    assert structured("listeners: []").listeners == ()


def test_secrets_are_not_in_the_representation() -> None:
    """A document in a traceback or a log shows no credential."""
    text = """
    listeners: [{api_keys: [canary-client]}]
    providers:
      models:
        - backend_refs: [{api_key: canary-key, extra_headers: {x-a: canary-header}}]
    """

    assert "canary" not in repr(structured(text))
