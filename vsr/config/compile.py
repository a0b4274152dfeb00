"""From a valid document to the snapshot of resources; pure."""

from collections.abc import Mapping, Sequence

from vsr.config import document as authored
from vsr.config.backend import Backend, backend_name, resolve_backend
from vsr.config.names import PUBLISHED_AUTO_NAME, auto_names, is_regex_method
from vsr.config.quantities import parse_duration_s, parse_token_count
from vsr.resources.cluster import Cluster, Endpoint
from vsr.resources.listener import Listener
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
    Or,
    Program,
    Rule,
    Strategy,
)
from vsr.resources.route import Route
from vsr.resources.snapshot import Settings, Snapshot

DEFAULT_PROGRAM = "default"
"""Name of the program that the top-level `routing` block makes."""

DEFAULT_LISTENERS = (authored.Listener(name="listener_0", address="0.0.0.0", port=8899),)  # noqa: S104  # the reference's listener of a document without any


def compile_snapshot(
    document: authored.Document, *, sha256: str, environ: Mapping[str, str]
) -> Snapshot:
    """Return the resources of `document`, which `validate` has found faultless.

    Args:
        document: the authored document.
        sha256: of its bytes.
        environ: must hold every variable that an `api_key_env` names.
    """
    router = document.global_.router
    listeners = DEFAULT_LISTENERS if document.listeners is None else document.listeners
    strategy = document.routing.strategy or router.strategy or Strategy.PRIORITY
    return Snapshot(
        hash=sha256,
        listeners=tuple(_listener(each) for each in listeners),
        clusters=tuple(_cluster(model, environ) for model in document.providers.models),
        programs=(_program(document.routing, Strategy(strategy)),),
        routes=_routes(router),
        settings=Settings(
            default_model=document.providers.defaults.model,
            list_configured_models=router.include_config_models_in_list,
        ),
    )


def _routes(router: authored.RouterSettings) -> tuple[Route, ...]:
    # `auto` and the single name still route but are no longer published, unless an authored list
    # has them. Source: the reference's parity record `models-list`.
    listed = router.auto_model_names or (PUBLISHED_AUTO_NAME,)
    return tuple(
        Route(name, DEFAULT_PROGRAM, is_listed=name in listed) for name in auto_names(router)
    )


def _listener(listener: authored.Listener) -> Listener:
    return Listener(
        name=listener.name,
        address=listener.address,
        port=listener.port,
        timeout_s=parse_duration_s(listener.timeout),
        api_keys=tuple(key.encode() for key in listener.api_keys),
        max_body_bytes=listener.max_body_bytes,
        max_connections=listener.max_connections,
    )


def _cluster(model: authored.ProviderModel, environ: Mapping[str, str]) -> Cluster:
    backends = [resolve_backend(ref) for ref in model.backend_refs]
    # All backends of a model are alike but for their address and weight.
    first = backends[0]
    reliability = model.reliability
    return Cluster(
        name=model.name,
        endpoints=_endpoints(model.backend_refs, backends),
        upstream_model=_upstream_model(model, first.provider),
        chat_path=first.chat_path,
        base_path=first.address.base_path,
        route_headers=tuple((name.encode(), value.encode()) for name, value in first.headers),
        credential=_credential(first, environ),
        connect_timeout_s=parse_duration_s(reliability.connect_timeout),
        total_timeout_s=_optional_s(reliability.total_timeout),
        idle_timeout_s=_optional_s(reliability.idle_timeout),
    )


def _endpoints(
    refs: Sequence[authored.BackendRef], backends: Sequence[Backend]
) -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint(
            name=backend_name(ref, at),
            host=backend.address.host,
            port=backend.address.port,
            tls=backend.address.scheme == "https",
            weight=ref.weight or 1,
        )
        for at, (ref, backend) in enumerate(zip(refs, backends, strict=True))
    )


def _upstream_model(model: authored.ProviderModel, provider: str) -> str:
    return model.external_model_ids.get(provider) or model.provider_model_id or model.name


def _credential(backend: Backend, environ: Mapping[str, str]) -> tuple[bytes, bytes] | None:
    inline, variable = backend.credential_source
    if backend.auth_header is None or (inline is None and variable is None):
        return None
    key = inline if inline is not None else environ[variable or ""]
    value = f"{backend.auth_prefix} {key}" if backend.auth_prefix else key
    return backend.auth_header.encode(), value.encode()


def _optional_s(text: str | None) -> float | None:
    return None if text is None else parse_duration_s(text)


def _program(routing: authored.Routing, strategy: Strategy) -> Program:
    return Program(
        name=DEFAULT_PROGRAM,
        strategy=strategy,
        keywords=tuple(_keyword(rule) for rule in routing.signals.keywords),
        contexts=tuple(_context(rule) for rule in routing.signals.context),
        decisions=tuple(_decision(decision) for decision in routing.decisions),
    )


def _keyword(rule: authored.KeywordRule) -> KeywordSignal:
    is_regex = is_regex_method(rule.method)
    return KeywordSignal(
        name=rule.name,
        operator=KeywordOperator(rule.operator),
        keywords=rule.keywords,
        method=KeywordMethod.REGEX if is_regex else KeywordMethod.LITERAL,
        case_sensitive=rule.case_sensitive,
    )


def _context(rule: authored.ContextRule) -> ContextSignal:
    return ContextSignal(
        name=rule.name,
        min_tokens=parse_token_count(rule.min_tokens or 0),
        max_tokens=None if rule.max_tokens is None else parse_token_count(rule.max_tokens),
    )


def _decision(decision: authored.Decision) -> Decision:
    refs = decision.modelRefs
    return Decision(
        name=decision.name,
        rules=_rule(decision.rules),
        priority=decision.priority,
        tier=decision.tier,
        model_refs=tuple(ModelRef(model=ref.model, weight=ref.weight) for ref in refs),
        algorithm=Algorithm(type=decision.algorithm.type),
    )


def _rule(node: authored.RuleNode) -> Rule:
    """Return the rule of `node`; an empty root matches everything."""
    if node.type is not None:
        return Leaf(node.type, node.name or "")
    conditions = tuple(_rule(condition) for condition in node.conditions or ())
    match (node.operator or "AND").upper():
        case "OR":
            return Or(conditions)
        case "NOT":
            return Not(conditions[0])
        case _:
            return And(conditions)
