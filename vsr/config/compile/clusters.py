"""Clusters: each provider model with its backends, prices and reasoning behaviour."""

from collections.abc import Mapping, Sequence

from vsr.config.backend import Backend, backend_name, resolve_backend, wire_protocol
from vsr.config.compile.credentials import CredentialChain, credential_chain
from vsr.config.compile.reliability import (
    breaker_limits,
    call_policy,
    health_check,
    lb_policy,
    outlier_detection,
    retry_budget,
)
from vsr.config.document.model_cards import ModelCard
from vsr.config.document.providers import BackendRef, ProviderModel
from vsr.config.document.providers import Pricing as AuthoredPricing
from vsr.config.document.root import Document
from vsr.config.providers import REASONING_TRANSPORTS
from vsr.config.quantities import parse_duration_s
from vsr.config.reasoning import family_of
from vsr.resources.cluster import ApiFormat, Cluster, Endpoint, HttpVersion, Pricing
from vsr.resources.reasoning import ReasoningTransport


def compile_clusters(document: Document, environ: Mapping[str, str]) -> tuple[Cluster, ...]:
    """Return a cluster for every model that has backends, in authored order."""
    cards = {card.name: card for card in document.routing.modelCards}
    chain = credential_chain(document)
    return tuple(
        _cluster(model, cards.get(model.name, ModelCard()), chain, environ)
        for model in document.providers.models
        if model.backend_refs
    )


def _cluster(
    model: ProviderModel, card: ModelCard, chain: CredentialChain, environ: Mapping[str, str]
) -> Cluster:
    protocol = wire_protocol(model)
    backends = [resolve_backend(ref, protocol) for ref in model.backend_refs]
    # All backends of a model are alike but for their address and weight.
    first = backends[0]
    reliability = model.reliability
    credential = chain.credential(first, _key(first, environ))
    return Cluster(
        name=model.name,
        endpoints=_endpoints(model.backend_refs, backends),
        upstream_model=_upstream_model(model, first.provider),
        chat_path=first.path,
        base_path=first.address.base_path,
        route_headers=tuple((name.encode(), value.encode()) for name, value in first.headers),
        credential=credential,
        connect_timeout_s=parse_duration_s(reliability.connect_timeout),
        http_version=HttpVersion(first.http_version),
        calls=call_policy(reliability),
        replay_bytes=reliability.replay_bytes,
        lb_policy=lb_policy(reliability),
        breaker=breaker_limits(reliability),
        retry_budget=retry_budget(reliability),
        outliers=outlier_detection(reliability, endpoints=len(model.backend_refs)),
        health_check=health_check(reliability),
        api_format=ApiFormat(protocol),
        provider=first.provider,
        external_names=_external_names(model),
        loras=tuple(lora.name for lora in card.loras),
        reasoning=family_of(model.reasoning),
        reasoning_transport=REASONING_TRANSPORTS.get(
            first.provider, ReasoningTransport.CHAT_TEMPLATE_KWARGS
        ),
        pricing=_pricing(model.pricing),
        user_keys=chain.user_keys(first, has_credential=credential is not None),
        context_window_tokens=card.context_window_size,
        max_output_tokens=card.max_output_tokens,
    )


def _endpoints(refs: Sequence[BackendRef], backends: Sequence[Backend]) -> tuple[Endpoint, ...]:
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


def _upstream_model(model: ProviderModel, provider: str) -> str:
    return model.external_model_ids.get(provider) or model.provider_model_id or model.name


def _external_names(model: ProviderModel) -> tuple[str, ...]:
    names = dict.fromkeys((*model.external_model_ids.values(), model.provider_model_id or ""))
    return tuple(name for name in names if name and name != model.name)


def _pricing(pricing: AuthoredPricing | None) -> Pricing | None:
    if pricing is None:
        return None
    return Pricing(
        currency=pricing.currency,
        prompt_per_1m=pricing.prompt_per_1m,
        completion_per_1m=pricing.completion_per_1m,
        cached_input_per_1m=pricing.cached_input_per_1m,
        cache_write_per_1m=pricing.cache_write_per_1m,
    )


def _key(backend: Backend, environ: Mapping[str, str]) -> str | None:
    inline, variable = backend.credential_source
    if inline is None and variable is not None:
        return environ[variable]
    return inline
