"""Backends of one model that differ: which document says so, and what it comes to."""

import pytest

from vsr.config.report import Report
from vsr.config.serving import Gateway
from vsr.config.source import check_bytes
from vsr.errors import ConfigRejected
from vsr.resources.cluster import ApiFormat, Cluster, UserKeys
from vsr.resources.profile import views
from vsr.resources.reasoning import ReasoningTransport

ENVIRON = {"AZURE_KEY": "of-azure"}
LOCAL = '{name: a, endpoint: "10.0.0.5:8000", weight: 3}'
AZURE = """{name: b, provider: azure-openai, base_url: "https://r.example/openai/deployments/d",
  api_version: "2024-10-21", api_key_env: AZURE_KEY, extra_headers: {X-Org: one}}"""
CLAUDE = "{name: c, provider: anthropic, api_key: of-claude}"


def cluster(*refs: str, model: str = "", gateway: Gateway = Gateway.STANDALONE) -> Cluster:
    """Return the cluster of a document with these backends."""
    text = f"providers: {{models: [{{name: m, {model} backend_refs: [{', '.join(refs)}]}}]}}"
    [found] = check_bytes(text.encode(), ENVIRON, Report("test"), gateway=gateway).snapshot.clusters
    return found


def problem_of(*refs: str, model: str = "", gateway: Gateway = Gateway.STANDALONE) -> str:
    """Return the one problem of such a document."""
    with pytest.raises(ConfigRejected) as caught:
        cluster(*refs, model=model, gateway=gateway)
    [problem] = caught.value.problems
    return str(problem)


def test_each_kind_of_backend_has_a_profile() -> None:
    """With everything by which its calls differ; those called alike share one."""
    found = cluster(
        LOCAL,
        AZURE,
        CLAUDE,
        '{name: d, endpoint: "10.0.0.6:9000"}',
        model="provider_model_id: other, external_model_ids: {azure-openai: gpt-4o},",
    )

    assert [(end.name, end.profile, end.weight, end.tls) for end in found.endpoints] == [
        ("a", 0, 3, False),
        ("b", 1, 1, True),
        ("c", 2, 1, True),
        ("d", 0, 1, False),
    ]
    local, azure, claude = found.profiles
    assert (local.upstream_model, azure.upstream_model, claude.upstream_model) == (
        "other",
        "gpt-4o",
        "other",
    )
    assert (local.chat_path, local.base_path, local.credential) == (
        "/v1/chat/completions",
        "",
        None,
    )
    assert azure.chat_path == "/openai/deployments/d/chat/completions?api-version=2024-10-21"
    assert azure.base_path == "/openai/deployments/d"
    assert azure.credential == (b"api-key", b"of-azure")
    assert azure.route_headers == ((b"x-org", b"one"),)
    assert azure.user_keys == UserKeys((b"x-user-azure-openai-key",), b"api-key", b"")
    assert azure.reasoning_transport is ReasoningTransport.TOP_LEVEL_EFFORT
    assert (claude.api_format, claude.chat_path) == (ApiFormat.ANTHROPIC, "/v1/messages")
    assert claude.credential == (b"x-api-key", b"of-claude")
    first = views(found)[0]
    assert (found.upstream_model, found.provider) == (first.upstream_model, first.provider)


def test_backends_that_differ_in_address_and_weight_have_none() -> None:
    """They are called by the rules of the cluster."""
    found = cluster(LOCAL, '{endpoint: "other.example", weight: 9}')

    assert found.profiles == ()
    assert {end.profile for end in found.endpoints} == {0}


def test_public_host_makes_a_kind_of_its_own() -> None:
    """What OpenAI's own server takes is not what its other servers do, though all else is alike."""
    own = '{provider: openai, base_url: "https://proxy.example/v1"}'
    found = cluster(
        own, "{provider: openai}", '{provider: openai, base_url: "https://p2.example/v1"}'
    )

    assert [profile.known_host for profile in found.profiles] == ["", "api.openai.com"]
    assert [end.profile for end in found.endpoints] == [0, 1, 0]


FORMATS = [
    ([LOCAL, CLAUDE], "", ["openai", "anthropic"]),
    ([CLAUDE, LOCAL], "", ["anthropic", "openai"]),
    # Of several protocols that of an earlier backend, if it is spoken.
    (["{provider: openai}", "{provider: sakana}"], "", ["openai", "openai"]),
    ([CLAUDE, "{provider: apodex}"], "", ["anthropic", "anthropic"]),
    ([CLAUDE, "{provider: apodex, api_format: openai}"], "", ["anthropic", "openai"]),
    (
        [LOCAL, CLAUDE.replace("}", ", api_format: anthropic}")],
        "api_format: openai,",
        ["openai", "anthropic"],
    ),
    (["{provider: apodex}", "{provider: sakana}"], "api_format: anthropic,", ["anthropic"] * 2),
]


@pytest.mark.parametrize(("refs", "model", "formats"), FORMATS)
def test_api_format_of_each_backend(refs: list[str], model: str, formats: list[str]) -> None:
    """Its own word, else the model's, else that of an earlier backend, else the provider's."""
    found = cluster(*refs, model=model)

    spoken = [profile.api_format for profile in found.profiles] or [found.api_format]
    assert [spoken[end.profile] for end in found.endpoints] == formats


def test_word_of_the_model_holds_for_a_provider_that_does_not_speak_it() -> None:
    """Then it is refused: nobody guesses that another protocol was meant."""
    problem = problem_of(LOCAL, CLAUDE, model="api_format: openai,")

    assert "backend_refs[1].provider: the provider 'anthropic' does not speak 'openai'" in problem
    assert "set api_format, here or of the model" in problem


def test_protocol_that_is_not_served_is_refused_where_nobody_has_written_it_too() -> None:
    """Chat completions would go to a path where they are not understood."""
    problem = problem_of("{provider: sakana, api_key: k}")

    assert "backend_refs[0].provider: speaks 'responses', which is not served" in problem
    assert cluster("{provider: sakana, api_format: openai}").chat_path == "/v1/chat/completions"


OF_AN_ENVOY = {
    CLAUDE: "api_format, provider, URL scheme, credential, auth header, auth prefix, path",
    '{endpoint: "h/p"}': "base path, path",
    "{endpoint: h, api_key: canary}": "credential",
    "{endpoint: h, extra_headers: {x: canary}}": "extra headers",
    AZURE: "provider, URL scheme, base path, credential, auth header, auth prefix, extra headers,"
    " API version, path",
}


@pytest.mark.parametrize("ref", OF_AN_ENVOY)
def test_behind_an_envoy_all_backends_are_alike(ref: str) -> None:
    """One cluster of it can't vary them; the same document is served in standalone mode."""
    assert len(cluster(LOCAL, ref).profiles) > 1

    problem = problem_of(LOCAL, ref, gateway=Gateway.EXTPROC)

    assert (
        f"backend_refs[1]: differs from the model's first backend in {OF_AN_ENVOY[ref]}," in problem
    )
    assert "serve with --gateway standalone" in problem
    assert "canary" not in problem


def test_alike_backends_pass_behind_an_envoy() -> None:
    """Name, address and weight may differ."""
    assert len(cluster(LOCAL, "{endpoint: h}", gateway=Gateway.EXTPROC).endpoints) > 1


def test_adapter_needs_backends_of_one_provider() -> None:
    """Of one provider they may differ in all else."""
    card = "routing: {modelCards: [{name: m, loras: [{name: law}]}]}\n"

    def problems(second: str) -> list[str]:
        text = f"{card}providers: {{models: [{{name: m, backend_refs: [{LOCAL}, {second}]}}]}}"
        try:
            check_bytes(text.encode(), ENVIRON, Report("test"))
        except ConfigRejected as error:
            return [problem.path for problem in error.problems]
        return []

    assert problems('{endpoint: "h/p", api_key: k}') == []
    assert problems("{provider: openai}") == ["routing.modelCards[0].loras"]


CHECKED = "reliability: {health_check_path: /health},"


def test_backend_says_what_it_is_asked_for_its_health() -> None:
    """In place of what the model says; empty for nothing."""
    found = cluster(
        LOCAL,
        '{endpoint: h, health_check_path: "/up?deep=1"}',
        '{endpoint: i, health_check_path: ""}',
        model=CHECKED,
    )

    assert [end.health_path for end in found.endpoints] == [None, "/up?deep=1", ""]
    assert found.profiles == ()


def test_health_path_of_a_backend_is_a_path_and_needs_one_of_the_model() -> None:
    """What would be ignored is refused."""
    path = "backend_refs[0].health_check_path: is"

    assert f"{path} not a path" in problem_of("{endpoint: h, health_check_path: up}", model=CHECKED)
    assert f"{path} out of place" in problem_of("{endpoint: h, health_check_path: /up}")
