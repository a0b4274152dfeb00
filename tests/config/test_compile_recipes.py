"""Recipes, entrypoints, plugins and the data about models, from document to resources."""

from pathlib import Path

from vsr.config.backend import resolve_backend
from vsr.config.document.providers import BackendRef
from vsr.config.report import Report
from vsr.config.source import Checked, check_bytes
from vsr.resources.cluster import ApiFormat, Cluster, Pricing, UserKeys
from vsr.resources.listener import ListenerTls
from vsr.resources.plugin import (
    FastResponse,
    HeaderMutation,
    RequestParams,
    SystemPrompt,
    SystemPromptMode,
)
from vsr.resources.program import Decision, Leaf, ModelRef, Strategy
from vsr.resources.reasoning import (
    ReasoningFamily,
    ReasoningKind,
    ReasoningMode,
    ReasoningTransport,
)
from vsr.resources.route import Route

FILE = Path(__file__).parents[2] / "fixtures" / "config" / "accepted" / "recipes.yaml"


def checked(data: bytes | None = None) -> Checked:
    """Return the fixture in every form."""
    return check_bytes(FILE.read_bytes() if data is None else data, {}, Report(FILE.name))


def cluster(name: str) -> Cluster:
    """Return one cluster."""
    return next(each for each in checked().snapshot.clusters if each.name == name)


def decisions(name: str) -> tuple[Decision, ...]:
    """Return the decisions of one recipe."""
    programs = {program.name: program for program in checked().snapshot.programs}
    return programs[name].decisions


def test_each_recipe_is_a_program_of_its_own_signals_and_decisions() -> None:
    """The default one first; only the strategy is inherited."""
    programs = checked().snapshot.programs

    assert [(each.name, each.strategy) for each in programs] == [
        ("default", Strategy.CONFIDENCE),
        ("support", Strategy.PRIORITY),
        ("inheriting", Strategy.CONFIDENCE),
    ]
    assert [len(each.keywords) for each in programs] == [0, 1, 0]
    assert [len(each.decisions) for each in programs] == [1, 2, 0]


def test_recipe_named_default_takes_the_place_of_an_empty_top_level() -> None:
    """Automatic names run it."""
    snapshot = checked(b"recipes: [{name: default, routing: {decisions: [{name: all}]}}]").snapshot

    assert [(each.name, len(each.decisions)) for each in snapshot.programs] == [("default", 1)]


def test_entrypoints_publish_recipes_under_each_name_once() -> None:
    """After the automatic names, with the recipe's description."""
    routes = checked().snapshot.routes

    assert [route for route in routes if not route.is_builtin] == [
        Route("house/support", "support", "For the help desk", is_builtin=False),
        Route("house/help", "support", "For the help desk", is_builtin=False),
        Route("house/plain", "default", is_builtin=False),
    ]
    assert [route.model_name for route in routes[:3]] == ["vllm-sr/auto", "auto", "MoM"]


def test_candidates_have_adapters_and_reasoning() -> None:
    """A mode alone says whether reasoning is on; texts lose their outer blanks."""
    assert decisions("support")[0].model_refs == (
        ModelRef(
            "chat",
            lora_name="law-adapter",
            use_reasoning=True,
            says_reasoning=True,
            reasoning_effort="high",
            reasoning_description="hard cases",
        ),
        ModelRef("claude", says_reasoning=True, reasoning_mode=ReasoningMode.DISABLED),
        ModelRef(
            "claude",
            use_reasoning=True,
            says_reasoning=True,
            reasoning_mode=ReasoningMode.ENABLED,
        ),
    )


def test_plugins_are_typed_and_in_order() -> None:
    """Headers of the proxy in front are left out of a mutation."""
    billing = decisions("support")[0]

    assert billing.rules == Leaf("keyword", "refund")
    assert billing.plugins == (
        SystemPrompt("Be kind.", SystemPromptMode.INSERT),
        HeaderMutation(sets=((b"X-Route", b"support"), (b"X-Team", b"help")), removals=(b"X-Old",)),
        RequestParams(("user",), "auto", 1000, 2, strip_unknown=True),
        FastResponse("We are closed."),
    )


def test_plugins_that_are_switched_off_are_left_out() -> None:
    """Also one that this version does not serve."""
    assert decisions("support")[1].plugins == ()


def test_dropped_headers_are_warned_of() -> None:
    """The author is told, since the plugin does less than it says."""
    paths = [warning.path.rpartition("configuration.")[2] for warning in checked().warnings]

    assert paths == ["update[0].name", "delete[1]"]


def test_cluster_has_the_data_about_its_model() -> None:
    """Prices, adapters, further names, limits of the card, and its reasoning family."""
    chat = cluster("chat")

    assert chat.pricing == Pricing("USD", 0.5, 1.5, 0.1, 0.0)
    assert chat.loras == ("law-adapter",)
    assert chat.external_names == ("qwen3-8b", "Qwen/Qwen3-8B")
    assert (chat.context_window_tokens, chat.max_output_tokens) == (32_768, 4_096)
    assert chat.reasoning is not None
    assert chat.reasoning.levels == ("low", "medium", "high", "xhigh")
    assert chat.reasoning_transport is ReasoningTransport.CHAT_TEMPLATE_KWARGS


def test_messages_backend_is_called_in_its_own_protocol() -> None:
    """The provider's default protocol decides the format and the path."""
    claude = cluster("claude")

    assert claude.api_format is ApiFormat.ANTHROPIC
    assert claude.chat_path == "/v1/messages"
    assert claude.credential == (b"x-api-key", b"canary-claude")
    assert claude.user_keys == UserKeys((b"x-user-anthropic-key",), b"x-api-key", b"")
    assert claude.reasoning_transport is ReasoningTransport.OUTPUT_CONFIG_EFFORT


def test_authored_reasoning_is_a_family_of_its_own() -> None:
    """All of its words arrive."""
    assert cluster("claude").reasoning == ReasoningFamily(
        ReasoningKind.REASONING_EFFORT,
        "effort",
        levels=("low", "high"),
        default_level="high",
        modes=(ReasoningMode.ENABLED, ReasoningMode.DISABLED),
        default_mode=ReasoningMode.ENABLED,
        activation_parameter="thinking",
        effort_flags={"low": "low_effort"},
        disabled_level="none",
    )


def test_settings_and_listener_have_their_further_fields() -> None:
    """The skip gate, the default effort and the certificate's files."""
    snapshot = checked().snapshot

    assert snapshot.settings.may_skip_processing
    assert snapshot.settings.default_reasoning_effort == "low"
    assert snapshot.listeners[0].tls == ListenerTls("certs/public.pem", "certs/public.key")


def test_responses_path_of_azure_is_absolute_and_unversioned() -> None:
    """Source: the canonical configuration document, "Upstream path rule"."""
    ref = BackendRef(provider="azure-openai", base_url="https://h.example/openai", api_version="v1")

    assert resolve_backend(ref, "responses").path == "/openai/v1/responses"
    assert resolve_backend(ref, "openai").path == "/openai/chat/completions?api-version=v1"
