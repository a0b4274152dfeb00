"""Clusters: each provider model with its backends, prices and reasoning behaviour."""

from collections.abc import Mapping, Sequence

import msgspec

from vsr.config.backend import backend_name
from vsr.config.compile.backend_tls import backend_tls
from vsr.config.compile.credentials import CredentialChain, credential_chain
from vsr.config.compile.profiles import CompiledBackend, compile_backends
from vsr.config.compile.reliability import (
    breaker_limits,
    call_policy,
    health_check,
    lb_policy,
    outlier_detection,
    retry_budget,
)
from vsr.config.document.model_cards import ModelCard
from vsr.config.document.providers import Pricing as AuthoredPricing
from vsr.config.document.providers import ProviderModel
from vsr.config.document.root import Document
from vsr.config.egress import egress_of
from vsr.config.names import OPERATOR_RATING
from vsr.config.quantities import parse_duration_s
from vsr.config.reasoning import family_of
from vsr.resources.cluster import Cluster, Endpoint, HttpVersion, Pricing, Profile
from vsr.resources.egress import Egress
from vsr.resources.profile import called_as


def compile_clusters(
    document: Document, environ: Mapping[str, str], files: Mapping[str, bytes]
) -> tuple[Cluster, ...]:
    """Return a cluster for every model that has backends, in authored order."""
    cards = {card.name: card for card in document.routing.modelCards}
    shared = _Shared(
        credential_chain(document), environ, files, egress_of(document), quality_scores(document)
    )
    return tuple(
        _cluster(model, cards.get(model.name), shared)
        for model in document.providers.models
        if model.backend_refs
    )


def quality_scores(document: Document) -> Mapping[str, float]:
    """Return the score that its operator gave each model, from 0 to 1; the last record counts.

    Source: the reference's migration, which makes such records of the older `quality_score`.
    """
    records = () if document.evaluation is None else document.evaluation.records
    return {
        record.model: record.metrics["score"]
        for record in records
        if record.benchmark == OPERATOR_RATING and 0 <= record.metrics.get("score", -1) <= 1
    }


class _Shared(msgspec.Struct, frozen=True):
    """What all clusters are compiled with."""

    chain: CredentialChain
    environ: Mapping[str, str]
    files: Mapping[str, bytes]
    egress: Egress | None
    scores: Mapping[str, float]
    """By model, what its operator thinks of it."""


def _cluster(model: ProviderModel, known: ModelCard | None, shared: _Shared) -> Cluster:
    card = known or ModelCard()
    score = shared.scores.get(model.name)
    backends = compile_backends(model, shared.chain, shared.environ)
    profiles = tuple(dict.fromkeys(backend.profile for backend in backends))
    first = profiles[0]
    reliability = model.reliability
    cluster = Cluster(
        name=model.name,
        endpoints=_endpoints(model, backends, profiles, shared.files),
        upstream_model=first.upstream_model,
        egress=shared.egress,
        connect_timeout_s=parse_duration_s(reliability.connect_timeout),
        calls=call_policy(reliability),
        replay_bytes=reliability.replay_bytes,
        lb_policy=lb_policy(reliability),
        breaker=breaker_limits(reliability),
        retry_budget=retry_budget(reliability),
        outliers=outlier_detection(reliability, endpoints=len(model.backend_refs)),
        health_check=health_check(reliability),
        external_names=_external_names(model),
        loras=tuple(lora.name for lora in card.loras),
        reasoning=family_of(model.reasoning),
        reasoning_family=None if model.reasoning is None else model.reasoning.family,
        pricing=_pricing(model.pricing),
        context_window_tokens=card.context_window_size,
        max_output_tokens=card.max_output_tokens,
        param_size=card.param_size,
        quality_score=score,
        is_described=not (known is None and model.pricing is None and score is None),
        profiles=profiles if len(profiles) > 1 else (),
    )
    return called_as(cluster, first)


def _endpoints(
    model: ProviderModel,
    backends: Sequence[CompiledBackend],
    profiles: Sequence[Profile],
    files: Mapping[str, bytes],
) -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint(
            name=backend_name(ref, at),
            host=backend.address.host,
            port=backend.address.port,
            tls=backend.address.scheme == "https",
            weight=ref.weight or 1,
            tls_settings=backend_tls(ref.tls, files),
            server_name=(ref.tls.server_name if ref.tls else None) or backend.address.host,
            profile=profiles.index(backend.profile),
            health_path=ref.health_check_path,
            http_version=HttpVersion(ref.http_version),
        )
        for at, (ref, backend) in enumerate(zip(model.backend_refs, backends, strict=True))
    )


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
