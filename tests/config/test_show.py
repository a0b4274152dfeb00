"""The effective document as text."""

from pathlib import Path

import pytest
import yaml

from vsr.config.load import load
from vsr.config.report import Report
from vsr.config.show import render
from vsr.config.source import check_bytes

FOLDER = Path(__file__).parents[2] / "fixtures" / "config" / "accepted"
ENVIRON = {"BACKEND_KEY": "canary-backend", "CLIENT_KEY": "canary-two", "PUBLIC_PORT": "8801"}
NAMES = ["minimal.yaml", "routing.yaml", "providers.yaml", "recipes.yaml"]


def shown(data: bytes) -> str:
    """Return the effective document of `data`."""
    checked = check_bytes(data, ENVIRON, Report("doc.yaml"))
    return render(checked.document, checked.loaded.lines)


@pytest.mark.parametrize("name", NAMES)
def test_shown_document_has_no_secret(name: str) -> None:
    """Neither inline credentials nor anything from the environment."""
    text = shown((FOLDER / name).read_bytes())

    assert "canary" not in text


@pytest.mark.parametrize("name", NAMES)
def test_shown_document_is_a_document_again(name: str) -> None:
    """With every default written out, the same once more."""
    text = shown((FOLDER / name).read_bytes())

    again = shown(text.encode())

    assert again == text


def test_shown_document_has_defaults_and_redactions() -> None:
    """Counts of secrets stay visible, references stay as written, unset keys stay away."""
    text = shown(b"""
        listeners:
          - {name: http, address: 127.0.0.1, port: 8801, api_keys: [canary-a, canary-b]}
        providers:
          models:
            - name: chat
              provider_model_id: ${BACKEND_KEY}
              backend_refs:
                - {endpoint: "10.0.0.1", api_key: canary, extra_headers: {x-a: canary}}
        routing: {decisions: [{name: yes, annotations: {note: "$CLIENT_KEY"}}]}
    """)

    document = yaml.safe_load(text)
    assert document["listeners"][0] == {
        "name": "http",
        "address": "127.0.0.1",
        "port": 8801,
        "timeout": "300s",
        "api_keys": ["<redacted>", "<redacted>"],
        "max_body_bytes": 524_288_000,
        "max_connections": 50_000,
    }
    model = document["providers"]["models"][0]
    assert model["provider_model_id"] == "${BACKEND_KEY}"
    assert model["backend_refs"] == [
        {
            "endpoint": "10.0.0.1",
            "weight": 1,
            "provider": "vllm",
            "extra_headers": {"x-a": "<redacted>"},
            "api_key": "<redacted>",
            "http_version": "1.1",
        }
    ]
    assert document["routing"]["decisions"][0]["name"] == "yes"
    assert document["routing"]["decisions"][0]["annotations"] == {"note": "$CLIENT_KEY"}


def test_document_without_listeners_shows_the_default_one() -> None:
    """What would be served is what is shown."""
    loaded = load(shown((FOLDER / "minimal.yaml").read_bytes()).encode(), {}, Report("doc.yaml"))

    assert loaded is not None
    assert loaded.lines.value(("listeners", 0, "name")) == "listener_0"
    assert loaded.lines.value(("listeners", 0, "port")) == 8899


def test_values_that_may_hold_credentials_are_redacted_wherever_they_stand() -> None:
    """Stores, plugins and helper models have some too."""
    text = shown(b"""
        routing:
          decisions:
            - name: one
              plugins:
                - type: header_mutation
                  configuration: {add: [{name: authorization, value: canary}]}
                - type: rag
                  configuration:
                    enabled: false
                    backend: openai
                    backend_config: {api_key: canary}
        global:
          services: {response_api: {enabled: false, redis: {password: canary}}}
          stores:
            response_cache: {enabled: false, milvus: {connection: {auth: {password: canary}}}}
          integrations: {looper: {headers: {x-key: canary}}}
          model_catalog:
            external: [{name: judge, access_key: canary}]
            modules: {classifier: {mcp: {env: {KEY: canary}}}}
    """)

    assert "canary" not in text
    assert text.count("<redacted>") == 7
