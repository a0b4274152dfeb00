"""The authored document, word for word: what of version v0.3 this version serves.

Every field has a default, so that a part that could not be read leaves a neutral value behind;
`validate` asks for what must be there. A default of None means that omission has its own meaning.
Sources of defaults: "the reference" is the reference Router's documented default.
"""

from collections.abc import Mapping

import attrs

SECRET = {"secret": True}
"""Field metadata: the value is a credential or may hold one, and is never shown."""

TokenCount = str | int | float
"""`24K`, `1.5M`, `1000`."""


@attrs.frozen
class Listener:
    """`listeners[]`."""

    name: str = ""
    address: str = ""
    port: int = 0
    timeout: str = "300s"  # the reference's listener timeout
    api_keys: tuple[str, ...] = attrs.field(default=(), repr=False, metadata=SECRET)
    # Not in the reference, whose proxy has these two as constants with the same values.
    max_body_bytes: int = 524_288_000
    max_connections: int = 50_000


@attrs.frozen
class BackendRef:
    """`providers.models[].backend_refs[]`."""

    name: str | None = None
    endpoint: str | None = None
    protocol: str | None = None
    weight: int = 1  # the reference; 0 means 1 too
    base_url: str | None = None
    provider: str = "vllm"  # the reference
    auth_header: str | None = None
    auth_prefix: str | None = None
    extra_headers: Mapping[str, str] = attrs.field(factory=dict, repr=False, metadata=SECRET)
    api_version: str | None = None
    chat_path: str | None = None
    api_key: str | None = attrs.field(default=None, repr=False, metadata=SECRET)
    api_key_env: str | None = None


@attrs.frozen
class Reliability:
    """`providers.models[].reliability`; a None timeout inherits the listener's."""

    lb_policy: str = "round_robin"  # the reference
    connect_timeout: str = "10s"  # the reference's cluster connect timeout
    total_timeout: str | None = None
    idle_timeout: str | None = None


@attrs.frozen
class ProviderModel:
    """`providers.models[]`."""

    name: str = ""
    provider_model_id: str | None = None
    external_model_ids: Mapping[str, str] = attrs.field(factory=dict)
    api_format: str | None = None
    backend_refs: tuple[BackendRef, ...] = ()
    reliability: Reliability = Reliability()


@attrs.frozen
class ProviderDefaults:
    """`providers.defaults`."""

    model: str | None = None


@attrs.frozen
class Providers:
    """`providers`."""

    defaults: ProviderDefaults = ProviderDefaults()
    models: tuple[ProviderModel, ...] = ()


@attrs.frozen
class Presentation:
    """`routing.modelCards[].presentation`."""

    logo: str | None = None
    monogram: str | None = None
    monochrome: bool | None = None


@attrs.frozen
class Distribution:
    """`routing.modelCards[].distribution`."""

    type: str | None = None
    source: str | None = None
    license: str | None = None


@attrs.frozen
class Modalities:
    """`routing.modelCards[].modalities`."""

    input: tuple[str, ...] = ()
    output: tuple[str, ...] = ()


@attrs.frozen
class ModelCard:
    """`routing.modelCards[]`: what is known about a model; nothing here acts on it yet."""

    name: str = ""
    display_name: str | None = None
    publisher: str | None = None
    presentation: Presentation | None = None
    distribution: Distribution | None = None
    family: str | None = None
    revision: str | None = None
    released_at: str | None = None
    knowledge_cutoff: str | None = None
    lifecycle: str | None = None
    param_size: str | None = None
    context_window_size: int | None = None
    max_output_tokens: int | None = None
    description: str | None = None
    capabilities: tuple[str, ...] = ()
    modalities: Modalities | None = None
    modality: str | None = None
    tags: tuple[str, ...] = ()


@attrs.frozen
class KeywordRule:
    """`routing.signals.keywords[]`; no `method` means literal keywords."""

    name: str = ""
    operator: str = ""
    keywords: tuple[str, ...] = ()
    case_sensitive: bool = False  # the reference
    method: str | None = None


@attrs.frozen
class ContextRule:
    """`routing.signals.context[]`; no minimum means 0, no maximum unbounded."""

    name: str = ""
    min_tokens: TokenCount | None = None
    max_tokens: TokenCount | None = None
    description: str | None = None


@attrs.frozen
class Signals:
    """`routing.signals`."""

    keywords: tuple[KeywordRule, ...] = ()
    context: tuple[ContextRule, ...] = ()


@attrs.frozen
class RuleNode:
    """`routing.decisions[].rules` and its conditions: a leaf (`type`) or a composite."""

    type: str | None = None
    name: str | None = None
    operator: str | None = None
    conditions: "tuple[RuleNode, ...] | None" = None


@attrs.frozen
class ModelRef:
    """`routing.decisions[].modelRefs[]`."""

    model: str = ""
    weight: float = 0.0  # the reference
    use_reasoning: bool = False  # the reference


@attrs.frozen
class Algorithm:
    """`routing.decisions[].algorithm`."""

    type: str = "static"  # the reference: the first candidate


@attrs.frozen
class Decision:
    """`routing.decisions[]`; no rules match every request."""

    name: str = ""
    description: str | None = None
    priority: int = 0  # the reference
    tier: int = 0  # the reference
    rules: RuleNode = RuleNode()
    modelRefs: tuple[ModelRef, ...] = ()  # noqa: N815  # the document's spelling
    algorithm: Algorithm = Algorithm()
    annotations: Mapping[str, object] = attrs.field(factory=dict)


@attrs.frozen
class Routing:
    """`routing`: the default recipe."""

    modelCards: tuple[ModelCard, ...] = ()  # noqa: N815  # the document's spelling
    signals: Signals = Signals()
    decisions: tuple[Decision, ...] = ()
    strategy: str | None = None


@attrs.frozen
class RouterSettings:
    """`global.router`."""

    config_source: str = "file"  # the reference
    strategy: str | None = None
    auto_model_name: str = "MoM"  # the reference
    auto_model_names: tuple[str, ...] | None = None
    include_config_models_in_list: bool = False  # the reference
    clear_route_cache: bool = True  # the reference


@attrs.frozen
class Global:
    """`global`."""

    router: RouterSettings = RouterSettings()


@attrs.frozen
class Document:
    """The whole document; a field's trailing underscore is not part of its key."""

    version: str = "v0.3"
    listeners: tuple[Listener, ...] | None = None
    providers: Providers = Providers()
    routing: Routing = Routing()
    global_: Global = Global()


def key_of(field_name: str) -> str:
    """Return the document's key for a field of these classes."""
    return field_name.rstrip("_")
