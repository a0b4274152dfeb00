"""One backend with its provider's defaults filled in: what a call to it looks like."""

import re
from collections.abc import Mapping
from urllib.parse import quote_plus

import attrs

from vsr.config.address import DEFAULT_PORTS, Address, parse_address
from vsr.config.document.providers import BackendRef, ProviderModel
from vsr.config.providers import CHAT, MESSAGES, PROVIDERS, RESPONSES, Provider

_OPERATION_BASE = "/v1"
_OPERATION_PATHS = {
    CHAT: "/v1/chat/completions",
    RESPONSES: "/v1/responses",
    MESSAGES: "/v1/messages",
}
_CHAT_PATH = re.compile(r"/[!$&'()*+,;=:@%A-Za-z0-9._~/?-]*")


@attrs.frozen
class Backend:
    """A backend ref together with what its provider says about the rest."""

    provider: str
    address: Address
    auth_header: str | None
    """Lower case."""
    auth_prefix: str
    headers: tuple[tuple[str, str], ...] = attrs.field(repr=False)
    """Sorted; names in lower case, each once."""
    api_version: str | None
    path: str
    """Path and query of a call."""
    credential_source: tuple[str | None, str | None] = attrs.field(repr=False)
    """Inline key and environment variable, as authored."""


def backend_name(ref: BackendRef, at: int) -> str:
    """Return the name of the backend at index `at` of its model."""
    return ref.name if ref.name is not None else f"backend-{at + 1}"


def is_chat_path(text: str) -> bool:
    """Return whether `text` may be sent as the path and query of a chat completion."""
    return _CHAT_PATH.fullmatch(text) is not None


def wire_protocols(model: ProviderModel) -> tuple[str, ...]:
    """Return the `api_format` of each backend of a model, in order.

    It is the backend's own, else the model's, else that of an earlier backend if the provider
    speaks it, else the provider's first.

    Source: the canonical configuration document, "Wire protocol selection"; a backend's own word
    and a second protocol in one model are ours.
    """
    chosen: list[str] = []
    for ref in model.backend_refs:
        provider = PROVIDERS.get(ref.provider)
        spoken = (CHAT,) if provider is None else provider.protocols
        likely = next((each for each in chosen if each in spoken), spoken[0])
        chosen.append(ref.api_format or model.api_format or likely)
    return tuple(chosen)


def resolve_backend(ref: BackendRef, protocol: str = CHAT) -> Backend:
    """Return `ref` with the defaults of its provider, which must be a known one.

    Args:
        ref: as authored.
        protocol: a word of `api_format`.

    Raises:
        ValueError: it has no usable address; the text says why and quotes nothing.
    """
    provider = PROVIDERS[ref.provider]
    address = _address(ref, provider)
    header = provider.auth_header if ref.auth_header is None else ref.auth_header
    headers = {name.lower(): value for name, value in ref.extra_headers.items()}
    return Backend(
        provider=ref.provider,
        address=address,
        auth_header=header.lower() if header else None,
        auth_prefix=provider.auth_prefix if ref.auth_prefix is None else ref.auth_prefix,
        headers=tuple(sorted({**_defaults(provider, protocol), **headers}.items())),
        api_version=ref.api_version,
        path=_path(ref, provider, protocol, address.base_path),
        credential_source=(ref.api_key, None if ref.api_key else ref.api_key_env),
    )


def _defaults(provider: Provider, protocol: str) -> Mapping[str, str]:
    """Return the provider's headers, without a version that clients of the same API may name."""
    if protocol != MESSAGES:
        return provider.headers
    return {name: value for name, value in provider.headers.items() if name != "anthropic-version"}


def _address(ref: BackendRef, provider: Provider) -> Address:
    text = ref.endpoint if ref.base_url is None else ref.base_url
    if text is None:
        text = provider.base_url
    if text is None:
        raise ValueError(f"the provider {ref.provider!r} has no address of its own")
    if ref.base_url is not None and "://" not in text:
        raise ValueError("it must begin with http:// or https://")
    scheme = (ref.protocol or "http").lower()
    if scheme not in DEFAULT_PORTS:
        # The check of `protocol` says so; the rest of the address can still be looked at.
        scheme = "http"
    has_server_name = ref.tls is not None and bool(ref.tls.server_name)
    address = parse_address(text, scheme=scheme, has_server_name=has_server_name)
    if ref.protocol is not None and address.scheme != scheme:
        raise ValueError("its scheme and `protocol` disagree")
    return address


def _path(ref: BackendRef, provider: Provider, protocol: str, base_path: str) -> str:
    """Source: the canonical configuration document, "Upstream path rule"."""
    if protocol == RESPONSES and provider.responses_path is not None:
        return provider.responses_path
    operation = _OPERATION_PATHS[protocol]
    if protocol == CHAT and ref.chat_path is not None:
        path = ref.chat_path
    elif protocol == CHAT and provider.chat_path is not None:
        path = base_path + provider.chat_path
    elif base_path:
        path = base_path + operation.removeprefix(_OPERATION_BASE)
    else:
        path = operation
    if provider.takes_api_version and ref.api_version:
        path += f"{'&' if '?' in path else '?'}api-version={quote_plus(ref.api_version)}"
    return path
