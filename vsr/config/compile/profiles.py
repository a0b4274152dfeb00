"""Backends of one model, and how each of them is called."""

from collections.abc import Mapping

import msgspec

from vsr.config.address import Address, parse_address
from vsr.config.backend import Backend, resolve_backend, wire_protocols
from vsr.config.compile.credentials import CredentialChain
from vsr.config.document.providers import ProviderModel
from vsr.config.providers import PROVIDERS, REASONING_TRANSPORTS
from vsr.resources.cluster import ApiFormat, Profile
from vsr.resources.reasoning import ReasoningTransport

_PUBLIC_HOSTS = frozenset(
    parse_address(provider.base_url).host for provider in PROVIDERS.values() if provider.base_url
)


class CompiledBackend(msgspec.Struct, frozen=True):
    """One backend: where it is and how it is called."""

    address: Address
    profile: Profile


def compile_backends(
    model: ProviderModel, chain: CredentialChain, environ: Mapping[str, str]
) -> tuple[CompiledBackend, ...]:
    """Return the backends of `model`, in authored order; those called alike have equal profiles.

    Args:
        model: as authored, with at least one backend.
        chain: whose keys are sent.
        environ: must hold every variable that names a credential.
    """
    return tuple(
        _compiled(model, resolve_backend(ref, protocol), ApiFormat(protocol), chain, environ)
        for ref, protocol in zip(model.backend_refs, wire_protocols(model), strict=True)
    )


def _compiled(
    model: ProviderModel,
    backend: Backend,
    api_format: ApiFormat,
    chain: CredentialChain,
    environ: Mapping[str, str],
) -> CompiledBackend:
    credential = chain.credential(backend, _key(backend, environ))
    address, provider = backend.address, backend.provider
    profile = Profile(
        upstream_model=_upstream_model(model, provider),
        chat_path=backend.path,
        base_path=address.base_path,
        route_headers=tuple((name.encode(), value.encode()) for name, value in backend.headers),
        credential=credential,
        api_format=api_format,
        provider=provider,
        reasoning_transport=REASONING_TRANSPORTS.get(
            provider, ReasoningTransport.CHAT_TEMPLATE_KWARGS
        ),
        user_keys=chain.user_keys(backend, has_credential=credential is not None),
        known_host=address.host if address.host in _PUBLIC_HOSTS else "",
    )
    return CompiledBackend(address, profile)


def _upstream_model(model: ProviderModel, provider: str) -> str:
    return model.external_model_ids.get(provider) or model.provider_model_id or model.name


def _key(backend: Backend, environ: Mapping[str, str]) -> str | None:
    inline, variable = backend.credential_source
    if inline is None and variable is not None:
        return environ[variable]
    return inline
