"""Which graph a dry run is about, and the configuration around it."""

from pathlib import Path

import pytest

from tests.dryrun.small_graphs import scenario_of
from vsr.commands.virtual_router import start_virtual_router
from vsr.dryrun.record import Record
from vsr.dryrun.run import dry_run
from vsr.dryrun.scenario import Scenario
from vsr.dryrun.subject import Subject, Wanted, find_subject
from vsr.engine.shipped import BUILTIN
from vsr.errors import ConfigRejected
from vsr.routing.outcome import Terminal

DOCUMENT = """\
version: v0.3
providers:
  defaults: {model: small}
  models:
    - name: small
      pricing: {prompt_per_1m: 1, completion_per_1m: 2}
      backend_refs: [{base_url: "https://api.one.example/v1", api_key: secret-1}]
      reliability: {retry_count: 1, retry_on: 5xx}
    - name: large
      backend_refs:
        - {base_url: "https://api.one.example/v1", api_key: secret-1}
        - {endpoint: "h2.internal:8000", http_version: "2"}
    - name: claude
      api_format: anthropic
      backend_refs: [{provider: anthropic, api_key: secret-2}]
routing:
  decisions:
    - name: hard
      rules: {operator: AND, conditions: []}
      modelRefs: [{model: small}, {model: large}]
      algorithm: {type: graph, graph: two, params: {first: small, second: claude}}
  graphs:
    two: &two
      params: {first: {type: model}, second: {type: model}}
      limits: {max_tokens: 50000}
      steps:
        - {id: draft, type: call, model: $params.first}
        - {id: final, type: call, model: $params.second, stream: tail}
        - {type: respond, from: $final}
recipes:
  - name: other
    routing:
      graphs: {two: *two}
"""


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """Return the file of the document."""
    file = tmp_path / "doc.yaml"
    file.write_text(DOCUMENT, encoding="utf-8")
    return file


def find(graph: str, config: Path | None = None, scenario: str = "{}", **params: object) -> Subject:
    """Return the subject."""
    return find_subject(
        Wanted(graph, config, params), scenario_of(scenario), BUILTIN.find_graph, {}
    )


def run(subject: Subject, scenario: str = "{}") -> Record:
    """Dry-run it."""
    return dry_run(subject, scenario_of(scenario), 0, start_virtual_router)


def test_graph_of_a_document_has_its_decision_s_part(document: Path) -> None:
    """Parameters are those that the decision gives; models, prices and policies the document's."""
    subject = find("two", document)

    record = run(subject, "{models: {small: {calls: [{fault: 503}]}}}")

    assert (subject.decision, subject.assumed) == ("hard", ())
    assert [call.model for call in record.calls] == ["small", "claude"]
    assert [attempt.end for attempt in record.calls[0].attempts] == ["503", "200"]
    assert record.calls[0].nano_usd is not None
    assert record.calls[1].is_tail
    assert record.calls[1].started_s >= record.calls[0].ended_s > 1


@pytest.mark.parametrize("stream", ["true", "false"])
def test_backend_speaks_the_protocol_of_its_cluster(document: Path, stream: str) -> None:
    """An Anthropic model answers as one, and the client reads a chat completion."""
    world = (
        f"{{request: {{question: Hi, stream: {stream}}}, models: {{claude: {{reply: Good day.}}}}}}"
    )

    record = run(find("two", document), world)

    assert (record.answer.status, record.answer.text) == (200, "Good day.")
    assert record.calls[1].terminal is Terminal.SUCCEEDED


def test_two_models_at_one_address_are_two_backends(document: Path) -> None:
    """What is scripted goes by the model, wherever it is served, over HTTP/2 and TLS too."""
    world = "{models: {small: {reply: I am small.}, large: {reply: I am large.}}}"

    texts = {
        name: run(find("two", document, second=name), world).answer.text
        for name in ("small", "large")
    }

    assert texts == {"small": "I am small.", "large": "I am large."}


def test_given_parameters_come_before_the_decision_s(document: Path) -> None:
    """The scenario's, and before those the command's."""
    subject = find("two", document, "{params: {first: large, second: large}}", first="claude")

    assert subject.params == {"first": "claude", "second": "large"}


def test_recipe_may_be_named(document: Path) -> None:
    """Its graph has no decision there, so models are chosen, and it is said."""
    subject = find("other:two", document)

    assert subject.decision is None
    assert subject.assumed == (("parameter", "first"), ("parameter", "second"))
    assert set(subject.params.values()) < {"small", "large", "claude"}


def test_unknown_graph_of_a_document_is_told_with_what_there_is(document: Path) -> None:
    """By their full names."""
    with pytest.raises(ConfigRejected, match="known are default:two, other:two"):
        find("tow", document)


def test_scenario_may_not_script_models_that_the_document_lacks(document: Path) -> None:
    """A typing error would else script nobody."""
    with pytest.raises(ConfigRejected, match=r"models\.smal: .* known are claude, large, small"):
        find("two", document, "{models: {smal: {}}}")


def test_keys_that_are_not_at_hand_are_assumed(document: Path) -> None:
    """Nobody is called, so a dry run works where the secrets are not; a real one needs them."""
    text = DOCUMENT.replace("secret-1", '"${FIRST_KEY}"').replace(
        "api_key: secret-2", "api_key_env: SECOND_KEY"
    )
    document.write_text(text, encoding="utf-8")
    wanted = Wanted("two", document)

    subject = find_subject(wanted, Scenario(), BUILTIN.find_graph, {"FIRST_KEY": "here"})

    assert subject.assumed == (("environment variable", "SECOND_KEY"),)
    with pytest.raises(ConfigRejected, match="SECOND_KEY"):
        find_subject(
            wanted, Scenario(), BUILTIN.find_graph, {"FIRST_KEY": "here"}, may_assume=False
        )


def test_built_in_graph_gets_models() -> None:
    """As many as it asks for, at most three, each once."""
    subject = find("builtin/ratings")

    assert subject.params["models"] == ("model-a", "model-b", "model-c")
    assert {each.name for each in subject.snapshot.clusters} == {"model-a", "model-b", "model-c"}


def test_scripted_price_counts_where_there_is_no_document() -> None:
    """Of a model that is only assumed."""
    world = "{models: {model-a: {price: {prompt_per_1m: 10}, usage: {prompt_tokens: 100}}}}"

    record = run(find("builtin/ratings", scenario=world, models=["model-a"]), world)

    assert record.totals.nano_usd == 1_000_000


def test_scripted_price_tells_cheap_from_dear() -> None:
    """A graph that asks the cheapest model first asks that one."""
    world = (
        "{models: {dear: {price: {prompt_per_1m: 10}}, cheap: {price: {prompt_per_1m: 1}},"
        " judge: {reply: '1.0'}}}"
    )
    subject = find(
        "builtin/cascade_by_cost", scenario=world, models=["dear", "cheap"], judge="judge"
    )

    record = run(subject, world)

    assert [call.model for call in record.calls] == ["cheap", "judge"]


def test_parameter_that_is_no_model_is_not_made_up(tmp_path: Path) -> None:
    """The run is refused for want of it."""
    file = tmp_path / "g.yaml"
    file.write_text(
        "params: {text: {type: string}}\nsteps: [{type: respond, from: $params.text}]\n"
    )

    with pytest.raises(ConfigRejected, match=r"params\.text: is missing"):
        dry_run(find(str(file)), Scenario(), 0, start_virtual_router)
