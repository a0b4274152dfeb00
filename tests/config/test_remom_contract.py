"""What the output contract of a decision gives the graph of remom."""

from typing import Any

import pytest

from tests.config.looper_documents import call_of, checked

NOTHING = {
    "is_json_action": False,
    "json_action": None,
    "reference_id_format": None,
    "reference_sources": ["content"],
}
ACTION = "type: structured_json, json_schema: {schema_ref: terminal_action_v1}"
FROM_CANDIDATES = "type: reference_selection, reference: {source: candidate_responses"
REPLACED = "postprocess: [{type: dereference_selected_reference}]"


def given(spec: str) -> dict[str, Any]:
    """Return what the graph is told of a contract."""
    call = call_of(checked("remom", more=f"output_contract_spec: {{{spec}}}"))
    return {name: call.params[name] for name in NOTHING}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("type: choice, choice_set: {values: [A, B]}", {}),
        (ACTION, {"json_action": {"mode": "exact", "sources": ["content"]}}),
        (
            ACTION + ", extract: {mode: json_object, sources: [candidate_responses, content]}",
            {"json_action": {"mode": "json_object", "sources": ["candidate_responses", "content"]}},
        ),
        (FROM_CANDIDATES + "}, " + REPLACED, {"reference_id_format": "index"}),
        (
            FROM_CANDIDATES
            + ", id_format: reference_number}, extract: {sources: [reasoning_content]}, "
            + REPLACED,
            {
                "reference_id_format": "reference_number",
                "reference_sources": ["reasoning_content"],
            },
        ),
    ],
)
def test_remom_is_told_of_contracts_that_it_knows(spec: str, told: dict[str, Any]) -> None:
    """An action and a reference; a choice is left to the algorithms that let models vote."""
    is_action = "json_action" in told

    assert given(spec) == {**NOTHING, **told, "is_json_action": is_action}


def test_a_reference_that_nothing_follows_has_no_effect() -> None:
    """Without the step that puts the candidate in the number's place the number stays."""
    assert given(FROM_CANDIDATES + ", id_format: index}") == NOTHING


def test_remom_without_a_contract_is_told_of_none() -> None:
    """The parameters are there all the same."""
    call = call_of(checked("remom"))

    assert {name: call.params[name] for name in NOTHING} == NOTHING
