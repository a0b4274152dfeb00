"""Algorithms that ask several models: what all of them give, their settings, their names."""

import pytest

from tests.config.looper_documents import MIB, call_of, checked
from vsr.config.report import Report
from vsr.config.source import Checked, check_bytes
from vsr.resources.graph import CallBudget
from vsr.resources.looper import LooperSettings, RedisStore, StateBackend, StateStore
from vsr.resources.program import ModelRef
from vsr.resources.route import Route


@pytest.mark.parametrize("kind", ["confidence", "ratings", "remom", "fusion"])
def test_every_algorithm_gives_candidates_contract_and_limits(kind: str) -> None:
    """And calls the built-in graph of its name."""
    more = (
        "output_contract: ' As JSON. '\n      output_contract_spec: {type: choice, "
        "choice_set: {values: [x, y]}, render: {mode: template, template: '<{choice}>'}}"
    )

    call = call_of(checked(kind, more=more, looper="timeout_seconds: 9, max_response_bytes_mb: 1"))

    assert call.graph == f"builtin/{kind}"
    assert call.budget == CallBudget()
    assert call.params["models"] == (
        ModelRef("a", weight=2.0),
        ModelRef("b", lora_name="law", use_reasoning=True, says_reasoning=True),
    )
    assert call.params["output_contract"] == "As JSON."
    assert call.params["output_contract_spec"] == {
        "type": "choice",
        "choices": ["x", "y"],
        "schema_ref": None,
        "id_format": "index",
        "render": {"mode": "template", "template": "<{choice}>"},
        "extract": {"mode": "exact", "sources": ["content"]},
        "postprocess": [],
        "choice": {"values": ["x", "y"], "sources": ["content"], "template": "<{choice}>"},
        "json_action": None,
    }
    looper = call.params["looper"]
    assert isinstance(looper, dict)
    names = {"remom": ["vllm-sr/remom"], "fusion": ["vllm-sr/fusion"]}.get(kind, [])
    assert looper == {"timeout_seconds": 9.0, "max_response_bytes": MIB, "names": names}


@pytest.mark.parametrize(
    ("spec", "choice", "action"),
    [
        (
            (
                "type: choice, choice_set: {values: [x]}, render: {template: '<{choice}>'}, "
                "extract: {sources: [reasoning_content]}"
            ),
            {"values": ["x"], "sources": ["reasoning_content"], "template": None},
            None,
        ),
        (
            (
                "type: structured_json, json_schema: {schema_ref: terminal_action_v1}, "
                "extract: {mode: json_object, sources: [content, candidate_responses]}"
            ),
            None,
            {"mode": "json_object", "sources": ["content", "candidate_responses"]},
        ),
        (
            (
                "type: reference_selection, reference: {source: candidate_responses}, "
                "postprocess: [{type: dereference_selected_reference}]"
            ),
            None,
            None,
        ),
    ],
)
def test_contract_is_ready_for_what_brings_answers_under_it(
    spec: str, choice: object, action: object
) -> None:
    """A template that is not the way to show a value is none."""
    call = call_of(checked("fusion", more=f"output_contract_spec: {{{spec}}}"))

    contract = call.params["output_contract_spec"]
    assert isinstance(contract, dict)
    assert (contract["choice"], contract["json_action"]) == (choice, action)


def test_algorithm_knows_the_names_that_are_written_for_it() -> None:
    """So that none of its models is itself."""
    call = call_of(checked("fusion", looper="fusion: {model_names: [' f ', g]}"))

    looper = call.params["looper"]
    assert isinstance(looper, dict)
    assert looper["names"] == ["f", "g"]


def test_contract_keeps_what_is_written() -> None:
    """What the reference accepts and does not use is left out."""
    more = (
        "output_contract_spec: {type: reference_selection, "
        "reference: {source: candidate_responses, id_format: reference_number}, "
        "extract: {sources: [content, reasoning_content]}, normalize: {defaults: {a: b}}, "
        "postprocess: [{type: dereference_selected_reference}]}"
    )

    call = call_of(checked("remom", more=more))

    assert call.params["output_contract_spec"] == {
        "type": "reference_selection",
        "choices": [],
        "schema_ref": None,
        "id_format": "reference_number",
        "render": {"mode": "value", "template": None},
        "extract": {"mode": "exact", "sources": ["content", "reasoning_content"]},
        "postprocess": ["dereference_selected_reference"],
        "choice": None,
        "json_action": None,
    }


def test_contract_of_an_algorithm_that_has_none_is_warned_of() -> None:
    """It is accepted, as by the reference, but not as its author may think."""
    assert [each.path for each in checked("ratings", more="output_contract: x").warnings] == [
        "routing.decisions[0].output_contract"
    ]
    assert checked("remom", more="output_contract: x").warnings == ()


@pytest.mark.parametrize(
    ("kind", "refs", "graphs"),
    [
        ("confidence", "[{model: a}]", 0),
        ("ratings", "[{model: a}]", 0),
        ("remom", "[{model: a}]", 1),
        ("fusion", "[{model: a}]", 1),
        ("remom", "[]", 0),
        ("fusion", "[]", 0),
    ],
)
def test_too_few_candidates_are_answered_by_one_model(kind: str, refs: str, graphs: int) -> None:
    """As in the reference; who wrote some is warned."""
    result = checked(kind, refs=refs)

    [decision] = result.snapshot.programs[0].decisions
    assert decision.algorithm.type == kind
    assert (decision.algorithm.graph is not None) == bool(graphs)
    warned = ["routing.decisions[0].algorithm.type"] if not graphs and refs != "[]" else []
    assert [each.path for each in result.warnings] == warned


def test_settings_of_all_algorithms_have_the_reference_s_defaults() -> None:
    """Without any block, and where a number is none."""
    nothing = checked("remom").snapshot.settings.looper
    unset = checked("remom", looper="timeout_seconds: 0, max_response_bytes_mb: 0")

    assert nothing == LooperSettings()
    assert (nothing.call_timeout_s, nothing.max_response_bytes) == (1200.0, 32 * MIB)
    assert unset.snapshot.settings.looper == LooperSettings(call_timeout_s=30.0)


def test_settings_of_all_algorithms_are_kept() -> None:
    """Headers may be secrets: they are in no text, and in no value of a graph."""
    looper = (
        "headers: {x-team: canary}, flow: {state: {store_backend: memory, ttl_seconds: 5, "
        "file: {directory: /var/x}, redis: {address: 'r:1', db: 2, password: canary, "
        "use_tls: true, tls_skip_verify: true, max_retries: 4, pool_size: 6, key_prefix: p}}}"
    )

    result = checked("remom", looper=looper)

    settings = result.snapshot.settings.looper
    assert settings.headers == {"x-team": "canary"}
    assert settings.state == StateStore(
        StateBackend.MEMORY,
        5.0,
        "/var/x",
        RedisStore(
            "r:1",
            2,
            "canary",
            use_tls=True,
            tls_skip_verify=True,
            max_retries=4,
            pool_size=6,
            key_prefix="p",
        ),
    )
    assert "canary" not in repr(result.snapshot)


def listed(result: Checked) -> list[Route]:
    """Return the names that run only an algorithm's decisions."""
    return [route for route in result.snapshot.routes if route.algorithm is not None]


@pytest.mark.parametrize(
    ("kind", "block", "name"),
    [
        ("remom", "", "vllm-sr/remom"),
        ("fusion", "", "vllm-sr/fusion"),
        ("workflows", "mode: dynamic, planner: {model: a}", "vllm-sr/flow"),
    ],
)
def test_algorithm_with_a_decision_has_a_name(kind: str, block: str, name: str) -> None:
    """Others have none: nobody could answer."""
    assert listed(checked(kind, block)) == [Route(name, "default", algorithm=kind)]
    assert listed(checked("ratings")) == []


def test_names_that_are_written_take_the_place_of_the_default() -> None:
    """They are there without a decision too; only fusion's are then listed."""
    looper = (
        "remom: {model_names: [' r1 ', r2]}, fusion: {model_names: [f]}, flow: {model_names: []}"
    )

    routes = listed(checked("remom", looper=looper))

    assert routes == [
        Route("r1", "default", algorithm="remom"),
        Route("r2", "default", algorithm="remom"),
        Route("f", "default", algorithm="fusion"),
    ]
    assert [route.is_listed for route in listed(checked("ratings", looper=looper))] == [
        False,
        False,
        True,
    ]


def test_names_run_decisions_of_the_default_recipe_alone() -> None:
    """Also where a recipe is written that takes its place."""
    decision = "{name: d, modelRefs: [{model: a}], algorithm: {type: remom}}"
    text = (
        "providers: {{models: [{{name: a, backend_refs: [{{endpoint: '10.0.0.1'}}]}}]}}\n"
        "recipes: [{{name: {name}, routing: {{decisions: [{decision}]}}}}]"
    )

    def names(recipe: str) -> list[str]:
        data = text.format(name=recipe, decision=decision).encode()
        return [each.model_name for each in listed(check_bytes(data, {}, Report("doc.yaml")))]

    assert names("other") == []
    assert names("default") == ["vllm-sr/remom"]


def test_models_carry_what_algorithms_order_them_by() -> None:
    """Size of the card, score of its operator, name of the family, prices."""
    text = """
        providers:
          models:
            - name: a
              reasoning: {family: qwen3}
              pricing: {prompt_per_1m: 2}
              backend_refs: [{endpoint: "10.0.0.1"}]
            - {name: b, backend_refs: [{endpoint: "10.0.0.2"}]}
        routing: {modelCards: [{name: a, param_size: 7b}]}
        evaluation:
          records:
            - {model: a, benchmark: vllm-sr/operator-rating@1.0.0, metrics: {score: 0.4}}
            - {model: a, benchmark: other/bench@1, metrics: {score: 0.9}}
            - {model: b, benchmark: vllm-sr/operator-rating@1.0.0, metrics: {score: 1.5}}
    """

    known, unknown = check_bytes(text.encode(), {}, Report("doc.yaml")).snapshot.clusters

    assert (known.param_size, known.quality_score, known.reasoning_family) == ("7b", 0.4, "qwen3")
    assert known.pricing is not None
    assert known.pricing.prompt_per_1m == 2
    assert (unknown.param_size, unknown.quality_score, unknown.reasoning_family) == (
        None,
        None,
        None,
    )
    assert [known.is_described, unknown.is_described] == [True, False]


RATING = "vllm-sr/operator-rating@1.0.0"


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("", "routing: {modelCards: [{name: a}]}"),
        (", pricing: {prompt_per_1m: 0}", ""),
        (
            "",
            f"evaluation: {{records: [{{model: a, benchmark: {RATING}, metrics: {{score: 0}}}}]}}",
        ),
    ],
)
def test_model_is_described_by_a_card_a_price_or_a_score(model: str, more: str) -> None:
    """Even where they say next to nothing: orders put such a model elsewhere than an unknown."""
    text = f"""
        listeners: [{{name: http, address: 127.0.0.1, port: 8899}}]
        providers:
          models: [{{name: a, backend_refs: [{{endpoint: "10.0.0.1"}}]{model}}}]
        {more}
    """

    [cluster] = check_bytes(text.encode(), {}, Report("doc.yaml")).snapshot.clusters

    assert cluster.is_described
