"""Migration of one old layout at a time: where each of its keys goes."""

import pytest
import yaml

from vsr.config.migrate.global_blocks import TARGETS
from vsr.config.migrate.routing import SIGNALS
from vsr.config.migrate.text import MigrationResult, migrate_text


def migrated(text: str) -> dict[str, dict[str, object]]:
    """Return the values of the migrated document."""
    values: dict[str, dict[str, object]] = yaml.safe_load(migrate_text(text).text)
    return values


def at(values: object, *keys: str | int) -> object:
    """Return the value below `keys`."""
    for key in keys:
        if isinstance(values, list) and isinstance(key, int):
            values = values[key]
        else:
            assert isinstance(values, dict)
            values = values[key]
    return values


@pytest.mark.parametrize(("old", "new"), SIGNALS.items())
def test_flat_signals_go_to_routing(old: str, new: str) -> None:
    """Every list of the flat layout has its place under `routing.signals`."""
    values = migrated(f"{old}: [{{name: one}}]\n")

    assert values["routing"]["signals"] == {new: [{"name": "one"}]}
    assert old not in values


def test_signals_of_two_places_are_merged() -> None:
    """The old block may hold other kinds than the new one."""
    values = migrated("signals: {pii: [{name: a}]}\nrouting: {signals: {kb: [{name: b}]}}\n")

    assert values["routing"]["signals"] == {"kb": [{"name": "b"}], "pii": [{"name": "a"}]}


@pytest.mark.parametrize(("key", "target"), TARGETS.items())
@pytest.mark.parametrize("home", ["", "global", "global.runtime", "global.modules"])
def test_flat_settings_go_to_their_block(home: str, key: str, target: tuple[str, ...]) -> None:
    """Settings of the root, of `global` and of the groups it once had end in the same place."""
    text = f"{key}: {{enabled: on}}\n"
    for name in reversed(home.split(".") if home else []):
        text = f"{name}:\n" + "".join(f"  {line}\n" for line in text.splitlines())

    values = migrated(text)

    new = tuple("response_cache" if name == "semantic_cache" else name for name in target)
    assert at(values, "global", *new) == {"enabled": True}


def test_parts_of_modules_get_their_names_and_models() -> None:
    """A part that named its model by `model_id` now refers to it as well."""
    values = migrated(
        "classifier: {category_model: {model_id: a}, pii_model: {model_id: b, model_ref: mine},"
        " mcp_category_model: {model_id: c}, preference_model: {d: 1}}\n"
        "hallucination_mitigation: {fact_check_model: {model_id: e}, nli_model: {f: 1},"
        " hallucination_model: {model_id: g}, enabled: true}\n"
        "feedback_detector: {model_id: h}\n"
    )

    assert at(values, "global", "model_catalog", "modules") == {
        "classifier": {
            "domain": {"model_id": "a", "model_ref": "domain_classifier"},
            "pii": {"model_id": "b", "model_ref": "mine"},
            "mcp": {"model_id": "c"},
            "preference": {"d": 1},
        },
        "hallucination_mitigation": {
            "fact_check": {"model_id": "e", "model_ref": "fact_check_classifier"},
            "explainer": {"f": 1},
            "detector": {"model_id": "g", "model_ref": "hallucination_detector"},
            "enabled": True,
        },
        "feedback_detector": {"model_id": "h", "model_ref": "feedback_detector"},
    }


@pytest.mark.parametrize("home", ["", "providers: ", "providers: {defaults: "])
def test_defaults_are_renamed_wherever_they_stood(home: str) -> None:
    """At the root, under `providers` or under `providers.defaults`."""
    inner = "{default_model: a, default_reasoning_effort: low}"
    text = f"{home}{inner}" + ("}" if "{" in home else "")

    values = migrated(text)

    assert values["providers"]["defaults"] == {"model": "a", "reasoning_effort": "low"}


def test_reasoning_family_is_written_into_each_model() -> None:
    """Two models of a family share nothing, and an unknown family is a built-in one."""
    result = migrate_text(
        "reasoning_families: {mine: {type: reasoning_effort, parameter: effort}, other: {}}\n"
        "providers:\n"
        "  models:\n"
        "    - {name: a, reasoning_family: mine}\n"
        "    - {name: b, reasoning_family: mine}\n"
        "    - {name: c, reasoning_family: glm}\n"
        "    - {name: d, reasoning_family: glm, reasoning: {family: qwen3}}\n"
        "    - {name: e, reasoning_family: '', reasoning: {family: glm}}\n"
    )

    models = yaml.safe_load(result.text)["providers"]["models"]
    family = {"type": "reasoning_effort", "parameter": "effort"}
    expected = [family, family, {"family": "glm"}, {"family": "qwen3"}]
    expected.append({"family": "glm"})
    assert [model["reasoning"] for model in models] == expected
    assert "&" not in result.text
    assert any("no model uses other" in change for change in result.changes)


@pytest.mark.parametrize(
    ("listeners", "gets_backend"),
    [
        ("", True),
        ("listeners: [{name: a, address: b, port: 1}]\n", True),
        ("listeners: []\n", False),
    ],
)
def test_anthropic_model_gets_the_backend_it_implied(listeners: str, *, gets_backend: bool) -> None:
    """Unless somebody else owns the transport."""
    text = f"{listeners}providers: {{models: [{{name: a, api_format: anthropic}}]}}\n"

    result = migrate_text(text)

    backend = [{"provider": "anthropic"}] if gets_backend else None
    assert yaml.safe_load(result.text)["providers"]["models"][0].get("backend_refs") == backend


def test_endpoints_and_access_key_become_backends() -> None:
    """Only the first backend without a name gets the old one: names are unique in a model."""
    values = migrated(
        "providers:\n"
        "  models:\n"
        "    - name: a\n"
        "      access_key: key\n"
        "      endpoints:\n"
        "        - {endpoint: 'a:1', type: openai}\n"
        "        - {endpoint: 'a:2', weight: 2}\n"
    )

    assert at(values, "providers", "models", 0, "backend_refs") == [
        {"name": "primary", "endpoint": "a:1", "provider": "openai", "api_key": "key"},
        {"endpoint": "a:2", "weight": 2, "api_key": "key", "provider": "vllm"},
    ]


def test_endpoints_may_name_their_models() -> None:
    """The layout before `preferred_endpoints`; a base URL wins over an address.

    A model may have no entry, or an empty one.
    """
    values = migrated(
        "vllm_endpoints:\n"
        "  - {name: one, address: 10.0.0.1, port: 80, models: [a, b]}\n"
        "  - {name: two, address: 10.0.0.2, port: 80, models: [b], provider_profile: p}\n"
        "provider_profiles: {p: {type: openai, base_url: 'https://x/v1', auth_header: ''}}\n"
        "model_config:\n"
        "  b: {pii_policy: {allow_by_default: true}}\n"
    )

    one = {"name": "one", "endpoint": "10.0.0.1:80", "provider": "vllm"}
    two = {"name": "two", "base_url": "https://x/v1", "provider": "openai"}
    assert values["providers"]["models"] == [
        {"name": "b", "pii_policy": {"allow_by_default": True}, "backend_refs": [one, two]},
        {"name": "a", "backend_refs": [one]},
    ]


def test_endpoints_may_have_no_names() -> None:
    """Each is still a backend of the models it serves."""
    values = migrated(
        "vllm_endpoints: [{address: a, models: [m]}, {address: b, models: [m]}]\n"
        "model_config: {m: }\n"
    )

    backends = [{"endpoint": "a", "provider": "vllm"}, {"endpoint": "b", "provider": "vllm"}]
    assert values["providers"]["models"] == [{"name": "m", "backend_refs": backends}]


def test_flat_model_joins_the_provider_model_of_its_name() -> None:
    """A document between two layouts has one model in the end."""
    values = migrated(
        "providers: {models: [{name: a, pricing: {prompt_per_1m: 1}}]}\n"
        "model_config: {a: {model_id: real, pricing: {prompt_per_1m: 1}}}\n"
    )

    assert values["providers"]["models"] == [
        {"name": "a", "pricing": {"prompt_per_1m": 1}, "provider_model_id": "real"}
    ]


def test_scores_become_records_after_those_that_exist() -> None:
    """A record that exists is not repeated; a card of nothing else is dropped."""
    values = migrated(
        "routing: {modelCards: [{name: a, quality_score: 0.5}, {name: b, quality_score: 1}]}\n"
        "evaluation: {records: [{model: b, benchmark: 'vllm-sr/operator-rating@1.0.0',"
        " metrics: {score: 1}}]}\n"
    )

    rating = "vllm-sr/operator-rating@1.0.0"
    assert values["evaluation"]["records"] == [
        {"model": "b", "benchmark": rating, "metrics": {"score": 1}},
        {"model": "a", "benchmark": rating, "metrics": {"score": 0.5}},
    ]
    assert "modelCards" not in values["routing"]


@pytest.mark.parametrize("old", ["semantic-cache", "semantic_cache", "response-cache"])
def test_cache_plugin_is_renamed_in_recipes_too(old: str) -> None:
    """Of a recipe nothing else is rewritten."""
    routing = f"{{decisions: [{{name: a, plugins: [{{type: {old}}}]}}], models: [kept]}}"

    values = migrated(f"recipes: [{{name: r, routing: {routing}}}]\n")

    decisions = [{"name": "a", "plugins": [{"type": "response_cache"}]}]
    assert at(values, "recipes", 0, "routing") == {"decisions": decisions, "models": ["kept"]}


def test_guard_protocol_names_its_model() -> None:
    """The only guardrail gets a name if it has none."""
    values = migrated(
        "prompt_guard: {protocol: http_classify}\n"
        "external_models: [{model_role: guardrail}, {model_role: preference, name: p}]\n"
    )

    catalog = values["global"]["model_catalog"]
    assert at(catalog, "modules", "prompt_guard", "backend") == {
        "protocol": "http_classify",
        "contract": "label_distribution.v1",
        "model": "guardrail_classifier",
    }
    assert at(catalog, "external", 0, "name") == "guardrail_classifier"


def test_two_cache_plugins_of_a_canonical_document_are_not_our_business() -> None:
    """Its check says what is wrong with it."""
    plugins = "[{type: response_cache}, {type: response_cache}, {type: memory}]"
    text = f"version: v0.3\nrouting: {{decisions: [{{name: a, plugins: {plugins}}}]}}\n"

    assert migrate_text(text) == MigrationResult(text, ())


def test_module_of_two_places_is_merged() -> None:
    """The old block may configure other parts than the new one."""
    values = migrated(
        "classifier: {pii_model: {threshold: 0.5}}\n"
        "global: {model_catalog: {modules: {classifier: {domain: {threshold: 0.6}}}}}\n"
    )

    assert at(values, "global", "model_catalog", "modules", "classifier") == {
        "domain": {"threshold": 0.6},
        "pii": {"threshold": 0.5},
    }


def test_cards_of_one_catalog_model_are_merged() -> None:
    """Key by key, and mappings within them as well."""
    values = migrated(
        "providers: {models: [{name: a, catalog: c}, {name: b, catalog: c}]}\n"
        "routing:\n"
        "  modelCards:\n"
        "    - {name: a, metadata: {x: 1, z: 3}}\n"
        "    - {name: b, metadata: {y: 2, z: 3}, tags: [t]}\n"
    )

    metadata = {"x": 1, "y": 2, "z": 3}
    assert values["routing"]["modelCards"] == [{"name": "c", "metadata": metadata, "tags": ["t"]}]


def test_empty_old_keys_are_dropped() -> None:
    """They said nothing, so nothing takes their place; an empty new key is no obstacle."""
    values = migrated(
        "default_model:\n"
        "strategy: ''\n"
        "auto_model_names: ~\n"
        "prompt_guard: {protocol: ''}\n"
        "looper: {endpoint: 'http://x'}\n"
        "model_config: {a: {preferred_endpoints: [], access_key: ''}}\n"
        "routing: {modelCards: [{name: a, quality_score: , tags: [t]}]}\n"
        "global: {integrations: {looper: {}}}\n"
    )

    assert values["providers"] == {"models": [{"name": "a"}]}
    assert values["routing"]["modelCards"] == [{"name": "a", "tags": ["t"]}]
    assert values["global"]["router"] == {}
    assert values["global"]["integrations"] == {"looper": {"endpoint": "http://x"}}
    assert at(values, "global", "model_catalog", "modules", "prompt_guard") == {}


def test_endpoint_without_a_port_keeps_its_address() -> None:
    """The scheme's own port is meant."""
    values = migrated(
        "vllm_endpoints: [{name: e, address: host}]\n"
        "model_config: {a: {preferred_endpoints: [e]}}\n"
    )

    backend = {"name": "e", "endpoint": "host", "provider": "vllm"}
    assert at(values, "providers", "models", 0, "backend_refs") == [backend]


def test_target_may_hold_its_backends_itself() -> None:
    """A document between two layouts has both; what is no mapping stays for the check."""
    values = migrated(
        "providers: {model_targets: {a: {backend_refs: [{endpoint: 'a:1'}]}, b: }, backends: {}}\n"
    )

    backend = {"endpoint": "a:1", "provider": "vllm"}
    assert values["providers"] == {
        "model_targets": {"b": None},
        "backends": {},
        "models": [{"name": "a", "backend_refs": [backend]}],
    }


def test_aliases_and_merge_keys_are_written_out() -> None:
    """A key of the mapping itself wins; nothing of the anchors is left."""
    result = migrate_text(
        "base: &base {name: a, backend_refs: &refs [{endpoint: 'a:1', type: vllm}]}\n"
        "providers:\n"
        "  models:\n"
        "    - <<: *base\n"
        "      name: b\n"
        "    - name: c\n"
        "      backend_refs: *refs\n"
    )

    backends = [{"endpoint": "a:1", "provider": "vllm"}]
    values = yaml.safe_load(result.text)
    assert [model["name"] for model in values["providers"]["models"]] == ["b", "c"]
    assert [model["backend_refs"] for model in values["providers"]["models"]] == [backends] * 2
    assert "&" not in result.text
    assert "<<" not in result.text


def test_unknown_keys_stay_where_their_mapping_goes() -> None:
    """The check of the result reports them; the migration loses nothing."""
    values = migrated(
        "mystery: 1\nmodel_config: {a: {odd: 2}}\nglobal: {runtime: {strange: 3, strategy: s}}\n"
    )

    assert at(values, "mystery") == 1
    assert at(values, "providers", "models", 0, "odd") == 2
    assert at(values, "global", "runtime") == {"strange": 3}


@pytest.mark.parametrize("version", ["v0.1", "v0.2", "0.3", '"v0.1"'])
def test_older_version_becomes_v03(version: str) -> None:
    """Whatever else the document says."""
    assert at(migrated(f"version: {version}\nlisteners: []\n"), "version") == "v0.3"


@pytest.mark.parametrize(
    "text",
    [
        "listeners: []\n",
        "version: v0.3\nrouting: {modelCards: [{name: only}]}\n",
        "providers: {models: [{name: a, backend_refs: [{endpoint: 'a:1'}]}]}\nglobal: {}\n",
        "version: v0.3\nproviders: {models: [{<<: &x {name: a}}, *x]}\n",
        "metadata: {labels: {}}\n",
    ],
)
def test_document_without_anything_old_is_not_completed(text: str) -> None:
    """Bare cards, backends without a provider and a missing version are canonical too."""
    assert migrate_text(text) == MigrationResult(text, ())
