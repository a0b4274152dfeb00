"""Accepted documents and the resources they give."""

from pathlib import Path

import pytest

from vsr.config.report import Report
from vsr.config.source import check_bytes
from vsr.resources.cluster import Cluster, Endpoint, HttpVersion, UserKeys
from vsr.resources.listener import Identity, Listener
from vsr.resources.program import (
    Algorithm,
    And,
    ContextSignal,
    Decision,
    KeywordMethod,
    KeywordOperator,
    KeywordSignal,
    Leaf,
    ModelRef,
    Not,
    OnUnknown,
    Or,
    Program,
    RuleTree,
    Strategy,
)
from vsr.resources.reasoning import ReasoningTransport
from vsr.resources.route import Route
from vsr.resources.snapshot import Settings, Snapshot
from vsr.routing.request import USER_KEY_HEADERS

FOLDER = Path(__file__).parents[2] / "fixtures" / "config" / "accepted"
IDENTITY = Identity(frozenset({b"x-authz-user-id", b"x-authz-user-groups"}))
ENVIRON = {"BACKEND_KEY": "canary-backend", "CLIENT_KEY": "canary-two", "PUBLIC_PORT": "8801"}


def compiled(name: str) -> Snapshot:
    """Return the snapshot of an accepted fixture."""
    data = (FOLDER / name).read_bytes()
    return check_bytes(data, ENVIRON, Report(name)).snapshot


def cluster(name: str) -> Cluster:
    """Return one cluster of the providers fixture."""
    return next(each for each in compiled("providers.yaml").clusters if each.name == name)


def test_minimal_document_gives_the_defaults() -> None:
    """Listener, timeouts, paths and automatic names of a document that says nothing of them."""
    snapshot = compiled("minimal.yaml")

    assert snapshot == Snapshot(
        hash=snapshot.hash,
        listeners=(Listener("listener_0", "0.0.0.0", 8899, 300.0, identity=IDENTITY),),
        clusters=(
            Cluster(
                name="chat",
                endpoints=(Endpoint("backend-1", "127.0.0.1", 8000),),
                upstream_model="chat",
            ),
        ),
        programs=(Program("default", declared=snapshot.programs[0].declared),),
        routes=(
            Route("vllm-sr/auto", "default"),
            Route("auto", "default", is_listed=False),
            Route("MoM", "default", is_listed=False),
        ),
        settings=Settings(default_model="chat", key_headers=USER_KEY_HEADERS),
    )


def test_listeners_keep_their_settings() -> None:
    """References expand in keys and ports; durations become seconds."""
    assert compiled("routing.yaml").listeners == (
        Listener(
            name="public",
            address="0.0.0.0",
            port=8801,
            timeout_s=90.0,
            api_keys=(b"canary-client-one", b"canary-two"),
            max_body_bytes=1_048_576,
            identity=IDENTITY,
        ),
        Listener("internal", "::1", 8802, 300.0, identity=IDENTITY),
    )


def test_explicitly_empty_listeners_stay_empty() -> None:
    """The document says that somebody else owns the sockets."""
    assert compiled("providers.yaml").listeners == ()


def test_program_has_signals_in_order() -> None:
    """Counts are numbers, an omitted minimum is 0, an omitted maximum unbounded."""
    program = compiled("routing.yaml").programs[0]

    assert program.strategy is Strategy.CONFIDENCE
    assert program.keywords == (
        KeywordSignal("code", KeywordOperator.OR, ("traceback", "unit test")),
        KeywordSignal(
            "cloud_key",
            KeywordOperator.NOR,
            ("AKIA[0-9A-Z]{16}",),
            method=KeywordMethod.REGEX,
            case_sensitive=True,
        ),
    )
    assert program.contexts == (
        ContextSignal("long", 24_000, 1_500_000),
        ContextSignal("any", 0, None),
    )


def test_program_tells_the_names_that_rules_may_use() -> None:
    """By type; a recipe without domains takes the name of any."""
    declared = compiled("routing.yaml").programs[0].declared

    assert declared is not None
    assert declared["keyword"] == {"code", "cloud_key"}
    assert declared["context"] == {"long", "any"}
    assert declared["kb"] == frozenset()
    assert "domain" not in declared


def test_decision_says_what_an_unknown_signal_means() -> None:
    """It stands on the rules themselves."""
    text = """
version: v0.3
providers: {defaults: {model: m}, models: [{name: m, backend_refs: [{endpoint: "127.0.0.1:1"}]}]}
routing:
  signals: {keywords: [{name: k, operator: OR, keywords: [x]}]}
  decisions:
    - {name: open, rules: {type: keyword, name: k}}
    - {name: told, rules: {type: keyword, name: k, on_unknown: fail_request}}
"""
    decisions = check_bytes(text.encode(), {}, Report("document")).snapshot.programs[0].decisions

    assert [it.on_unknown for it in decisions] == [None, OnUnknown.FAIL_REQUEST]
    assert decisions[1].tree == RuleTree(Leaf("keyword", "k"), OnUnknown.FAIL_REQUEST)


def test_program_has_decisions_with_their_rules() -> None:
    """A bare leaf is a rule, operators ignore case, no rules and an empty AND match everything."""
    decisions = compiled("routing.yaml").programs[0].decisions

    assert decisions == (
        Decision(
            name="leaf",
            rules=Leaf("context", "long"),
            priority=300,
            model_refs=(ModelRef("long", says_reasoning=True),),
        ),
        Decision(
            name="tree",
            rules=And(
                (
                    Or((Leaf("keyword", "code"), Leaf("context", "any"))),
                    Not(Leaf("keyword", "cloud_key")),
                )
            ),
            priority=200,
            tier=1,
            model_refs=(ModelRef("small", 2.0), ModelRef("long", 0.5)),
            algorithm=Algorithm("static"),
        ),
        Decision(name="catch_all", rules=And()),
        Decision(name="empty_and", rules=And()),
    )


def test_authored_automatic_names_replace_the_default_ones() -> None:
    """The list is exact and published."""
    snapshot = compiled("routing.yaml")

    assert snapshot.routes == (Route("house/auto", "default"),)
    assert snapshot.settings == Settings(
        default_model="small", list_configured_models=True, key_headers=USER_KEY_HEADERS
    )


def test_empty_list_of_automatic_names_disables_them() -> None:
    """No model name runs the program."""
    assert compiled("providers.yaml").routes == ()


def test_cluster_has_its_endpoints_and_timeouts() -> None:
    """A weight of 0 counts as 1; an authored 0s is not an omitted timeout."""
    small = compiled("routing.yaml").clusters[0]

    assert small.endpoints == (
        Endpoint("gpu-a", "10.0.0.11", 8000, weight=3),
        Endpoint("backend-2", "10.0.0.12", 8000, weight=1),
    )
    assert small.upstream_model == "Qwen/Qwen3-8B"
    assert small.connect_timeout_s == 0.25
    assert (small.calls.total_s, small.calls.idle_s) == (0, 45)


def test_upstream_model_follows_the_provider() -> None:
    """The id for the backend's provider wins over the general one."""
    assert compiled("routing.yaml").clusters[1].upstream_model == "Qwen/Qwen3-Long"


def test_provider_fills_in_address_and_credential() -> None:
    """Header names in lower case and sorted, the key from the environment behind its prefix."""
    assert cluster("openai") == Cluster(
        name="openai",
        endpoints=(Endpoint("backend-1", "api.openai.com", 443, tls=True),),
        upstream_model="openai",
        base_path="/v1",
        route_headers=((b"a-first", b"1"), (b"x-team", b"routing")),
        credential=(b"authorization", b"Bearer canary-backend"),
        provider="openai",
        reasoning_transport=ReasoningTransport.TOP_LEVEL_EFFORT,
        user_keys=UserKeys((b"x-user-openai-key",), b"authorization", b"Bearer "),
    )


def test_azure_takes_its_version_in_the_query() -> None:
    """Relative operation path behind the base path, the version escaped, the key bare."""
    azure = cluster("azure")

    base = "/openai/deployments/d1"
    assert azure.base_path == base
    assert azure.chat_path == f"{base}/chat/completions?api-version=2025-03-01+preview"
    assert azure.credential == (b"api-key", b"canary-azure")
    assert azure.upstream_model == "deployment-1"


@pytest.mark.parametrize(
    ("name", "base_path", "chat_path"),
    [
        ("prefix", "/api/v3", "/api/v3/chat/completions"),
        ("bare-prefix", "", "/v1/chat/completions"),
        ("own-path", "", "/custom?tenant=1"),
        ("perplexity", "", "/v1/sonar"),
        ("snowflake", "/api", "/api/chat/completions"),
        ("url-in-endpoint", "/v1", "/v1/chat/completions"),
    ],
)
def test_chat_path_follows_base_path_and_provider(
    name: str, base_path: str, chat_path: str
) -> None:
    """Source: the canonical configuration document, "Upstream path rule"."""
    compiled_cluster = cluster(name)

    assert compiled_cluster.base_path == base_path
    assert compiled_cluster.chat_path == chat_path


@pytest.mark.parametrize(
    ("name", "credential"),
    [
        ("prefix", (b"x-key", b"Bearer canary-backend")),
        ("bare-prefix", (b"x-key", b"canary-bare")),
        ("own-path", None),
    ],
)
def test_credential_line_has_header_and_prefix(
    name: str, credential: tuple[bytes, bytes] | None
) -> None:
    """An authored header keeps the provider's prefix unless that is authored too."""
    assert cluster(name).credential == credential


@pytest.mark.parametrize(
    ("name", "authority"),
    [
        ("openai", "api.openai.com"),
        ("bare-prefix", "[2001:db8::1]"),
        ("url-in-endpoint", "Gateway.example.com:8443"),
    ],
)
def test_endpoint_authority_leaves_out_the_default_port(name: str, authority: str) -> None:
    """IPv6 stands in brackets."""
    assert cluster(name).endpoints[0].authority == authority


def test_provider_headers_are_sent_unless_authored() -> None:
    """The provider's own header is there without being written."""
    assert cluster("snowflake").route_headers == ((b"anthropic-version", b"2023-06-01"),)


@pytest.mark.parametrize("name", ["minimal.yaml", "routing.yaml", "providers.yaml"])
def test_snapshot_shows_no_backend_credential(name: str) -> None:
    """A snapshot in a traceback or a log shows no key that opens a backend."""
    clusters = compiled(name).clusters

    assert "canary" not in repr(clusters)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("openai", HttpVersion.HTTP_1_1),
        ("over-http-1", HttpVersion.HTTP_1_1),
        ("over-http-2", HttpVersion.HTTP_2),
        ("as-agreed", HttpVersion.AUTO),
    ],
)
def test_http_version_is_as_written(name: str, version: HttpVersion) -> None:
    """HTTP/1.1 unless something else is; with or without quotes."""
    assert cluster(name).endpoints[0].http_version is version
