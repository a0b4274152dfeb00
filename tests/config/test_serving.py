"""What keeps this version from serving a valid document."""

import pytest

from tests.config.classes import CLASSES, keys_of
from vsr.config.document.objects import fields_of
from vsr.config.moved_keys import ALIASES, MOVED, REMOVED
from vsr.config.not_served import (
    NOT_SERVED_KEYS,
    NOT_SERVED_VALUES,
    STANDALONE_ONLY,
    STANDALONE_ONLY_VALUES,
)
from vsr.config.report import Report
from vsr.config.serving import Gateway
from vsr.config.source import check_bytes, read_bytes, unserved
from vsr.errors import ConfigRejected


def places(text: str, gateway: Gateway = Gateway.STANDALONE) -> list[str]:
    """Return where a valid document says what is not served."""
    valid = read_bytes(text.encode(), {}, Report("doc.yaml"))
    return [each.path for each in unserved(valid, {}, file="doc.yaml", gateway=gateway)]


@pytest.mark.parametrize("table", [NOT_SERVED_KEYS, STANDALONE_ONLY, MOVED, REMOVED, ALIASES])
def test_tables_name_classes_of_the_document(table: dict[str, frozenset[str]]) -> None:
    """A renamed class would silently end its refusals."""
    assert set(table) <= set(CLASSES)


@pytest.mark.parametrize("table", [NOT_SERVED_KEYS, STANDALONE_ONLY])
def test_tables_name_keys_of_the_document(table: dict[str, frozenset[str]]) -> None:
    """What is not served is known."""
    for name, keys in table.items():
        assert keys <= keys_of(CLASSES[name])


@pytest.mark.parametrize("table", [NOT_SERVED_VALUES, STANDALONE_ONLY_VALUES])
def test_table_of_words_names_fields_of_the_document(table: dict[str, frozenset[str]]) -> None:
    """What is not served is known."""
    for field in table:
        name, _, key = field.partition(".")

        assert key in keys_of(CLASSES[name])


@pytest.mark.parametrize("table", [MOVED, REMOVED, ALIASES])
def test_older_keys_are_none_of_today(table: dict[str, dict[str, str]]) -> None:
    """A key that came back leaves the table."""
    for name, keys in table.items():
        assert not set(keys) & keys_of(CLASSES[name])


@pytest.mark.parametrize(
    "text",
    [
        "global: {services: {response_api: {enabled: false, store_backend: memory}}}",
        "global: {services: {authz: {fail_open: false, providers: []}}}",
        "global: {services: {observability: {tracing: {enabled: false}}}}",
        "global: {router: {streamed_body: {enabled: false, max_bytes: 10}}}",
        "global: {router: {fallback: {max_attempts: 2}}}",
        "routing: {signals: {domains: [], embeddings: []}, projections: {scores: []}}",
        "routing: {data_policy: {replay: false}}",
        "setup: {mode: false}",
    ],
)
def test_what_is_written_but_switched_off_is_served(text: str) -> None:
    """Ignoring it is exactly what it asks for."""
    assert places(text) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("global: {services: {response_api: {store_backend: memory}}}", "response_api"),
        ("global: {services: {response_api: {}}}", "response_api"),
        (
            "global: {services: {observability: {metrics: {enabled: true}}}}",
            "observability.metrics",
        ),
        ("routing: {candidate_requirements: {context: known_limits}}", "candidate_requirements"),
        (
            "recipes: [{name: a, routing: {candidate_requirements: {context: known_limits}}}]",
            "recipes[0].routing.candidate_requirements",
        ),
    ],
)
def test_what_would_have_to_be_ignored_is_named(text: str, place: str) -> None:
    """A block with a switch is on unless it says otherwise, if that is its default."""
    assert [each for each in places(text) if each.endswith(place)] == places(text) != []


def test_faulty_document_tells_what_is_not_served_too() -> None:
    """Whoever starts the Router reads everything at once, in document order."""
    text = (
        b"version: v0.2\nrouting:\n  candidate_requirements: {context: known_limits}\n"
        b"  strategy: newest\n"
    )

    with pytest.raises(ConfigRejected) as caught:
        check_bytes(text, {}, Report("doc.yaml"))

    paths = [problem.path for problem in caught.value.problems]
    assert paths == ["version", "routing.candidate_requirements", "routing.strategy"]


def test_extproc_refuses_what_only_standalone_honours() -> None:
    """And names the mode that can."""
    text = """
        listeners:
          - name: tls
            address: 127.0.0.1
            port: 8443
            tls: {cert_file: a, key_file: b}
        providers:
          models:
            - name: chat
              reliability: {health_check_path: /health}
              backend_refs: [{endpoint: "a.test:1", health_check_path: /own, http_version: "2"}]
    """

    assert places(text) == []
    ref = "providers.models[0].backend_refs[0]"
    assert places(text, Gateway.EXTPROC) == [
        "listeners[0].tls",
        f"{ref}.health_check_path",
        f"{ref}.http_version",
    ]


LOOPER_DOCUMENT = """
    providers: {{models: [{{name: a, backend_refs: [{{endpoint: "a.test:1"}}]}}]}}
    routing:
      graphs: {{g: {{steps: [{{type: respond}}]}}}}
      decisions:
        - {{name: d, modelRefs: [{{model: a}}, {{model: a}}], algorithm: {{type: {type}{more}}}}}
"""
BLOCKS = {
    "confidence": "",
    "ratings": "",
    "remom": "",
    "fusion": "",
    "workflows": ", workflows: {roles: [{name: r, models: [a]}]}",
    "graph": ", graph: g, budget: {max_total_tokens: 10}",
}


@pytest.mark.parametrize("kind", BLOCKS)
def test_algorithms_of_several_models_are_served_in_standalone_mode_alone(kind: str) -> None:
    """The refusal stands at the algorithm, and names the other mode."""
    text = LOOPER_DOCUMENT.format(type=kind, more=BLOCKS[kind])

    assert places(text) == []
    assert places(text, Gateway.EXTPROC) == ["routing.decisions[0].algorithm.type"]


def test_comments_of_streams_are_served_in_standalone_mode_alone() -> None:
    """An Envoy in front sends the head when it gets one, and no comment before it."""
    text = LOOPER_DOCUMENT.format(type="graph", more=", graph: g, stream: {progress: true}")
    text = text.replace("g: {steps", "g: {stream: {keep_alive_after: 10s}, steps")

    assert places(text) == []
    assert places(text, Gateway.EXTPROC) == [
        "routing.graphs.g.stream",
        "routing.decisions[0].algorithm.type",
        "routing.decisions[0].algorithm.stream",
    ]


def test_names_of_algorithms_are_served_in_standalone_mode_alone() -> None:
    """And so is the store of their runs, but for one that there is not yet."""
    looper = "global: {{integrations: {{looper: {{{}}}}}}}"
    names = looper.format("remom: {model_names: [house/remom]}")
    redis = looper.format("flow: {state: {store_backend: redis}}")

    assert places(names) == []
    assert places(names, Gateway.EXTPROC) == ["global.integrations.looper.remom"]
    assert places(redis) == ["global.integrations.looper.flow.state.store_backend"]


def test_names_of_models_without_any_backend_are_not_served() -> None:
    """A document without providers is valid; nobody could answer for its candidates."""
    text = """
        providers: {defaults: {model: chat}}
        routing:
          modelCards: [{name: chat}]
          decisions: [{name: one, modelRefs: [{model: chat}]}]
    """

    assert places(text) == [
        "providers.defaults.model",
        "routing.decisions[0].modelRefs[0].model",
    ]


def test_model_without_backend_is_valid_only_where_others_own_the_listeners() -> None:
    """Then it still can't be served here."""
    model = "providers: {models: [{name: chat, provider_model_id: qwen}]}"

    assert places(f"listeners: []\n{model}") == ["providers.models[0].backend_refs"]
    with pytest.raises(ConfigRejected):
        read_bytes(model.encode(), {}, Report("doc.yaml"))


def test_every_class_with_a_switch_calls_it_enabled() -> None:
    """The rule about switches looks for that name."""
    switches = {
        name
        for name, cls in CLASSES.items()
        for field in fields_of(cls).values()
        if field.name in {"is_enabled", "active", "disabled"} and name != "Reasoning"
    }

    assert switches == set()
